"""Sigmoid attention: every key on its own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssa_viz.scoring.base import Parameter, ScoringFunction, spoilt, working_dtype

TYPICAL_KEYS = 41


class Sigmoid(ScoringFunction):
    r"""w_i = σ(x_i + β) = 1 / (1 + e^{−x_i − β}) for each visible key i, by itself.

    Nothing is normalised: weights do not compete, and a row sums to anything from 0 to the number of keys. One
    shouting token takes nothing from the others. The source sets β ≈ −ln n for n keys, so that a row starts near a sum
    of 1; the default here is −ln 41, and β learns. Adding a constant to all logits changes the weights.

    Source: Ramapuram et al. 2024, "Theory, analysis, and best practices for sigmoid self-attention",
    https://arxiv.org/abs/2409.04431, equation 3 (b there is β here).
    """

    name = "sigmoid"
    label = "Sigmoid"
    order = 50
    formula = r"w_i = \sigma(x_i + \beta)"
    source = "https://arxiv.org/abs/2409.04431"
    parameters_spec = (
        Parameter("beta", r"\beta", "the bias: about −ln of the number of keys", -math.log(TYPICAL_KEYS), -math.inf,
                  (-10.0, 5.0)),
    )  # fmt: skip
    row_sum = "any"

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        hidden = ~visible  # a visible −inf has weight 0 by itself
        x = logits.to(working_dtype(logits.dtype)).masked_fill(hidden, -torch.inf)
        weights = torch.sigmoid(x + self.value("beta").view(-1, 1, 1).to(x.dtype))
        return spoilt(weights, x, hidden).to(logits.dtype)

    def score(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits + self.value("beta").view(-1, 1, 1))

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """One for each other positive logit and σ(β) for each 0: a limit, unless all others are negative."""
        others = logits.sort().values[:-1]
        beta = self.value("beta")[0].double()
        if (others < 0).all():
            return torch.exp(factors[:, None] * others + beta).sum(-1)
        return ((others > 0).sum() + (others == 0).sum() * torch.sigmoid(beta)).expand_as(factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j σ(x_j + β), whatever the growing logit is."""
        return torch.sigmoid(others + self.value("beta")[0].double()).sum().expand_as(largest)
