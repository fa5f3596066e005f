"""Which tokens can still learn: the derivative of every weight of a row by every logit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz.inspect.lab.chosen import Chosen, checked, weigh


def jacobian(chosen: Chosen, logits: Sequence[float]) -> NDArray[np.float64]:
    """∂w_i/∂x_j, (K, K): i is the row, j the column. By the function's own backward pass, K rows at once.

    Raises:
        InvalidInputError, NonFiniteError: as `row`.
    """
    given = checked(logits)
    rows = given.expand(len(given), -1).clone().requires_grad_()
    weights = weigh(chosen.build(), rows)
    (derivatives,) = torch.autograd.grad(weights.diagonal().sum(), rows)
    found: NDArray[np.float64] = derivatives.numpy()
    return found


def reached(derivatives: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ_i |∂w_i/∂x_j|, (K, K) → (K,): how much of what the weights are told comes to each logit; 0 learns nothing."""
    total: NDArray[np.float64] = np.abs(derivatives).sum(axis=0)
    return total
