"""What a checkpoint folder holds: the names of its files, the limits on them, and what they become when read.

models/<name>/model.safetensors   every parameter and fixed value, float32
models/<name>/metrics.json        measured numbers, any JSON object; may be missing
models/<name>/config.json         what the weights are; written last, so that its presence means complete
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssa_viz.model import Decoder
from ssa_viz.train.config import TrainConfig

FORMAT = "ssa-viz-checkpoint"
SCHEMA_VERSION = 2

CONFIG_FILE = "config.json"
METRICS_FILE = "metrics.json"
WEIGHTS_FILE = "model.safetensors"

MAX_JSON_BYTES = 2**20
MAX_HEADER_BYTES = 2**20  # of model.safetensors
MAX_WEIGHT_BYTES = 2**29
MAX_PARAMETERS = 100_000_000  # 400 MB: a config alone must not make a reader allocate gigabytes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class CheckpointConfig:
    """What config.json says.

    Attributes:
        name: the checkpoint's name, that of its folder when it was saved.
        train: how it was trained, with the model's own config as `train.model`.
        scoring: the scoring function's parameters after training, name → [layer][head].
        sha256, weight_bytes: of the weights' file, the hash in lower-case hexadecimal.
        library_version, torch_version: that wrote it.
        folder: where it was read from.
    """

    name: str
    train: TrainConfig
    scoring: Mapping[str, list[list[float]]]
    sha256: str
    weight_bytes: int
    library_version: str
    torch_version: str
    folder: Path


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint; the model is in eval mode and none of its parameters asks for a gradient."""

    config: CheckpointConfig
    model: Decoder
    metrics: dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """A folder that is or should be a checkpoint: `config` if it looks usable, else `error` says why not."""

    name: str
    folder: Path
    config: CheckpointConfig | None
    error: str | None
