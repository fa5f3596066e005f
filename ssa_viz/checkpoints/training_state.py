"""The state of a run on disk: one safetensors file, whole or not there, whose metadata say which run it belongs to."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from ssa_viz.checkpoints.files import fault, open_for_reading, prepared, reason
from ssa_viz.checkpoints.format import MAX_HEADER_BYTES, MAX_WEIGHT_BYTES
from ssa_viz.checkpoints.schema import recipe_from_document, recipe_to_document
from ssa_viz.checkpoints.strict_json import parse_object
from ssa_viz.checkpoints.weights import LENGTH_BYTES, expected_shapes, header_length
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.state import TrainingState

STATE_FILE = "state-{step:09d}.safetensors"
STATE_NAME = re.compile(r"state-(\d{9,10})\.safetensors")
MAX_STATE_BYTES = 3 * MAX_WEIGHT_BYTES  # weights and two moments
KEPT = 2


def save_state(folder: Path, state: TrainingState) -> Path:
    """Write `state` to `folder`, and then remove all but the newest two states there; the file's path.

    Raises:
        CheckpointError: the disk refuses; older states are untouched then.
    """
    path = folder / STATE_FILE.format(step=state.step)
    about = {**recipe_to_document(state.config), "step": state.step, "since": state.since, "sha256": _digest(state)}
    content = safetensors.torch.save(dict(state.tensors), {"run": json.dumps(about, sort_keys=True)})
    try:
        with prepared({path: content}) as move_into_place:
            move_into_place()
        for old in states(folder)[KEPT:]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise fault(path, f"cannot be written: {reason(error)}") from error
    return path


def states(folder: Path) -> list[Path]:
    """The states in `folder`, newest first."""
    found = [path for path in folder.glob("state-*.safetensors") if STATE_NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: path.name, reverse=True)


def latest_state(folder: Path, config: TrainConfig) -> TrainingState | None:
    """The newest sound state of a run of `config`; None if there is no state at all.

    Raises:
        CheckpointError: there are states and none of them can be used; about the newest.
    """
    first: SSAVizError | None = None
    for path in states(folder):
        try:
            return load_state(path, config)
        except SSAVizError as error:
            first = first or error
    if first is not None:
        raise first
    return None


def load_state(path: Path, config: TrainConfig) -> TrainingState:
    """The state in the file `path`, every tensor of the name, shape and dtype that `config` demands, and unharmed.

    Raises:
        CheckpointError: one sentence that says what is wrong with it.
    """
    file, size = open_for_reading(path, MAX_STATE_BYTES)
    try:
        with file:
            content = file.read(size)
        header = parse_object(content[LENGTH_BYTES : LENGTH_BYTES + header_length(content[:LENGTH_BYTES], size)])
        about = parse_object(str(header.get("__metadata__", {}).get("run", ""))[:MAX_HEADER_BYTES].encode())
        if recipe_from_document(about) != config:
            raise InvalidInputError("it belongs to a run with other settings")
        tensors = safetensors.torch.load(content)
        step, since = about.get("step"), about.get("since")
        if type(step) is not int or type(since) is not int or not 0 <= since <= step <= config.steps:
            raise InvalidInputError("its step is not one of the run's")
        _check(tensors, config, step)
        state = TrainingState(config, step, since, tensors)
        if about.get("sha256") != _digest(state):
            raise InvalidInputError("its SHA-256 is not the one written in it")
    except OSError as error:
        raise fault(path, f"cannot be read: {reason(error)}") from error
    except (SSAVizError, SafetensorError, AttributeError) as error:
        raise fault(path, f"cannot be used ({error}); the run can start again from its beginning") from error
    return state


def _check(tensors: Mapping[str, Tensor], config: TrainConfig, step: int) -> None:
    """Compare names, shapes and dtypes with those that `config` demands."""
    weights = expected_shapes(config.model)
    shapes = {f"model.{name}": shape for name, shape in weights.items()}
    shapes["sums"] = (3,)
    moments = {name.partition(".")[2] for name in tensors if name.startswith("exp_avg.")}
    if moments - set(weights) or bool(moments) != bool(step):
        raise InvalidInputError("its moments are not those of the model's parameters")
    for name in moments:
        shapes.update({f"step.{name}": (), f"exp_avg.{name}": weights[name], f"exp_avg_sq.{name}": weights[name]})
    for name, tensor in tensors.items():
        if name == "data":
            if tensor.dtype != torch.uint8 or tensor.ndim != 1:
                raise InvalidInputError("its generator's state is not bytes")
        elif tensor.dtype != torch.float32 or tuple(tensor.shape) != shapes.get(name) or not tensor.isfinite().all():
            raise InvalidInputError(f"the tensor {name[:60]!r} is not one of this run's")
    missing = sorted({*shapes, "data"} - set(tensors))
    if missing:
        raise InvalidInputError(f"the tensor {missing[0]} is missing")


def _digest(state: TrainingState) -> str:
    """SHA-256 over every tensor's name and bytes."""
    digest = hashlib.sha256()
    for name in sorted(state.tensors):
        digest.update(name.encode())
        digest.update(state.tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
