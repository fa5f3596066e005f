"""Sparsemax: the nearest point of the simplex."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import ScoringFunction
from ssa_viz.scoring.simplex import projected


class Sparsemax(ScoringFunction):
    r"""The weights on the simplex nearest to the logits: w_i = max(x_i − τ, 0) over the visible keys, Σ w = 1.

    A key that lies 1 or more below the largest gets exactly 0, and learns nothing. So a token that shouts takes all
    sooner than with softmax. Adding a constant to all logits changes nothing.

    Source: Martins, Astudillo 2016, "From softmax to sparsemax", https://arxiv.org/abs/1602.02068, equation 2.
    """

    name = "sparsemax"
    label = "Sparsemax"
    order = 30
    formula = r"w = \arg\min_{p \in \Delta} \lVert p - x \rVert^2"
    source = "https://arxiv.org/abs/1602.02068"
    smooth = False

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        return projected(logits, visible, logits.new_full((1, 1, 1), 2.0, dtype=torch.float32))

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        return shared_or_nothing(logits, factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """0: from t ≥ max_j x_j + 1 on, exactly."""
        return torch.zeros_like(largest)


def shared_or_nothing(logits: Tensor, factors: Tensor) -> Tensor:
    """(c − 1) / c with c logits sharing the largest, and exactly 0 with one, once λΔ is beyond the threshold."""
    sharing = int((logits == logits.max()).sum())
    return torch.full_like(factors, (sharing - 1) / sharing)
