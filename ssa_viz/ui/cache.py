"""Cached wrappers of the library: bounded, shared by all visitors, and keyed by the weights' hash and the input.

What they return is shared and must not be changed: models are in eval mode, arrays are read-only.

The checkpoints are those in models/, or in the folder that the environment variable SSA_VIZ_MODELS names.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ssa_viz import checkpoints, inspect
from ssa_viz.checkpoints.format import CONFIG_FILE, METRICS_FILE, WEIGHTS_FILE
from ssa_viz.checkpoints.strict_json import read_object
from ssa_viz.errors import CheckpointError
from ssa_viz.inspect import Problem, Reading, Sweep

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(os.environ.get("SSA_VIZ_MODELS") or ROOT / "models")

# Where training runs live: in runs/, or in the folder that SSA_VIZ_RUNS names.
RUNS = Path(os.environ.get("SSA_VIZ_RUNS") or ROOT / "runs")

FILES = (CONFIG_FILE, METRICS_FILE, WEIGHTS_FILE)

T = TypeVar("T")


def catalogue(root: Path = MODELS) -> list[checkpoints.Listing]:
    """The checkpoints of a folder, complete and broken, read again only when a file in it has changed."""
    return _catalogue(root, _stamp(root))


def checkpoint(folder: Path) -> checkpoints.Checkpoint:
    """The checkpoint in `folder`, read again only when its files have changed.

    Raises:
        CheckpointError: it is missing or damaged. Failures are not cached, so a repaired file is found at once.
    """
    return _checkpoint(folder, _stamp(folder))


def seeds(root: Path = MODELS) -> dict[str, Any]:
    """Every seed's card, as scripts/zoo.py wrote them; empty if the file is missing or damaged."""
    try:
        return _json(root / "seeds.json", _stamp(root / "seeds.json"))
    except CheckpointError:
        return {}


def read(loaded: checkpoints.Checkpoint, problem: Problem) -> Reading:
    """`inspect.read`, kept for the last 64 inputs."""
    return _read(loaded, _identity(loaded), problem)


def sweep(loaded: checkpoints.Checkpoint, problem: Problem, sign: int) -> Sweep:
    """`inspect.sweep` over `inspect.magnitudes(sign)`, kept for the last 64 inputs."""
    return _sweep(loaded, _identity(loaded), problem, sign)


def predicted_line(loaded: checkpoints.Checkpoint, problem: Problem, grid: tuple[float, ...]) -> NDArray[np.float32]:
    """`inspect.predicted_line`, kept for the last 64 inputs."""
    return _predicted_line(loaded, _identity(loaded), problem, grid)


def _identity(loaded: checkpoints.Checkpoint) -> str:
    """What a reading depends on besides the problem: the weights, and how they are put together."""
    return f"{loaded.config.sha256} {loaded.config.train.model!r}"


def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes when `folder` (or the file of that name), or a checkpoint's file in it, does."""
    stamps = []
    for path in (folder, *sorted(path for name in FILES for path in (*folder.glob(name), *folder.glob(f"*/{name}")))):
        try:
            status = path.stat()
        except OSError:  # it went away in between, as files do while a checkpoint is replaced
            continue
        stamps.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(stamps)


@st.cache_resource(max_entries=4, show_spinner=False)
def _catalogue(root: Path, stamp: object) -> list[checkpoints.Listing]:
    return checkpoints.discover(root)


@st.cache_resource(max_entries=4, show_spinner=False)
def _json(path: Path, stamp: object) -> dict[str, Any]:
    return read_object(path)


@st.cache_resource(max_entries=16, show_spinner="Loading the model …")
def _checkpoint(folder: Path, stamp: object) -> checkpoints.Checkpoint:
    return checkpoints.load(folder)


@st.cache_resource(max_entries=64, show_spinner=False)
def _read(_loaded: checkpoints.Checkpoint, identity: str, problem: Problem) -> Reading:
    return _frozen(inspect.read(_loaded.model, problem))


@st.cache_resource(max_entries=64, show_spinner=False)
def _sweep(_loaded: checkpoints.Checkpoint, identity: str, problem: Problem, sign: int) -> Sweep:
    return _frozen(inspect.sweep(_loaded.model, problem, inspect.magnitudes(sign)))


@st.cache_resource(max_entries=64, show_spinner=False)
def _predicted_line(
    _loaded: checkpoints.Checkpoint, identity: str, problem: Problem, grid: tuple[float, ...]
) -> NDArray[np.float32]:
    line = inspect.predicted_line(_loaded.model, problem, grid)
    line.flags.writeable = False
    return line


def _frozen(result: T) -> T:
    """`result`, a dataclass, with its arrays made read-only, since every visitor shares it."""
    for name in (f.name for f in fields(result)):  # type: ignore[arg-type]
        value: Any = getattr(result, name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return result
