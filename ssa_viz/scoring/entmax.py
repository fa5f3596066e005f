"""Entmax with a learned α for each head."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import Parameter, ScoringFunction
from ssa_viz.scoring.simplex import projected
from ssa_viz.scoring.softmax import Softmax
from ssa_viz.scoring.sparsemax import shared_or_nothing


class Entmax(ScoringFunction):
    r"""w_i = max((α − 1)(x_i − τ) + 1, 0)^{1 / (α − 1)} over the visible keys, τ such that Σ w = 1, 1 ≤ α ≤ 2.

    α = 1 is softmax, 2 sparsemax, and each head learns how sparse to be. A key that lies 1 / (α − 1) or more below the
    largest gets exactly 0, and learns nothing. Adding a constant to all logits changes nothing. The source writes the
    threshold as (α − 1)x − τ; ours is that τ, less 1, over α − 1, which has a limit at α = 1.

    Source: Correia, Niculae, Martins 2019, "Adaptively sparse transformers", https://arxiv.org/abs/1909.00015.
    """

    name = "entmax"
    label = "Entmax α"
    order = 32
    formula = r"w_i = \max\left((\alpha - 1)(x_i - \tau) + 1, 0\right)^{1 / (\alpha - 1)}"
    source = "https://arxiv.org/abs/1909.00015"
    parameters_spec = (
        Parameter("alpha", r"\alpha", "1 is softmax, 2 is sparsemax", 1.25, 1.0, (1.0, 2.0), inclusive=True, upper=2.0),
    )
    smooth = False

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        return projected(logits, visible, self.value("alpha").view(-1, 1, 1))

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """(c − 1) / c or 0; softmax's at α = 1."""
        softmax = Softmax(1).magnified(logits, factors)
        return softmax if float(self.value("alpha")[0]) == 1.0 else shared_or_nothing(logits, factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """0, from t ≥ max_j x_j + 1 / (α − 1) on, exactly; softmax's at α = 1."""
        softmax = Softmax(1).grown(others, largest)
        return softmax if float(self.value("alpha")[0]) == 1.0 else torch.zeros_like(largest)
