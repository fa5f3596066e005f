"""A scoring function with values for its parameters, and the one way in which the lab applies it to a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.scoring import SCORING, ScoringFunction

MOST_KEYS = 64
LARGEST = 1e30  # of a logit


@dataclass(frozen=True)
class Chosen:
    """A registered scoring function by name, with those parameters that differ from their defaults.

    Whatever is given, `parameters` keeps only those, by name: two that compute the same are equal.

    Raises:
        UnknownNameError, InvalidInputError: on construction, for a name or value that the function does not take.
    """

    scoring: str
    parameters: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        self.build()
        defaults = self._values({})
        given = self._values(dict(self.parameters))
        kept = tuple((name, value) for name, value in sorted(given.items()) if value != defaults[name])
        object.__setattr__(self, "parameters", kept)

    @property
    def label(self) -> str:
        """For example "SSA", or "SSA, n = 3"."""
        cls = SCORING[self.scoring]
        return ", ".join([cls.label, *(f"{name} = {value:.4g}" for name, value in self.parameters)])

    def build(self) -> ScoringFunction:
        """One head in float64, every parameter fixed, so that a bound itself can be taken."""
        cls = SCORING[self.scoring]
        learnable = {p.name: False for p in cls.parameters_spec if not p.constant}
        function = cls(1, initial=dict(self.parameters), learnable=learnable).double()
        for name, value in self._values(dict(self.parameters)).items():
            getattr(function, name).fill_(value)  # float32 holds 0.1 only roughly
        return function.eval()

    def _values(self, given: Mapping[str, float]) -> dict[str, float]:
        return {p.name: float(given.get(p.name, p.default)) for p in SCORING[self.scoring].parameters_spec}


def compared(function: ScoringFunction, rows: Tensor) -> Tensor:
    """What a function makes of typed logits before it normalises: (R, K) → (R, K).

    A row stands for a query of 1 at the last position and keys x in one dimension, whose q·k/√D is x. A function that
    compares queries and keys in its own way does so here.
    """
    count = rows.shape[-1]
    query = torch.ones(len(rows), 1, 1, 1, dtype=rows.dtype)
    logits: Tensor = function.logits(query, rows[:, None, :, None], torch.arange(count))
    return logits[:, 0, 0]


def weigh(function: ScoringFunction, rows: Tensor) -> Tensor:
    """Weights of rows of typed logits with every key visible, (R, K) → (R, K)."""
    logits = compared(function, rows)
    weights: Tensor = function(logits[:, None, None], torch.ones(rows.shape[-1], dtype=torch.bool))
    return weights[:, 0, 0]


def checked(logits: Sequence[float], least: int = 1) -> Tensor:
    """`logits` as a float64 tensor (K,).

    Raises:
        InvalidInputError: fewer than `least` or more than `MOST_KEYS` of them, or one beyond 1e30 in size.
        NonFiniteError: one is NaN or infinite.
    """
    if not least <= len(logits) <= MOST_KEYS:
        raise InvalidInputError(f"a row needs {least} to {MOST_KEYS} logits, not {len(logits)}")
    row = torch.tensor([float(x) for x in logits], dtype=torch.float64)
    if not row.isfinite().all():
        raise NonFiniteError("a logit is NaN or infinite; give finite numbers")
    if (row.abs() > LARGEST).any():
        raise InvalidInputError(f"logits go up to {LARGEST:g} in size")
    return row


def checked_axis(values: Sequence[float]) -> Tensor:
    """What a curve is drawn over, as a float64 tensor (F,).

    Raises:
        InvalidInputError: one is beyond 1e30 in size.
        NonFiniteError: there is none, or one is NaN or infinite.
    """
    at = torch.tensor([float(v) for v in values], dtype=torch.float64)
    if not len(at) or not at.isfinite().all():
        raise NonFiniteError("a curve needs one or more finite numbers to be drawn over")
    if (at.abs() > LARGEST).any():
        raise InvalidInputError(f"a curve goes up to {LARGEST:g} in size")
    return at
