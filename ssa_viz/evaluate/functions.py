"""Every scoring function on every measure over all seeds, and which one is better by more than the spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.report import measures
from ssa_viz.evaluate.seeds import Spread, spread
from ssa_viz.scoring import SCORING


@dataclass(frozen=True)
class Measure:
    """One column: what was measured, where its number stands in a card, whether it is a share; and each function's
    numbers, None where a card has none or it cannot be compared."""

    name: str
    path: tuple[str, ...]
    share: bool
    found: Mapping[str, Spread | None]

    @property
    def best(self) -> str | None:
        """The function with the lowest mean, if the next one's mean is further away than either's spread."""
        known = sorted(((s.mean, name) for name, s in self.found.items() if s is not None))
        if len(known) < 2:
            return None
        (low, first), (high, second) = known[:2]
        spreads = [s.std for name in (first, second) if (s := self.found[name]) is not None]
        return first if high - low > max(spreads) else None

    def lower_than(self, name: str, other: str) -> tuple[int, ...]:
        """The places of the seeds in which `name` is lower than `other`."""
        one, two = self.found.get(name), self.found.get(other)
        if one is None or two is None:
            return ()
        return tuple(i for i, (a, b) in enumerate(zip(one.values, two.values, strict=True)) if a < b)


@dataclass(frozen=True)
class Functions:
    """All functions of one task and architecture that were trained with all seeds, in the registry's order."""

    seeds: tuple[int, ...]
    names: tuple[str, ...]
    measures: tuple[Measure, ...]


def all_functions(task: str, entry: Mapping[str, Any]) -> Functions:
    """What an entry of models/seeds.json says about every function in it.

    Raises:
        InvalidInputError: the entry is not of the form that scripts/zoo.py writes.
    """
    try:
        seeds = tuple(int(seed) for seed in entry["seeds"])
        cards: dict[str, Sequence[Mapping[str, Any]]] = {
            name: entry["cards"][name] for name in SCORING if len(entry["cards"].get(name, ())) == len(seeds)
        }
        columns = tuple(
            Measure(
                name,
                path,
                share,
                {scoring: spread(each, path) if comparable(scoring, path) else None for scoring, each in cards.items()},
            )
            for name, path, share in measures(task)
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInputError(f"the seeds' numbers on {task!r} cannot be used: {error}") from error
    return Functions(seeds, tuple(cards), columns)


def comparable(scoring: str, path: tuple[str, ...]) -> bool:
    """Whether a function's number can stand beside the others': a largest weight cannot where rows have any sum."""
    return path[-1] != "largest_weight" or SCORING[scoring].row_sum != "any"


def by_width(entry: Mapping[str, Any], scoring: str, of: str = "wider_inputs") -> dict[float, Spread]:
    """A function's error by σ of the test numbers, σ = 1 being in distribution, over all seeds.

    Raises:
        InvalidInputError: the entry is not of the form that scripts/zoo.py writes.
    """
    try:
        cards = entry["cards"][scoring]
        widths = sorted(float(width) for width in cards[0].get(of, {}))
        found = {1.0: spread(cards, ("in_distribution",))}
        found |= {width: spread(cards, (of, f"{width:g}")) for width in widths}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidInputError(f"the seeds' numbers of {scoring!r} cannot be used: {error}") from error
    return {width: each for width, each in found.items() if each is not None}
