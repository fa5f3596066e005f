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

    First derivatives only where large rows on a CPU go through one compiled loop (ssa_viz.kernels).
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
        return normalised(logits, left_out(logits, visible)).to(logits.dtype)

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


def normalised(logits: Tensor, hidden: Tensor) -> Tensor:
    """e^x over its sum in each row, in the dtype to work in; what is hidden, and so a row of nothing else, is 0."""
    scores = torch.where(hidden, -torch.inf, logits)  # half the time of masked_fill
    # A row without a visible key is 0/0 = NaN here; filling what is hidden makes it zeros.
    return torch.where(hidden, 0.0, torch.softmax(scores, dim=-1, dtype=working_dtype(logits.dtype)))


def scaled_softmax(logits: Tensor, visible: Tensor, factor: Tensor) -> Tensor:
    """Softmax of factor·x, for a factor > 0 that broadcasts to the logits, one per head or one per row.

    A product too large for its dtype counts as the largest number there is. First derivatives only.
    """
    weights: Tensor = _ScaledSoftmax.apply(logits, visible, factor)  # type: ignore[no-untyped-call]
    return weights


class _ScaledSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, visible: Tensor, factor: Tensor) -> Tensor:
        x = logits.to(working_dtype(logits.dtype))
        factor = factor.to(x.dtype)
        most = torch.finfo(x.dtype).max
        z = torch.where(x.isinf(), x, (x * factor).clamp_(-most, most))
        weights = fused.softmax(z, visible) if fused.usable(z) else normalised(z, left_out(z, visible))
        ctx.save_for_backward(x, weights, factor)
        ctx.dtypes = logits.dtype
        return weights.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None]:
        x, weights, factor = ctx.saved_tensors
        dz = through_softmax(weights, grad.to(weights.dtype))
        by_factor = None
        if ctx.needs_input_grad[2]:
            # Σ dz is 0, so a constant may be taken off x: the largest, for equal large logits not to leave a rounding
            # error times their size. What has no weight has no influence, not even a hidden NaN.
            none = weights == 0
            distance = x - x.masked_fill(none, -torch.inf).amax(dim=-1, keepdim=True)
            by_factor = (dz * distance.masked_fill(none, 0.0)).sum_to_size(factor.shape)
        return (dz * factor).to(ctx.dtypes), None, by_factor


def through_softmax(weights: Tensor, grad: Tensor) -> Tensor:
    """w·(g − Σ g·w): the gradient by the exponents of weights e^z / (c + Σ e^z), for any c ≥ 0."""
    if fused.usable(weights):
        return fused.softmax_gradient(weights, grad)
    return weights * (grad - (grad * weights).sum(-1, keepdim=True))


def exponential_rest(logits: Tensor, factors: Tensor) -> Tensor:
    """k·e^{−λΔ} or (c − 1) / c, as in `Softmax.magnified`: (K,) and λ (F,) → (F,)."""
    most = logits.max()
    sharing = int((logits == most).sum())
    if sharing > 1:
        return torch.full_like(factors, (sharing - 1) / sharing)
    distances = most - logits[logits < most]
    nearest = distances.min()
    return (distances == nearest).sum() * torch.exp(-factors * nearest)
