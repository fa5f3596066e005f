"""All cells of an error map: measured, shared among threads and processes, as JSON and back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssa_viz.checkpoints import CheckpointConfig
from ssa_viz.checkpoints.schema import recipe_to_document
from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.grids.cell import MODEL, TARGET, Cell, countings, measure_cell
from ssa_viz.evaluate.grids.grid import Grid
from ssa_viz.evaluate.grids.rivals import rivals
from ssa_viz.model import Decoder, lengthened
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import tokens_for
from ssa_viz.train.config import TrainConfig

FORMAT = "ssa-viz-error-map"
# Raised whenever a change of the code changes a number: what was measured by older code is then measured again. A test
# compares cells of the shipped maps with fresh ones, so it cannot be forgotten.
MEASURED_BY = 1
DIGITS = 6  # that are kept of a number; further ones depend on the processor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """One model's error map.

    Attributes:
        grid: what it was measured over.
        boolean: whether errors are shares of wrong answers; else they are squared errors.
        found: who (`model`, or a rival's name) → what is counted → (R, C), NaN where there is nothing to count.
        variance: of the true values, (R, C); None for yes-or-no tasks and injected values.
    """

    grid: Grid
    boolean: bool
    found: Mapping[str, Mapping[str, Floats]]
    variance: Floats | None

    @property
    def countings(self) -> tuple[str, ...]:
        return countings(self.grid, self.boolean)

    @property
    def rivals(self) -> tuple[str, ...]:
        """Whom the model can be compared with."""
        return tuple(name for name in self.found if name != MODEL)


def key(config: CheckpointConfig, grid: Grid) -> str:
    """What a map depends on, as one hexadecimal hash: the weights and how they are put together, the grid, the code."""
    recipe = recipe_to_document(config.train)
    depends = {
        "weights": config.sha256,
        "model": recipe["model"],
        "task": recipe["task"],
        "grid": grid.to_document(),
        "measured_by": MEASURED_BY,
    }
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def cells(
    model: Decoder, run: TrainConfig, grid: Grid, places: Sequence[int], *, threads: int = 1
) -> Iterator[tuple[int, Cell]]:
    """Measure the cells at `places` (row by row, from 0), in that order, `threads` at a time.

    Each cell is computed by one thread, so the numbers do not depend on how many there are as long as PyTorch itself
    uses one. Closing the iterator ends the work.

    Raises:
        NonFiniteError: a prediction is not finite.
    """
    longer = lengthened(model, tokens_for(grid.longest, run.prompt_format))
    across = grid.shape[1]
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ssa-viz-cell")
    try:
        futures = [pool.submit(measure_cell, longer, run, grid, *divmod(place, across)) for place in places]
        for place, future in zip(places, futures, strict=True):
            yield place, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def assembled(run: TrainConfig, grid: Grid, found: Mapping[int, Cell]) -> Measured:
    """The map from all of its cells, every number to six digits.

    Raises:
        InvalidInputError: a cell is missing.
    """
    rows, columns = grid.shape
    if set(found) != set(range(rows * columns)):
        raise InvalidInputError(f"{rows * columns - len(found)} of {rows * columns} cells are missing")
    who = {name: {kind: np.full(grid.shape, np.nan) for kind in kinds} for name, kinds in found[0].items()}
    for place, cell in found.items():
        for name, kinds in cell.items():
            for kind, value in kinds.items():
                if value is not None:
                    who[name][kind].flat[place] = float(f"{value:.{DIGITS}g}")
    variance = who.pop(TARGET, {}).get("variance")
    return Measured(grid, TASKS[run.task].boolean, who, variance)


def to_document(config: CheckpointConfig, measured: Measured) -> dict[str, Any]:
    """A map as JSON, with what it depends on."""

    def plain(values: Floats) -> list[list[float | None]]:
        return [[None if math.isnan(value) else value for value in row] for row in values.tolist()]

    return {
        "format": FORMAT,
        "key": key(config, measured.grid),
        "checkpoint": config.name,
        "grid": measured.grid.to_document(),
        "found": {who: {kind: plain(v) for kind, v in kinds.items()} for who, kinds in measured.found.items()},
        "variance": None if measured.variance is None else plain(measured.variance),
    }


def from_document(document: Mapping[str, Any], config: CheckpointConfig, grid: Grid) -> Measured:
    """The map of this checkpoint over this grid.

    Raises:
        InvalidInputError: the document is of something else, or damaged.
    """
    boolean = TASKS[config.train.task].boolean
    if document.get("format") != FORMAT or document.get("key") != key(config, grid):
        raise InvalidInputError("this is not the error map of these weights and this grid")

    def array(values: Any) -> Floats:
        read = np.array(values, dtype=np.float64)  # None becomes NaN
        if read.shape != grid.shape or np.isinf(read).any():
            raise InvalidInputError(f"an error map of {grid.shape} was expected, not of {read.shape}")
        return read

    try:
        kinds = countings(grid, boolean)
        found = {}
        for who in (MODEL, *rivals(boolean)):
            found[who] = {kind: array(values) for kind, values in document["found"][who].items() if kind in kinds}
        given = document["variance"]
        variance = None if given is None else array(given)
        if any(kind not in found[MODEL] for kind in kinds):
            raise InvalidInputError("something that is counted is missing")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"a damaged error map: {error}") from error
    return Measured(grid, boolean, found, variance)
