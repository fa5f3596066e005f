"""Softmax, the scoring function of almost every transformer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ssa_viz.kernels import fused
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
        if fused.usable(logits):
            weights: Tensor = _FusedSoftmax.apply(logits, visible)  # type: ignore[no-untyped-call]
            return weights
        hidden = left_out(logits, visible)
        scores = logits.masked_fill(hidden, -torch.inf)
        weights = torch.softmax(scores, dim=-1, dtype=working_dtype(logits.dtype))
        # A row without a visible key is 0/0 = NaN here; filling what is hidden makes it zeros.
        return weights.masked_fill(hidden, 0.0).to(logits.dtype)

    def implementation(self, logits: Tensor) -> str:
        return "fused" if fused.usable(logits) else "torch"

    def score(self, logits: Tensor) -> Tensor:
        return logits.exp()

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        r"""k·e^{−λΔ}: Δ is the distance from the largest logit to the k next ones. With c > 1 keys sharing the
        largest logit it is (c − 1) / c for every large λ."""
        return exponential_rest(logits, factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j e^{x_j}·e^{−t}."""
        return (torch.logsumexp(others, 0) - largest).exp()


class _FusedSoftmax(torch.autograd.Function):
    """The mask, the exponential and the sum in one loop, for large float32 rows on a CPU."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, visible: Tensor) -> Tensor:
        weights = fused.softmax(logits, visible)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return fused.softmax_gradient(weights, grad), None


def exponential_rest(logits: Tensor, factors: Tensor) -> Tensor:
    """k·e^{−λΔ} or (c − 1) / c, as in `Softmax.magnified`: (K,) and λ (F,) → (F,)."""
    most = logits.max()
    sharing = int((logits == most).sum())
    if sharing > 1:
        return torch.full_like(factors, (sharing - 1) / sharing)
    distances = most - logits[logits < most]
    nearest = distances.min()
    return (distances == nearest).sum() * torch.exp(-factors * nearest)
