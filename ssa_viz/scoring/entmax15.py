"""Entmax with α = 1.5, half-way between softmax and sparsemax."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import ScoringFunction
from ssa_viz.scoring.simplex import projected
from ssa_viz.scoring.sparsemax import shared_or_nothing


class Entmax15(ScoringFunction):
    r"""w_i = max(x_i / 2 − τ, 0)² over the visible keys, τ such that Σ w = 1.

    A key that lies 2 or more below the largest gets exactly 0, and learns nothing. Adding a constant to all logits
    changes nothing.

    Source: Peters, Niculae, Martins 2019, "Sparse sequence-to-sequence models", https://arxiv.org/abs/1905.05702,
    equation 8 with α = 1.5.
    """

    name = "entmax15"
    label = "Entmax 1.5"
    order = 31
    formula = r"w_i = \max\left(\tfrac{x_i}{2} - \tau, 0\right)^2"
    source = "https://arxiv.org/abs/1905.05702"
    smooth = False

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        return projected(logits, visible, logits.new_full((1, 1, 1), 1.5, dtype=torch.float32))

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        return shared_or_nothing(logits, factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """0: from t ≥ max_j x_j + 2 on, exactly."""
        return torch.zeros_like(largest)
