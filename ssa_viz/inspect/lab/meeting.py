"""SSA becomes softmax: n = m, b = 1/m, and m grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.inspect.lab.chosen import Chosen, checked, weigh

LEAST_M, MOST_M = 1.0, 1e6


@dataclass(frozen=True)
class Meeting:
    """How far SSA with n = m and b = 1/m is from softmax on one row.

    Attributes:
        m: values of m, (M,).
        difference: the largest |w_SSA − w_softmax| of the row at each, (M,).
        softmax, ssa: weights (K,) at the chosen m.
        difference_at: of those two.
    """

    m: NDArray[np.float64]
    difference: NDArray[np.float64]
    softmax: NDArray[np.float64]
    ssa: NDArray[np.float64]
    difference_at: float


@torch.no_grad()
def meet(logits: Sequence[float], m: float, count: int = 61) -> Meeting:
    """Compare the two on one row, at `m` and at `count` values from 1 to 10⁶.

    Raises:
        InvalidInputError: m is not from 1 to 10⁶; as `row`.
        NonFiniteError: a logit is NaN or infinite.
    """
    if not LEAST_M <= m <= MOST_M:
        raise InvalidInputError(f"m must be from {LEAST_M:g} to {MOST_M:g}, not {m:g}")
    given = checked(logits)
    softmax = weigh(Chosen("softmax").build(), given[None])[0]
    grid = np.logspace(0, 6, count)
    rows = torch.stack([weigh(_ssa(value).build(), given[None])[0] for value in [*grid.tolist(), m]])
    differences = (rows - softmax).abs().amax(dim=-1)
    return Meeting(
        m=grid,
        difference=differences[:-1].numpy(),
        softmax=softmax.numpy(),
        ssa=rows[-1].numpy(),
        difference_at=float(differences[-1]),
    )


def _ssa(m: float) -> Chosen:
    return Chosen("ssa", (("b", 1.0 / m), ("n", m)))
