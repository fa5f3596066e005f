"""Read a checkpoint: everything is compared with what its config demands before a model is built."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any, BinaryIO

import safetensors.torch
from safetensors import SafetensorError

from ssa_viz.checkpoints.files import fault, open_for_reading, reason
from ssa_viz.checkpoints.format import (
    CONFIG_FILE,
    MAX_WEIGHT_BYTES,
    METRICS_FILE,
    WEIGHTS_FILE,
    Checkpoint,
    CheckpointConfig,
)
from ssa_viz.checkpoints.schema import from_document
from ssa_viz.checkpoints.strict_json import read_object
from ssa_viz.checkpoints.weights import (
    LENGTH_BYTES,
    Shape,
    check_finite,
    check_header,
    expected_shapes,
    header_length,
    scoring_values,
)
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.model import Decoder, build

SCORING_TOLERANCE = 1e-4  # versions of torch may round softplus differently, a changed value differs by more


def read_config(folder: Path) -> CheckpointConfig:
    """What the checkpoint in `folder` is, without reading its weights.

    Raises:
        CheckpointError: one sentence that says which file is wrong and how.
    """
    path = folder / CONFIG_FILE
    document = read_object(path)
    try:
        config = from_document(document, folder)
        expected_shapes(config.train.model)
    except SSAVizError as error:
        raise fault(path, f"cannot be used: {error}") from error
    return config


def load(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`. Nothing is unpickled, and the global random state stays as it was.

    Raises:
        CheckpointError: one sentence that says which file is wrong and how.
    """
    config = read_config(folder)
    metrics = _read_metrics(folder)
    path = folder / WEIGHTS_FILE
    file, _ = open_weights(config)
    try:
        with file:
            content = _checked(file, config, expected_shapes(config.train.model))
        model = _restored(content, config)
    except OSError as error:
        raise fault(path, f"cannot be read: {reason(error)}") from error
    except (SSAVizError, SafetensorError) as error:
        raise fault(path, f"does not fit its config or is damaged ({error}); download it again") from error
    return Checkpoint(config, model, metrics)


def open_weights(config: CheckpointConfig) -> tuple[BinaryIO, int]:
    """The weights' file, open, and its size in bytes, which is the one that the config says.

    Raises:
        CheckpointError: it is missing, unreadable or of another size.
    """
    path = config.folder / WEIGHTS_FILE
    file, size = open_for_reading(path, MAX_WEIGHT_BYTES)
    if size != config.weight_bytes:
        file.close()
        difference = size - config.weight_bytes
        unit = "byte" if abs(difference) == 1 else "bytes"
        comparison = f"{abs(difference):,} {unit} {'longer' if difference > 0 else 'shorter'}"
        raise fault(path, f"is {comparison} than its config says; download it again")
    return file, size


def _checked(file: BinaryIO, config: CheckpointConfig, expected: dict[str, Shape]) -> bytes:
    """The whole file, read once, so that what is checked is also what is loaded."""
    size = config.weight_bytes
    prefix = file.read(LENGTH_BYTES)
    length = header_length(prefix, size)
    header = file.read(length)
    check_header(header, size - LENGTH_BYTES - length, expected)
    content = prefix + header + file.read(size - LENGTH_BYTES - length)
    if hashlib.sha256(content).hexdigest() != config.sha256:
        raise InvalidInputError("its SHA-256 is not the one in the config")
    return content


def _restored(content: bytes, config: CheckpointConfig) -> Decoder:
    """The model with the weights in `content`, whose names and shapes have been checked."""
    tensors = safetensors.torch.load(content)
    check_finite(tensors)
    model = build(config.train.model, seed=0)
    model.load_state_dict(tensors, strict=True)
    for name, layers in scoring_values(model).items():
        stated = [value for layer in config.scoring[name] for value in layer]
        held = [value for layer in layers for value in layer]
        if not all(_close(a, b) for a, b in zip(stated, held, strict=True)):
            raise InvalidInputError(f"the scoring parameter {name} is not the one in the config")
    return model.eval().requires_grad_(False)


def _close(stated: float, held: float) -> bool:
    return math.isclose(stated, held, rel_tol=SCORING_TOLERANCE, abs_tol=SCORING_TOLERANCE**2)


def _read_metrics(folder: Path) -> dict[str, Any]:
    """What metrics.json holds; nothing if there is none."""
    path = folder / METRICS_FILE
    return read_object(path) if path.exists() or path.is_symlink() else {}
