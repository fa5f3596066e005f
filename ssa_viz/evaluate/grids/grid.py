"""What an error map is measured over: two axes of a shift, and on how many prompts each cell."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ssa_viz.errors import InvalidInputError
from ssa_viz.tasks import TASKS, Outlier, Shift
from ssa_viz.train.config import TrainConfig

GRID_SEED = 30_000  # the first cell's; training's and the cards' stay below it
SEQUENCES = 256
MOST_SEQUENCES = 100_000

WIDTHS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 40.0)
LENGTHS = (10.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0, 150.0, 200.0)
TENS = tuple(float(i) for i in range(1, 11))
VALUES = (-1000.0, -300.0, -70.0, -30.0, -10.0, -3.0, 3.0, 10.0, 30.0, 70.0, 300.0, 1000.0)
PLACES = 9  # positions at which a value is injected


@dataclass(frozen=True)
class Along:
    """One axis: what changes along it, in words and as `Shift` or `Outlier` name it, and its values."""

    what: str
    label: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Grid:
    """Every combination of two axes.

    Attributes:
        name, label: of the kind, for the address and for people.
        rows, columns: the axes, down and across.
        length: numbers in a prompt, where no axis says so.
        sequences: fresh prompts for each cell.
        seed: of the first cell; every cell has the next one. (The paper's public code seeds anew for each number, so
            that all widths share the same signs. Here no two cells share anything.)

    Raises:
        InvalidInputError: on construction, for too few or too many sequences.
    """

    name: str
    label: str
    rows: Along
    columns: Along
    length: int
    sequences: int = SEQUENCES
    seed: int = GRID_SEED

    def __post_init__(self) -> None:
        if not 1 <= self.sequences <= MOST_SEQUENCES:
            raise InvalidInputError(f"a cell takes from 1 to {MOST_SEQUENCES} sequences, not {self.sequences}")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows.values), len(self.columns.values)

    @property
    def longest(self) -> int:
        """The most numbers of any prompt."""
        lengths = [along.values for along in (self.rows, self.columns) if along.what == "length"]
        return int(max(lengths[0])) if lengths else self.length

    def at(self, row: int, column: int) -> tuple[Shift, int, int]:
        """The cell's shift, the length of its prompts, and its seed."""
        found = {
            self.rows.what: self.rows.values[row],
            self.columns.what: self.columns.values[column],
        }
        outlier = Outlier(found["value"], int(found["position"])) if "value" in found else None
        shift = Shift(found.get("input_std", 1.0), found.get("function_std", 1.0), outlier)
        index = row * len(self.columns.values) + column
        return shift, int(found.get("length", self.length)), self.seed + index

    def to_document(self) -> dict[str, Any]:
        """Everything that decides the prompts, as JSON."""
        document = asdict(self)
        del document["label"], document["rows"]["label"], document["columns"]["label"]
        return document


def grids(run: TrainConfig, *, sequences: int = SEQUENCES) -> dict[str, Grid]:
    """The error maps that a model trained as `run` has, by name.

    Raises:
        InvalidInputError: too few or too many sequences.
    """
    length = run.length
    places = sorted({round(i * (length - 1) / (PLACES - 1)) for i in range(PLACES)})
    value = Grid(
        "value_position",
        "Injected value",
        Along("value", "injected value", VALUES),
        Along("position", "its position", tuple(float(place) for place in places)),
        length,
        sequences,
    )
    if TASKS[run.task].boolean:
        first = Grid(
            "width_length",
            "Width and length",
            Along("length", "numbers in the sequence", LENGTHS),
            Along("input_std", "σ of the numbers", WIDTHS),
            length,
            sequences,
        )
    else:
        first = Grid(
            "functions_inputs",
            "Lines and x",
            Along("function_std", "σ of the lines' a and b", TENS),
            Along("input_std", "σ of the x", TENS),
            length,
            sequences,
        )
    return {grid.name: grid for grid in (first, value)}
