"""Write a checkpoint so that a crash at any point leaves a complete one or one that is plainly incomplete."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from ssa_viz.checkpoints.files import fault, prepared, reason, sync_folder
from ssa_viz.checkpoints.format import (
    CONFIG_FILE,
    METRICS_FILE,
    NAME,
    WEIGHTS_FILE,
    CheckpointConfig,
)
from ssa_viz.checkpoints.schema import from_document, to_document
from ssa_viz.checkpoints.strict_json import parse_object, to_bytes
from ssa_viz.checkpoints.weights import check_finite, expected_shapes, scoring_values
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.model import Decoder, ModelConfig
from ssa_viz.train.config import TrainConfig
from ssa_viz.version import __version__


def save(folder: Path, model: Decoder, config: TrainConfig, metrics: Mapping[str, Any]) -> None:
    """Write `model`, trained as `config` says, and its measured numbers to `folder`, whose name it gets.

    An older checkpoint in the folder is replaced, once all of the new one is on the disk. Its config is removed first
    and the new one moved in last, so that no reader meets new weights with an old config; a save that is interrupted
    in that instant leaves a folder without one.

    Raises:
        CheckpointError: the model or the metrics cannot be stored (nothing is written then), or the disk
            refuses.
    """
    weights_path, metrics_path, config_path = (folder / n for n in (WEIGHTS_FILE, METRICS_FILE, CONFIG_FILE))
    # Everything that can be refused is refused before the folder is touched.
    if not NAME.fullmatch(folder.name):
        raise fault(folder, "cannot name a checkpoint: letters, digits, '.', '_' and '-' can, at most 100")
    try:
        metrics_content = to_bytes(metrics)
    except SSAVizError as error:
        raise fault(metrics_path, f"cannot be written: {error}") from error
    try:
        content = safetensors.torch.save(_storable(model, config))
    except SSAVizError as error:
        raise fault(weights_path, f"cannot be written: {error}") from error
    try:
        config_content = _config_content(folder, model, config, content)
    except SSAVizError as error:
        raise fault(config_path, f"cannot be written: {error}") from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with prepared(
            {weights_path: content, metrics_path: metrics_content, config_path: config_content}
        ) as move_into_place:
            config_path.unlink(missing_ok=True)
            sync_folder(folder)
            move_into_place()
    except OSError as error:
        raise fault(folder, f"cannot be written: {reason(error)}") from error


def check_room(folder: Path, config: ModelConfig) -> None:
    """Refuse before a training what `save` would refuse after it; makes the folder.

    Raises:
        CheckpointError: the folder has an unfit name or cannot be written to, or the model is too large to load.
    """
    if not NAME.fullmatch(folder.name):
        raise fault(folder, "cannot name a checkpoint: letters, digits, '.', '_' and '-' can, at most 100")
    try:
        expected_shapes(config)
        folder.mkdir(parents=True, exist_ok=True)
        with prepared({folder / CONFIG_FILE: b""}):
            pass
    except (OSError, SSAVizError) as error:
        raise fault(folder, f"cannot be written: {reason(error)}") from error


def _storable(model: Decoder, config: TrainConfig) -> dict[str, Tensor]:
    """The model's tensors, contiguous and on the CPU, if all are finite float32 and none is another's."""
    if model.config != config.model:
        raise InvalidInputError("the model was not built from this training config's model")
    expected_shapes(config.model)  # refuses a model that would be too large to load
    tensors = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    owners: dict[int, str] = {}
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise InvalidInputError(f"the tensor {name} is {tensor.dtype}; call .float() on the model first")
        owner = owners.setdefault(tensor.untyped_storage().data_ptr(), name)
        if owner != name:
            raise InvalidInputError(f"the tensors {owner} and {name} share their memory; untie them first")
    check_finite(tensors)
    return {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}


def _config_content(folder: Path, model: Decoder, config: TrainConfig, weights: bytes) -> bytes:
    """config.json, read back once so that no checkpoint is written that cannot be read."""
    document = to_document(
        CheckpointConfig(
            name=folder.name,
            train=config,
            scoring=scoring_values(model),
            sha256=hashlib.sha256(weights).hexdigest(),
            weight_bytes=len(weights),
            library_version=__version__,
            torch_version=str(torch.__version__),
            folder=folder,
        )
    )
    content = to_bytes(document)
    from_document(parse_object(content), folder)
    return content
