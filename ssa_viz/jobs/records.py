"""metrics.jsonl and the pictures of attention: written by the run's process, read by anybody at the same time."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssa_viz.checkpoints.files import fault, prepared, reason
from ssa_viz.errors import CheckpointError
from ssa_viz.train import Probed, Progress

METRICS_FILE = "metrics.jsonl"
PROBE_FILE = "probe-{step:09d}.npz"
PROBE_NAME = re.compile(r"probe-(\d{9,10})\.npz")
MOST_READ = 2**25  # bytes of metrics at once
TRAINED, PROBED = "trained", "probed"  # kinds of record
PICTURE = ("numbers", "position", "weights")  # what a probe keeps beside its line of metrics


def append(folder: Path, event: Progress | Probed, seconds: float) -> None:
    """Add one line, and for a look at the model its picture, which is there before its line is.

    Raises:
        OSError: the disk refuses.
    """
    line = asdict(event)
    if isinstance(event, Probed):
        numbers, position, weights = (np.asarray(line.pop(name)) for name in PICTURE)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, numbers=numbers, position=position, weights=weights)
        with prepared({folder / PROBE_FILE.format(step=event.step): buffer.getvalue()}) as move_into_place:
            move_into_place()
    kind = PROBED if isinstance(event, Probed) else TRAINED
    content = json.dumps({"kind": kind, "seconds": round(seconds, 2), **line}, allow_nan=False)
    with (folder / METRICS_FILE).open("ab") as file:
        file.write(content.encode() + b"\n")
        file.flush()


def forget_after(folder: Path, step: int) -> None:
    """Remove what was recorded beyond `step`, to which a run has gone back: it will be recorded again.

    Raises:
        OSError: the disk refuses.
    """
    path = folder / METRICS_FILE
    if path.exists():
        kept = [line for line in path.read_bytes().split(b"\n") if (record := _parsed(line)) and record["step"] <= step]
        with prepared({path: b"".join(line + b"\n" for line in kept)}) as move_into_place:
            move_into_place()
    for each in probe_steps(folder):
        if each > step:
            (folder / PROBE_FILE.format(step=each)).unlink(missing_ok=True)


@dataclass
class Records:
    """A run's measurements as far as they have been read. `update` reads only what is new."""

    folder: Path
    trained: list[dict[str, Any]] = field(default_factory=list)
    probed: list[dict[str, Any]] = field(default_factory=list)
    offset: int = 0

    def update(self) -> bool:
        """Read on; whether there was anything new. A torn last line waits for its end."""
        try:
            with (self.folder / METRICS_FILE).open("rb") as file:
                size = file.seek(0, io.SEEK_END)
                if size < self.offset:  # the run went back to an earlier state
                    self.trained, self.probed, self.offset = [], [], 0
                file.seek(self.offset)
                content = file.read(MOST_READ)
        except OSError:
            return False
        whole, _, _ = content.rpartition(b"\n")
        if not whole:
            return False
        self.offset += len(whole) + 1
        for record in filter(None, map(_parsed, whole.split(b"\n"))):
            into = self.trained if record["kind"] == TRAINED else self.probed
            # A run that went back may have grown past its old size before anybody looked.
            while into and into[-1]["step"] >= record["step"]:
                into.pop()
            into.append(record)
        return True


@dataclass(frozen=True)
class Picture:
    """The attention on the fixed sequence at one step: weights (L, H, Q, K), numbers (N,), and where the 70 is."""

    step: int
    numbers: NDArray[np.float32]
    position: int
    weights: NDArray[np.float32]


def probe_steps(folder: Path) -> list[int]:
    """The steps that there are pictures of, in order."""
    return sorted(int(found[1]) for path in folder.glob("probe-*.npz") if (found := PROBE_NAME.fullmatch(path.name)))


def probe_at(folder: Path, step: int) -> Picture:
    """The picture of `step`.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    path = folder / PROBE_FILE.format(step=step)
    try:
        with np.load(path) as file:
            numbers, position, weights = (file[name] for name in PICTURE)
        if numbers.ndim != 1 or position.shape != () or weights.ndim != 4 or not np.isfinite(weights).all():
            raise ValueError("it has another shape")
        return Picture(step, numbers.astype(np.float32), int(position), weights.astype(np.float32))
    except OSError as error:
        raise fault(path, f"cannot be read: {reason(error)}") from error
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path.name} is damaged") from error


def _parsed(line: bytes) -> dict[str, Any] | None:
    """One line's record; None for a torn or foreign one."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("kind") not in (TRAINED, PROBED):
        return None
    step, seconds = record.get("step"), record.get("seconds")
    sound = type(step) is int and isinstance(seconds, (int, float)) and math.isfinite(seconds)
    return record if sound else None
