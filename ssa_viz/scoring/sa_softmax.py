"""SA-Softmax: softmax times the logit."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import ScoringFunction, prepared
from ssa_viz.scoring.softmax import normalised


class SASoftmax(ScoringFunction):
    r"""w_i = (x_i − m) / (M − m)·softmax(x)_i over the visible keys, m = min(0, min_j x_j), M = max(0, max_j x_j).

    The normalised form of the source, which has x·softmax(x) too; that one has negative weights. Both are meant to keep
    gradients alive where softmax is saturated. Rows sum to less than 1. A row whose visible logits are all 0 has no
    range, 0/0 in the source; here it is empty. The smallest negative logit of a row gets nothing.
    Adding a constant to all logits changes the weights. Computed relative to the larger of M and −m, so that M − m
    does not overflow.

    Source: Zheng et al. 2025, "Self-adjust softmax", https://arxiv.org/abs/2502.18277, section 3.
    """

    name = "sa_softmax"
    label = "SA-Softmax"
    order = 40
    formula = r"w_i = \frac{x_i - m}{M - m}\,\frac{e^{x_i}}{\sum_j e^{x_j}}"
    source = "https://arxiv.org/abs/2502.18277"
    row_sum = "at most one"
    smooth = False

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        x, hidden = prepared(logits, visible)  # a hidden 0 changes neither min(0, ·) nor max(0, ·)
        low, high = torch.aminmax(x, dim=-1, keepdim=True)
        low, high = low.clamp(max=0.0), high.clamp(min=0.0)
        size = torch.maximum(high, -low).detach()
        # Below the normal numbers a quotient has no finite slope: such a row counts as one of zeros.
        size = torch.where(size < torch.finfo(x.dtype).tiny, torch.inf, size)
        low, high = low / size, high / size
        span = high - low
        share = (x / size - low) / torch.where(span == 0, 1.0, span)
        return torch.where(hidden, 0.0, share * normalised(x, hidden)).to(logits.dtype)

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """(x₂ − m) / (M − m)·k·e^{−λΔ} of the k next logits; the factor does not change with λ. With c sharing the
        largest, (x₁ − m) / (M − m)·(c − 1) / c."""
        low, high = logits.min().clamp(max=0.0), logits.max().clamp(min=0.0)
        if high == low:
            return torch.zeros_like(factors)
        most = logits.max()
        sharing = int((logits == most).sum())
        if sharing > 1:
            return torch.full_like(factors, float((most - low) / (high - low)) * (sharing - 1) / sharing)
        following = logits[logits < most].max()
        count = (logits == following).sum()
        return (following - low) / (high - low) * count * torch.exp(factors * (following - most))

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j (x_j − m)·e^{x_j}·e^{−t} / (t − m)."""
        low = others.min().clamp(max=0.0)
        return ((others - low) * others.exp()).sum() * torch.exp(-largest) / (largest - low)
