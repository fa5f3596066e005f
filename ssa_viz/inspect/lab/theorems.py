"""What a function leaves for the other keys as logits grow: all of them together, or one alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError
from ssa_viz.inspect.lab.chosen import Chosen, checked, checked_axis, compared, weigh

FACTORS = tuple(np.logspace(-1, 4, 101).tolist())  # λ
VALUES = (0.0, *np.logspace(-1, 4, 101).tolist())  # t


@dataclass(frozen=True)
class Curve:
    """A row's contextual mass over F values of one number.

    Attributes:
        at: λ or t, (F,).
        contextual_mass: the weight on all keys but the strongest, (F,); exact where it is tiny.
        closed_form: what it tends to for large λ or t, by the function's own formula, (F,), or None if none is known.
    """

    at: NDArray[np.float64]
    contextual_mass: NDArray[np.float64]
    closed_form: NDArray[np.float64] | None


@torch.no_grad()
def magnify(chosen: Chosen, logits: Sequence[float], factors: Sequence[float] = FACTORS) -> Curve:
    """Theorem 1: every logit times λ.

    Raises:
        InvalidInputError, NonFiniteError: a factor is not a number above 0 and up to 1e30, or there is none; fewer
            than 2 logits; as `row`.
    """
    given, at = checked(logits, least=2), checked_axis(factors)
    if not (at > 0).all():
        raise InvalidInputError("logits are multiplied by factors above 0")
    function = chosen.build()
    weights = weigh(function, at[:, None] * given)
    return _curve(at, weights, function.magnified(compared(function, given[None])[0], at))


@torch.no_grad()
def grow(chosen: Chosen, logits: Sequence[float], index: int, values: Sequence[float] = VALUES) -> Curve:
    """Theorem 2: the logit at `index` takes each value t, the others stay.

    The closed form holds once t is above all others; below that it is left out (NaN).

    Raises:
        InvalidInputError: `index` is not one of the logits; fewer than 2 logits; a value beyond 1e30; as `row`.
        NonFiniteError: a value or a logit is NaN or infinite, or there is no value.
    """
    given, at = checked(logits, least=2), checked_axis(values)
    if not 0 <= index < len(given):
        raise InvalidInputError(f"the growing logit must be one from 0 to {len(given) - 1}, not {index}")
    rows = given.expand(len(at), -1).clone()
    rows[:, index] = at
    function = chosen.build()
    seen = compared(function, rows)
    others = torch.cat([seen[0, :index], seen[0, index + 1 :]])
    expected = function.grown(others, seen[:, index])
    if expected is not None:
        expected = expected.masked_fill(seen[:, index] <= others.max().clamp(min=0.0), torch.nan)
    return _curve(at, weigh(function, rows), expected)


def _curve(at: Tensor, weights: Tensor, expected: Tensor | None) -> Curve:
    mass = metrics.mass_on_others(weights)
    return Curve(at.numpy(), mass.numpy(), None if expected is None else expected.double().numpy())
