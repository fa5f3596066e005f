"""Softmax, the scoring function of almost every transformer."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import ScoringFunction, left_out, working_dtype


class Softmax(ScoringFunction):
    r"""w_i = e^{x_i} / Σ_j e^{x_j} over the visible keys j.

    Source: Bridle 1990; in attention, Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, equation 1.
    """

    name = "softmax"
    label = "Softmax"
    order = 0
    formula = r"w_i = \frac{e^{x_i}}{\sum_j e^{x_j}}"
    source = "https://arxiv.org/abs/1706.03762"

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        hidden = left_out(logits, visible)
        scores = logits.masked_fill(hidden, -torch.inf)
        weights = torch.softmax(scores, dim=-1, dtype=working_dtype(logits.dtype))
        # A row without a visible key is 0/0 = NaN here; filling what is hidden makes it zeros.
        return weights.masked_fill(hidden, 0.0).to(logits.dtype)

    def score(self, logits: Tensor) -> Tensor:
        return logits.exp()

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        r"""k·e^{−λΔ}: Δ is the distance from the largest logit to the k next ones. With c > 1 keys sharing the
        largest logit it is (c − 1) / c for every large λ."""
        return exponential_rest(logits, factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j e^{x_j}·e^{−t}."""
        return (torch.logsumexp(others, 0) - largest).exp()


def exponential_rest(logits: Tensor, factors: Tensor) -> Tensor:
    """k·e^{−λΔ} or (c − 1) / c, as in `Softmax.magnified`: (K,) and λ (F,) → (F,)."""
    most = logits.max()
    sharing = int((logits == most).sum())
    if sharing > 1:
        return torch.full_like(factors, (sharing - 1) / sharing)
    distances = most - logits[logits < most]
    nearest = distances.min()
    return (distances == nearest).sum() * torch.exp(-factors * nearest)
