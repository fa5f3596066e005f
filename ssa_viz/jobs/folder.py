"""A run's folder: the names in it, and run.json."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ssa_viz.checkpoints.files import fault, prepared, reason
from ssa_viz.checkpoints.format import NAME
from ssa_viz.checkpoints.schema import recipe_from_document, recipe_to_document
from ssa_viz.checkpoints.strict_json import read_object, to_bytes
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.train import TrainConfig

FORMAT = "ssa-viz-run"
VERSION = 1
RUN_FILE = "run.json"
LOG_FILE = "log.txt"
MOST_NAME = 80
# Pictures of attention that a run keeps: a slider with more is no better, and a large model's must not fill a disk.
MOST_PROBES = 60
MOST_PROBE_BYTES = 2**26


@dataclass(frozen=True)
class RunConfig:
    """What one run is to do, and how it is told about.

    Attributes:
        train: what decides its result.
        name: for people; may be changed at any time.
        device: where it computes.
        threads: CPU threads. Its results depend on them in the last bits.
        every, probe_every: steps between two records, and between two looks at the fixed sequence; 0 chooses them so
            that a run has about 200 and at most 60 of them.
        snapshot_seconds: between two saved states.
        comparison: the runs that were started together share it.
        created: Unix time.
        compiled: whether PyTorch's compiler is used, which pays on a GPU.

    Raises:
        InvalidInputError: on construction, for what cannot be.
    """

    train: TrainConfig
    name: str = ""
    device: str = "cpu"
    threads: int = 1
    every: int = 0
    probe_every: int = 0
    snapshot_seconds: float = 20.0
    comparison: str = ""
    created: float = field(default_factory=time.time)
    compiled: bool = False

    def __post_init__(self) -> None:
        if len(self.name) > MOST_NAME or not self.name.isprintable():
            raise InvalidInputError(f"a name has up to {MOST_NAME} characters that can be seen")
        if self.comparison and not NAME.fullmatch(self.comparison):
            raise InvalidInputError("comparison may have letters, digits, '.', '_' and '-'")
        for name, least, most in (("threads", 1, 1024), ("every", 0, 2**31), ("probe_every", 0, 2**31)):
            if not least <= getattr(self, name) <= most:
                raise InvalidInputError(f"{name} must be from {least} to {most}, not {getattr(self, name)}")
        for name in ("snapshot_seconds", "created"):
            if not math.isfinite(getattr(self, name)) or getattr(self, name) < 0:
                raise InvalidInputError(f"{name} must be a finite number of at least 0")

    @property
    def record_every(self) -> int:
        return self.every or max(1, self.train.steps // 200)

    @property
    def look_every(self) -> int:
        if self.probe_every:
            return self.probe_every
        model, tokens = self.train.model, min(self.train.model.context, 2 * self.train.length)
        size = 2 * model.layers * model.heads * tokens * tokens  # bytes, float16
        return math.ceil(self.train.steps / max(2, min(MOST_PROBES, MOST_PROBE_BYTES // size)))


OWN = tuple(f.name for f in fields(RunConfig) if f.name != "train")
USUAL = {f.name: f.default for f in fields(RunConfig) if f.name in OWN} | {"created": 0.0}  # of what is left out
KINDS: Mapping[str, type] = {
    "name": str,
    "device": str,
    "comparison": str,
    "snapshot_seconds": float,
    "created": float,
    "compiled": bool,
}


def write_run(folder: Path, run: RunConfig) -> None:
    """Write run.json, whole or not at all.

    Raises:
        CheckpointError: the disk refuses.
    """
    document = {
        "format": FORMAT,
        "schema_version": VERSION,
        **{name: getattr(run, name) for name in OWN},
        **recipe_to_document(run.train),
    }
    write(folder / RUN_FILE, document)


def read_run(folder: Path) -> RunConfig:
    """What run.json says.

    Raises:
        CheckpointError: it is missing, damaged, or of another version.
    """
    path = folder / RUN_FILE
    document = read_object(path)
    try:
        if document.get("format") != FORMAT or document.get("schema_version") != VERSION:
            raise InvalidInputError(f"its format must be {FORMAT!r}, version {VERSION}")
        own: dict[str, Any] = {}
        for name in OWN:
            kind, value = KINDS.get(name, int), document.get(name, USUAL[name])
            accepted = (int, float) if kind is float else kind
            if not isinstance(value, accepted) or isinstance(value, bool) != (kind is bool):
                raise InvalidInputError(f"{name} is missing or of the wrong type")
            own[name] = kind(value)
        return RunConfig(train=recipe_from_document(document), **own)
    except SSAVizError as error:
        raise fault(path, f"cannot be used: {error}") from error


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document, whole or not at all, and on the disk when this returns.

    Raises:
        CheckpointError: the disk refuses.
    """
    try:
        with prepared({path: to_bytes(document)}) as move_into_place:
            move_into_place()
    except OSError as error:
        raise fault(path, f"cannot be written: {reason(error)}") from error
