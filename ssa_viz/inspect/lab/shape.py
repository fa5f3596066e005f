"""The shape of a scoring function over one logit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssa_viz.inspect.lab.chosen import Chosen, checked, checked_axis, weigh

XS = tuple(np.linspace(-10, 10, 401).tolist())
OTHERS = (0.0,) * 7


@dataclass(frozen=True)
class Shape:
    """A function over X values of one logit.

    Attributes:
        x: the logit, (X,).
        score, score_slope: s(x) and ds/dx, (X,), or None where the score is no function of one logit.
        weight, weight_slope: the weight of a key with logit x beside the others, and its derivative, (X,).
    """

    x: NDArray[np.float64]
    score: NDArray[np.float64] | None
    score_slope: NDArray[np.float64] | None
    weight: NDArray[np.float64]
    weight_slope: NDArray[np.float64]


def shape(chosen: Chosen, xs: Sequence[float] = XS, others: Sequence[float] = OTHERS) -> Shape:
    """Draw a function over `xs`, alone and as the last key of a row that also holds `others`.

    Raises:
        InvalidInputError, NonFiniteError: as `row` for the others, as `magnify` for x, which may also be 0 or less.
    """
    rest = checked(others)
    x = checked_axis(xs).requires_grad_()
    function = chosen.build()
    rows = torch.cat([rest.expand(len(x), -1), x[:, None]], dim=-1)
    weight = weigh(function, rows)[:, -1]
    score = function.score(x.view(1, 1, -1, 1))
    return Shape(
        x=x.detach().numpy(),
        score=None if score is None else score.detach().flatten().numpy(),
        score_slope=None if score is None else _slope(score.flatten(), x),
        weight=weight.detach().numpy(),
        weight_slope=_slope(weight, x),
    )


def _slope(values: Tensor, x: Tensor) -> NDArray[np.float64]:
    """Each value depends on its own x alone, so the gradient of their sum is every one's derivative."""
    (slope,) = torch.autograd.grad(values.sum(), x)
    found: NDArray[np.float64] = slope.numpy()
    return found
