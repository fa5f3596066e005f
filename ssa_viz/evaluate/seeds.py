"""What several seeds of the same recipe say together: mean, spread, and the seeds that disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssa_viz.errors import InvalidInputError


@dataclass(frozen=True)
class Spread:
    """One number over seeds: its values in seed order, their mean and their sample standard deviation."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """With n − 1 in the denominator; 0 for a single seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0


@dataclass(frozen=True)
class Comparison:
    """The same number for two scoring functions, seed by seed; lower is better.

    Attributes:
        first, second: the two.
        worse: the seeds at which `second` is not lower than `first`; a NaN is never lower.
    """

    first: Spread
    second: Spread
    worse: tuple[int, ...]


def spread(cards: Sequence[Mapping[str, Any]], path: Sequence[str]) -> Spread | None:
    """The number at `path` of every seed's card; None if a card has none there (a null)."""
    found = []
    for card in cards:
        value: Any = card
        for name in path:
            value = value[name]
        if value is None:
            return None
        found.append(float(value))
    return Spread(tuple(found))


def compare(
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
    path: Sequence[str],
    seeds: Sequence[int],
) -> Comparison | None:
    """Compare two functions' cards at `path`; None if the number is missing.

    Raises:
        InvalidInputError: the two do not have one card for each seed.
    """
    if not len(first) == len(second) == len(seeds):
        raise InvalidInputError("comparing needs one card of each function for every seed")
    one, two = spread(first, path), spread(second, path)
    if one is None or two is None:
        return None
    worse = tuple(s for s, a, b in zip(seeds, one.values, two.values, strict=True) if not b < a)
    return Comparison(one, two, worse)


def median_seed(errors: Sequence[float], seeds: Sequence[int]) -> int:
    """The seed whose error is the median (the lower one of two middle ones; equal errors in seed order)."""
    order = sorted(zip(errors, seeds, strict=True))
    return order[(len(order) - 1) // 2][1]
