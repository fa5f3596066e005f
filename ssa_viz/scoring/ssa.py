"""Scaled Signed Averaging: a scoring function with polynomial instead of exponential tails."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ssa_viz.kernels import fused
from ssa_viz.scoring.base import Parameter, ScoringFunction, left_out, working_dtype


class SSA(ScoringFunction):
    r"""w_i = s(x_i) / Σ_j s(x_j) over the visible keys j, with s(x) = (1 + b|x|)^(sgn(x)·n), b > 0, n ≥ 1.

    Computed as the softmax of z(x) = n·sgn(x)·log(1 + b|x|), which is the same number and does not overflow:
    a logit beyond finfo.max / b in size, the only one whose product with b would, counts as that bound.
    Gradients are the closed forms dz/dx = n·b / (1 + b|x|) (n·b at x = 0, where automatic differentiation of
    the sign gives 0), dz/dn = sgn(x)·log(1 + b|x|), dz/db = n·x / (1 + b|x|). First derivatives only.

    n = m, b = 1/m, m → ∞ is softmax. Not invariant to adding a constant to the logits.
    Source: Naim, Bhar, Bolte, Asher, ACL 2026, https://arxiv.org/abs/2508.14685.
    """

    name = "ssa"
    label = "SSA"
    order = 1
    formula = r"w_i = \frac{(1 + b|x_i|)^{\mathrm{sgn}(x_i)\,n}}{\sum_j (1 + b|x_j|)^{\mathrm{sgn}(x_j)\,n}}"
    source = "https://arxiv.org/abs/2508.14685"
    parameters_spec = (
        Parameter("n", "n", "the power: higher is sharper", 1.5, 1.0, (1.0, 6.0), inclusive=True),
        Parameter("b", "b", "the scale of the logits", 1.0, 0.0, (0.05, 10.0)),
    )

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        n = self.value("n").view(-1, 1, 1)
        b = self.value("b").view(-1, 1, 1)
        weights: Tensor = _NormalisedSSA.apply(logits, visible, n, b)  # type: ignore[no-untyped-call]
        return weights

    def implementation(self, logits: Tensor) -> str:
        return "fused" if _fusible(logits.to(working_dtype(logits.dtype)), self.value("n")) else "torch"

    def score(self, logits: Tensor) -> Tensor:
        n, b = self.value("n").view(-1, 1, 1), self.value("b").view(-1, 1, 1)
        return torch.exp(torch.copysign(torch.log1p(b * logits.abs()), logits) * n)

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        r"""Where at least two logits are positive, the limit 1 − max_i x_i^n / Σ_j max(x_j, 0)^n, above 0.

        For large λ, s(λx) tends to (bλx)^n for x > 0, is 1 at x = 0, and tends to (bλ|x|)^{−n} for x < 0. The sum of
        these, without the largest, over the largest is what remains: a power of λ where one logit alone is
        positive or, with none positive, alone is 0.
        """
        n, b = self.value("n")[0].double(), self.value("b")[0].double()
        powers = torch.sign(logits) * n * torch.log(b * factors[:, None] * logits.abs())  # (F, K), NaN where x = 0
        scores = torch.where(logits == 0, 0.0, powers)
        strongest = int(logits.argmax())
        level = logits.sign().max()
        leading = logits.sign() == level
        leading[strongest] = False
        if leading.any():  # others grow as fast as the strongest: a limit, in which only they and it remain
            kept = leading.clone()
            kept[strongest] = True
            return 1 - torch.softmax(scores[:, kept], -1)[:, int(kept[:strongest].sum())]
        rest = logits.sign() == logits.sign()[torch.arange(len(logits)) != strongest].max()
        rest[strongest] = False
        return torch.exp(torch.logsumexp(scores[:, rest], -1) - scores[:, strongest])

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j s(x_j)·(1 + bt)^{−n}."""
        n, b = self.value("n")[0].double(), self.value("b")[0].double()
        powers = n * torch.copysign(torch.log1p(b * others.abs()), others)
        return torch.exp(torch.logsumexp(powers, 0) - n * torch.log1p(b * largest))


class _NormalisedSSA(torch.autograd.Function):
    """Forward and backward of SSA with its normalisation in one node: no intermediate is kept twice.

    On a CPU large float32 rows go through one fused loop each way (ssa_viz.kernels.ssa), the same formulas.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, visible: Tensor, n: Tensor, b: Tensor) -> Tensor:
        dtype = working_dtype(logits.dtype)
        n, b = n.to(dtype), b.to(dtype)
        ctx.dtypes = logits.dtype
        x = logits.to(dtype)
        ctx.fused = _fusible(x, n)
        if ctx.fused:
            weights = fused.ssa(x, visible, n, b)
        else:
            x, weights = _forward(x, left_out(logits, visible), n, b)
        ctx.save_for_backward(x, weights, n, b)
        return weights.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None, Tensor | None]:
        x, weights, n, b = ctx.saved_tensors
        grad = grad.to(weights.dtype)
        if ctx.fused:
            by_x, by_n, by_b = fused.ssa_gradients(x, weights, grad, n, b)
            return by_x.to(ctx.dtypes), None, by_n, by_b
        dz = weights * (grad - (grad * weights).sum(-1, keepdim=True))
        slope = 1.0 / (1.0 + b * x.abs())
        dx = (dz * slope * (n * b)).to(ctx.dtypes)
        needs_n, needs_b = ctx.needs_input_grad[2:]
        dn = _per_head(dz * torch.copysign(torch.log1p(b * x.abs()), x)) if needs_n else None
        db = _per_head(dz * slope * x) * n if needs_b else None
        return dx, None, dn, db


def _fusible(x: Tensor, n: Tensor) -> bool:
    return fused.usable(x) and float(n.detach().max()) <= fused.MOST_N


def _forward(x: Tensor, hidden: Tensor, n: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The logits with those left out replaced, and the weights."""
    # Replaced before any arithmetic: a hidden NaN or −inf must not reach the gradients of n and b.
    x = x.masked_fill(hidden, 0.0)
    bound = torch.finfo(x.dtype).max / b.clamp(min=1.0)
    x = torch.where(x.isinf(), x, torch.clamp(x, -bound, bound))
    z = torch.copysign(torch.log1p(b * x.abs()), x).mul_(n)
    weights = torch.softmax(z.masked_fill_(hidden, -torch.inf), dim=-1)
    return x, weights.masked_fill_(hidden, 0.0)


def _per_head(terms: Tensor) -> Tensor:
    """Sum (B, H, Q, K) over everything but the head, to (H, 1, 1)."""
    return terms.sum(dim=(0, 2, 3)).view(-1, 1, 1)
