"""Softpick: rectified softmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ssa_viz.scoring.base import ScoringFunction, prepared

EPS = 1e-8  # in the denominator, as in the source


class Softpick(ScoringFunction):
    r"""w_i = max(e^{x_i} − 1, 0) / (Σ_j |e^{x_j} − 1| + 1e-8) over the visible keys j.

    A key with x ≤ 0 gets nothing, and negative logits still take from the sum, so a row may be empty. All factors are
    taken relative to e^m with m = max(0, the row's largest logit), the ε included, as in the source. At x = 0 the
    derivative is 0 from both sides of the rectifier by convention: a row of zeros does not learn.
    Adding a constant to all logits changes the weights.

    Source: Zuhri, Fuadi, Aji 2025, "Softpick", https://arxiv.org/abs/2504.20966, equation 2.
    """

    name = "softpick"
    label = "Softpick"
    order = 22
    formula = r"w_i = \frac{\max(e^{x_i} - 1, 0)}{\sum_j |e^{x_j} - 1|}"
    source = "https://arxiv.org/abs/2504.20966"
    row_sum = "at most one"
    smooth = False

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        weights: Tensor = _Softpick.apply(logits, visible)  # type: ignore[no-untyped-call]
        return weights

    def score(self, logits: Tensor) -> Tensor:
        """The numerator; negative logits enter the denominator all the same."""
        return torch.expm1(logits).clamp(min=0.0)

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """Σ_j e^{λx_j} over the other positive logits, relative to the largest; 0 without any."""
        most = logits.max()
        if most <= 0:
            return torch.zeros_like(factors)
        others = logits.sort().values[:-1]
        scores = torch.where(others > 0, factors[:, None] * (others - most), -torch.inf).exp()
        return scores.sum(-1) / (1.0 + (others == most).sum())

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j max(e^{x_j} − 1, 0)·e^{−t}."""
        return torch.expm1(others).clamp(min=0.0).sum() * torch.exp(-largest)


class _Softpick(torch.autograd.Function):
    """e^x − 1 as −expm1(−|x|)·e^{max(x, 0)}, which neither overflows nor loses small logits."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, visible: Tensor) -> Tensor:
        x, hidden = prepared(logits, visible)  # a hidden 0 adds nothing to the sum
        most = x.amax(dim=-1, keepdim=True).clamp(min=0.0)
        sizes = torch.expm1(-x.abs()).neg_().mul_((x.clamp(min=0.0) - most).exp_())
        total = sizes.sum(dim=-1, keepdim=True) + EPS
        weights = torch.where(x > 0, sizes, 0.0).div_(total).masked_fill_(hidden, 0.0)
        ctx.save_for_backward(x, weights, most, total)
        ctx.dtypes = logits.dtype
        return weights.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, weights, most, total = ctx.saved_tensors
        grad = grad.to(weights.dtype)
        mean = (grad * weights).sum(dim=-1, keepdim=True)
        # d|e^x − 1|/dx = sgn(x)·e^x, relative to e^most. A hidden key was made 0 and so has sgn 0.
        through = torch.where(x > 0, grad, 0.0) - x.sign() * mean
        return (through * ((x - most).exp_() / total)).to(ctx.dtypes), None
