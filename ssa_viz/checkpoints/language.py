"""Language models on disk: weights as float16, the run and the tokenizer as JSON, checked before anything is built.

<name>/model.safetensors   every parameter
<name>/tokenizer.json      the tokenizer that it was trained with
<name>/metrics.json        measured numbers, any JSON object; may be missing
<name>/config.json         what the weights are; written last, so that its presence means complete
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ssa_viz.checkpoints.files import fault, open_for_reading, prepared, reason
from ssa_viz.checkpoints.format import (
    CONFIG_FILE,
    MAX_JSON_BYTES,
    MAX_PARAMETERS,
    MAX_WEIGHT_BYTES,
    METRICS_FILE,
    NAME,
    WEIGHTS_FILE,
)
from ssa_viz.checkpoints.strict_json import parse_object, read_object, to_bytes
from ssa_viz.checkpoints.typed import Document, exactly, fields_of, plain, typed
from ssa_viz.checkpoints.weights import check_finite, shapes_of
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.model.language import LanguageConfig, LanguageModel, build_language
from ssa_viz.text.tokenizer import Tokenizer
from ssa_viz.train.language.config import LanguageRun
from ssa_viz.version import __version__

FORMAT, VERSION = "ssa-viz-language-model", 1
STATE_FORMAT = "ssa-viz-language-state"
TOKENIZER_FILE = "tokenizer.json"
MODEL_HINTS = get_type_hints(LanguageConfig)
RUN_HINTS = {name: hint for name, hint in get_type_hints(LanguageRun).items() if name != "model"}


@dataclass(frozen=True)
class LanguageCheckpoint:
    """A loaded language model, in eval mode and without gradients.

    Attributes:
        name, folder: where it was read from.
        run: how it was trained.
        sha256: of the weights' file.
        model, tokenizer: the two.
        metrics: what was measured of it.
    """

    name: str
    folder: Path
    run: LanguageRun
    sha256: str
    model: LanguageModel
    tokenizer: Tokenizer
    metrics: dict[str, Any]


def run_to_document(run: LanguageRun) -> Document:
    """The sections model and train, which `run_from_document` reads as `run`."""
    return {
        "model": {name: plain(getattr(run.model, name)) for name in MODEL_HINTS},
        "train": {name: getattr(run, name) for name in RUN_HINTS},
    }


def run_from_document(document: Mapping[str, Any]) -> LanguageRun:
    """Read the sections model and train; every field must be there and of its type.

    Raises:
        InvalidInputError, UnknownNameError: naming what is wrong.
    """
    for section in ("model", "train"):
        typed(section, document.get(section), dict)
    model = LanguageConfig(**fields_of("model", document["model"], MODEL_HINTS))
    return LanguageRun(model=model, **fields_of("train", document["train"], RUN_HINTS))


def save_language(
    folder: Path, model: LanguageModel, run: LanguageRun, tokenizer: Tokenizer, metrics: Mapping[str, Any]
) -> None:
    """Write a model to `folder`, whose name it gets; an older one there is replaced.

    Raises:
        CheckpointError: it cannot be stored, or the disk refuses.
    """
    try:
        if not NAME.fullmatch(folder.name):
            raise InvalidInputError("letters, digits, '.', '_' and '-' can name it, at most 100")
        if model.config != run.model or tokenizer.vocabulary != run.model.vocabulary:
            raise InvalidInputError("the model, its run and its tokenizer do not belong together")
        tensors = {name: tensor.detach().cpu().half().contiguous() for name, tensor in model.state_dict().items()}
        check_finite(tensors)
        weights = safetensors.torch.save(tensors)
        document = {
            "format": FORMAT,
            "schema_version": VERSION,
            "name": folder.name,
            **run_to_document(run),
            "tokenizer": {"file": TOKENIZER_FILE, "sha256": tokenizer.sha256},
            "library_version": __version__,
            "torch_version": str(torch.__version__),
            "weights": {"file": WEIGHTS_FILE, "sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)},
        }
        contents = {
            folder / WEIGHTS_FILE: weights,
            folder / TOKENIZER_FILE: tokenizer.document.encode(),
            folder / METRICS_FILE: to_bytes(metrics),
            folder / CONFIG_FILE: to_bytes(document),
        }
    except SSAVizError as error:
        raise fault(folder, f"cannot be written: {error}") from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with prepared(contents) as move_into_place:
            (folder / CONFIG_FILE).unlink(missing_ok=True)
            move_into_place()
    except OSError as error:
        raise fault(folder, f"cannot be written: {reason(error)}") from error


@dataclass(frozen=True)
class _Described:
    """What a config says of the other files."""

    name: str
    run: LanguageRun
    weights: dict[str, Any]
    tokenizer: dict[str, Any]


def language_run(folder: Path) -> LanguageRun:
    """How the model in `folder` was trained, from its config alone.

    Raises:
        CheckpointError: the config is missing or wrong.
    """
    return _described(folder).run


def _described(folder: Path) -> _Described:
    document = read_object(folder / CONFIG_FILE)
    try:
        names = ("format", "schema_version", "name", "model", "train", "tokenizer", "library_version", "torch_version")
        exactly("", document, (*names, "weights"))
        if document["format"] != FORMAT or document["schema_version"] != VERSION:
            raise InvalidInputError(f"it is no {FORMAT} of version {VERSION}")
        run = run_from_document(document)
        weights = fields_of("weights", document["weights"], {"file": str, "sha256": str, "bytes": int})
        words = fields_of("tokenizer", document["tokenizer"], {"file": str, "sha256": str})
        return _Described(typed("name", document["name"], str), run, weights, words)
    except SSAVizError as error:
        raise fault(folder / CONFIG_FILE, f"cannot be used: {error}") from error


def load_language(folder: Path) -> LanguageCheckpoint:
    """The language model in `folder`. Nothing is unpickled, and the global random state stays as it was.

    Raises:
        CheckpointError: one sentence that says which file is wrong and how.
    """
    described = _described(folder)
    run, weights, words = described.run, described.weights, described.tokenizer
    try:
        shapes = language_shapes(run.model)
    except SSAVizError as error:
        raise fault(folder / CONFIG_FILE, f"cannot be used: {error}") from error
    tokenizer = _tokenizer(folder / TOKENIZER_FILE, str(words["sha256"]), run.model.vocabulary)
    path = folder / WEIGHTS_FILE
    content = _content(path, MAX_WEIGHT_BYTES)
    try:
        if hashlib.sha256(content).hexdigest() != weights["sha256"]:
            raise InvalidInputError("its SHA-256 is not the one in the config")
        tensors = safetensors.torch.load(content)
        for name, tensor in tensors.items():
            if tensor.dtype != torch.float16 or tuple(tensor.shape) != shapes.get(name):
                raise InvalidInputError(f"the tensor {name[:60]!r} is not one of this model's")
        if missing := sorted(set(shapes) - set(tensors)):
            raise InvalidInputError(f"the tensor {missing[0]} is missing")
        check_finite(tensors)
        model = build_language(run.model, seed=0)
        model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=True)
    except (SSAVizError, SafetensorError) as error:
        raise fault(path, f"does not fit its config or is damaged ({error}); download it again") from error
    metrics = read_object(folder / METRICS_FILE) if (folder / METRICS_FILE).exists() else {}
    return LanguageCheckpoint(
        described.name, folder, run, str(weights["sha256"]), model.eval().requires_grad_(False), tokenizer, metrics
    )


def language_shapes(config: LanguageConfig) -> dict[str, tuple[int, ...]]:
    """Name → shape of every tensor of a model, without allocating any.

    Raises:
        InvalidInputError: they are more numbers than are loaded.
    """
    per_layer = 4 * config.width**2 + 2 * config.width * config.hidden
    if config.layers * per_layer + config.vocabulary * config.width > MAX_PARAMETERS:
        raise InvalidInputError(f"the model has more than the {MAX_PARAMETERS:,} parameters that are loaded")
    return shapes_of(lambda: LanguageModel(config))


def save_language_state(path: Path, run: LanguageRun, step: int, tensors: Mapping[str, Tensor]) -> None:
    """Write what a run needs to go on, in one file, whole or not at all.

    Raises:
        CheckpointError: the disk refuses; what was there is untouched then.
    """
    about = {"format": STATE_FORMAT, **run_to_document(run), "step": step, "sha256": _digest(tensors)}
    content = safetensors.torch.save(dict(tensors), {"run": json.dumps(about, sort_keys=True)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with prepared({path: content}) as move_into_place:
            move_into_place()
    except OSError as error:
        raise fault(path, f"cannot be written: {reason(error)}") from error


def load_language_state(path: Path, run: LanguageRun) -> tuple[int, dict[str, Tensor]]:
    """The step and the tensors of a saved state of `run`.

    Raises:
        CheckpointError: it is damaged, or another run's.
    """
    content = _content(path, 3 * MAX_WEIGHT_BYTES)
    try:
        header = parse_object(content[8 : 8 + min(int.from_bytes(content[:8], "little"), MAX_JSON_BYTES)])
        about = parse_object(str(header.get("__metadata__", {}).get("run", "")).encode())
        if about.get("format") != STATE_FORMAT or run_from_document(about) != run:
            raise InvalidInputError("it belongs to a run with other settings")
        tensors = safetensors.torch.load(content)
        if about.get("sha256") != _digest(tensors):
            raise InvalidInputError("its SHA-256 is not the one written in it")
        return typed("step", about.get("step"), int), tensors
    except (SSAVizError, SafetensorError, AttributeError) as error:
        raise fault(path, f"cannot be used ({error}); remove it to start again") from error


def _tokenizer(path: Path, sha256: str, vocabulary: int) -> Tokenizer:
    content = _content(path, 8 * MAX_JSON_BYTES)
    try:
        if hashlib.sha256(content).hexdigest() != sha256:
            raise InvalidInputError("its SHA-256 is not the one that the model was trained with")
        tokenizer = Tokenizer(content.decode("utf-8"))
        if tokenizer.vocabulary != vocabulary:
            raise InvalidInputError(f"it has {tokenizer.vocabulary} tokens and the model {vocabulary}")
    except (SSAVizError, UnicodeDecodeError) as error:
        raise fault(path, f"does not fit the model ({error}); put the one there that came with it") from error
    return tokenizer


def _content(path: Path, most: int) -> bytes:
    file, size = open_for_reading(path, most)
    try:
        with file:
            return file.read(size)
    except OSError as error:
        raise fault(path, f"cannot be read: {reason(error)}") from error


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over every tensor's name and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
