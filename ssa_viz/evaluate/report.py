"""All seeds of one task and architecture, measure by measure, with the seeds that disagree; lower is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.evaluate.seeds import Comparison, compare
from ssa_viz.tasks import TASKS
from ssa_viz.train.presets import SCORED

# What a row says, and where in a card its number stands.
QUANTIFIER_ROWS = (
    ("Largest weight in the row of an injected 70", ("injected", "70", "largest_weight")),
    ("Wrong at an injected 70, the answer already settled", ("injected", "70", "at_settled")),
    ("Wrong from an injected 70 on", ("injected", "70", "from")),
    ("Wrong from an injected −70 on", ("injected", "-70", "from")),
    ("Wrong from an injected 1000 on", ("injected", "1000", "from")),
    ("Wrong with numbers 10 times as wide (σ = 10)", ("wider_inputs", "10")),
    ("Wrong in distribution", ("in_distribution",)),
)
LINEAR_ROWS = (
    ("Largest weight in the row of an injected 70", ("injected", "70", "largest_weight")),
    ("Squared error at an injected 70", ("injected", "70", "at")),
    ("Squared error after an injected 70", ("injected", "70", "after")),
    ("Squared error after an injected −70", ("injected", "-70", "after")),
    ("Squared error after an injected 1000", ("injected", "1000", "after")),
    ("Squared error with x 10 times as wide (σ = 10)", ("wider_inputs", "10")),
    ("Squared error with steeper lines (σ = 10)", ("wider_functions", "10")),
    ("Squared error in distribution", ("in_distribution",)),
)


@dataclass(frozen=True)
class Row:
    """One measure over all seeds; lower is better.

    Attributes:
        name: what was measured.
        comparison: softmax's numbers and SSA's.
        share: the numbers are shares, shown as per cent; else squared errors.
    """

    name: str
    comparison: Comparison
    share: bool

    @property
    def no_better(self) -> bool:
        """Whether the mean of the second is not below that of the first."""
        return not self.comparison.second.mean < self.comparison.first.mean


@dataclass(frozen=True)
class Evidence:
    """All seeds of one task and architecture.

    Attributes:
        seeds: every seed that was trained.
        shipped: scoring function → the seed whose checkpoint is in models/.
        rows: one for each measure that both functions have.
    """

    seeds: tuple[int, ...]
    shipped: Mapping[str, int]
    rows: tuple[Row, ...]


def measures(task: str) -> list[tuple[str, tuple[str, ...], bool]]:
    """What is compared for a task: a name, where its number stands in a card, and whether it is a share."""
    boolean = TASKS[task].boolean
    return [
        (name, path, boolean or path[-1] == "largest_weight")
        for name, path in (QUANTIFIER_ROWS if boolean else LINEAR_ROWS)
    ]


def number_at(metrics: Mapping[str, Any], path: Sequence[str]) -> float | None:
    """The number at `path`; None if there is none. A checkpoint's metrics may be any JSON object."""
    value: Any = metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def over_seeds(task: str, entry: Mapping[str, Any]) -> Evidence:
    """What an entry of models/seeds.json says about a task.

    Raises:
        InvalidInputError: the entry is not of the form that scripts/zoo.py writes.
    """
    try:
        seeds = tuple(int(seed) for seed in entry["seeds"])
        cards = [entry["cards"][scoring] for scoring in SCORED]
        rows = []
        for name, path, share in measures(task):
            found = compare(cards[0], cards[1], path, seeds)
            if found is not None:
                rows.append(Row(name, found, share))
        shipped = {scoring: int(seed) for scoring, seed in entry["shipped"].items()}
        if not set(SCORED) <= set(shipped):
            raise InvalidInputError("not both functions are shipped")
        if not seeds or not all(math.isfinite(row.comparison.first.mean + row.comparison.second.mean) for row in rows):
            raise InvalidInputError("no seed, or a number that is not finite")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, SSAVizError) as error:
        raise InvalidInputError(f"the seeds' numbers on {task!r} cannot be used: {error}") from error
    return Evidence(seeds, shipped, tuple(rows))


def agreement(row: Row, count: int) -> str:
    """In how many seeds the second is lower, and which ones it is not."""
    worse = row.comparison.worse
    text = f"{count - len(worse)} of {count} seeds"
    if worse:
        text += f" (not in {', '.join(map(str, worse))})"
    if not row.no_better:
        return text
    same = row.comparison.second.mean == row.comparison.first.mean
    return f"{text}, {'equal' if same else 'worse'} on average"


def spread(mean: float, std: float, share: bool) -> str:
    """Mean ± standard deviation, both to the two digits that the latter has; shares as per cent."""
    scale, unit = (100, "%") if share else (1, "")
    mean, std = mean * scale, std * scale
    # Equal numbers can have a spread of the last bit, which says nothing about digits.
    digits = _decimals(std if std > 1e-9 * abs(mean) else mean)
    return f"{mean:,.{digits}f} ± {std:,.{digits}f}{unit}"


def amount(value: float, share: bool) -> str:
    """One error to three digits: a share as per cent, else a number."""
    scaled = value * 100 if share else value
    text = f"{scaled:,.0f}" if abs(scaled) >= 1000 else f"{scaled:#.3g}".rstrip(".") if scaled else "0"
    return f"{text}%" if share else text


def _decimals(size: float) -> int:
    """Decimal places that show two digits of `size`."""
    if size == 0 or not math.isfinite(size):
        return 0
    return min(max(1 - math.floor(math.log10(abs(size))), 0), 6)
