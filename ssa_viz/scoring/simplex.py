"""α-entmax: logits projected onto the simplex, by Newton's method on the threshold."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ssa_viz.scoring.base import left_out, working_dtype

STEPS = 40  # at most; seven or so are taken
SMALL = 0.1  # below it a series stands for (e^{−t} − 1 + t) / t²


def projected(logits: Tensor, visible: Tensor, alpha: Tensor) -> Tensor:
    r"""w = exp_α(x − τ) with Σ w = 1 over the visible keys; exp_α(u) = max(1 + (α − 1)u, 0)^{1 / (α − 1)}.

    At α = 1 that is e^u. α broadcasts to (H, 1, 1), 1 ≤ α ≤ 2. With s = w^{2 − α} on the support, the gradient by the
    logits is s⊙g − s·(Σ s⊙g / Σ s); that by α is proposition 1 of the second source. First derivatives only.

    Source: Peters, Niculae, Martins 2019, https://arxiv.org/abs/1905.05702, and Correia, Niculae, Martins 2019,
    https://arxiv.org/abs/1909.00015.
    """
    weights: Tensor = _Projected.apply(logits, visible, alpha)  # type: ignore[no-untyped-call]
    return weights


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, visible: Tensor, alpha: Tensor) -> Tensor:
        dtype = working_dtype(logits.dtype)
        hidden = left_out(logits, visible)
        z = logits.to(dtype).masked_fill(hidden, -torch.inf)
        most = z.amax(dim=-1, keepdim=True)
        bad = ~(most < torch.inf)  # a NaN or +inf
        z = (z - torch.where(most.isfinite(), most, 0.0)).masked_fill_(bad, 0.0)  # largest 0; hidden ones stay −inf
        q = alpha.to(dtype) - 1.0
        weights = _solve(z, q)
        weights.masked_fill_(bad, torch.nan).masked_fill_(hidden, 0.0)
        ctx.save_for_backward(weights, q)
        ctx.dtypes = logits.dtype
        return weights.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None]:
        weights, q = ctx.saved_tensors
        grad = grad.to(weights.dtype)
        slopes = torch.where(weights > 0, weights.pow(1.0 - q), weights)  # w^{2 − α} on the support; NaN rows stay NaN
        total = slopes.sum(dim=-1, keepdim=True)
        total = torch.where(total == 0, 1.0, total)
        by_logits = slopes * (grad - (slopes * grad).sum(dim=-1, keepdim=True) / total)
        by_alpha = None
        if ctx.needs_input_grad[2]:
            by_alpha = (grad * _by_alpha(weights, slopes, q)).sum_to_size(q.shape)
        return by_logits.to(ctx.dtypes), None, by_alpha


def _solve(z: Tensor, q: Tensor) -> Tensor:
    """exp_α(z − τ) with Σ = 1, for rows whose largest z is 0; a row of nothing but −inf gives zeros.

    ln Σ exp_α(z − τ) falls as τ grows from 0, where it is ≥ 0. On the support Σ exp_α is convex in τ, so Newton's steps
    from the left never pass the root; taken on ln Σ they are exact at α = 1 and larger elsewhere, and halved back into
    the bracket if they leave it.
    """
    logs = (z > -torch.inf).sum(dim=-1, keepdim=True).clamp(min=1).to(z.dtype).log()
    low = tau = torch.zeros_like(z[..., :1])
    high = torch.where(q * logs < 1e-6, logs, -torch.expm1(-q * logs) / q.clamp(min=1e-12))  # −ln_α(1/K), all equal
    for _ in range(STEPS):
        weights, slopes = _exponential(z, tau, q)
        total = weights.sum(dim=-1, keepdim=True)
        above = total >= 1.0
        low, high = torch.where(above, tau, low), torch.where(above, high, tau)
        moved = tau + total.log() * total / slopes.sum(dim=-1, keepdim=True)
        moved = torch.where((moved >= low) & (moved <= high), moved, (low + high) / 2)
        done = (total == 0) | ((moved - tau).abs() <= 4.0 * torch.finfo(z.dtype).eps * (1.0 + tau))
        tau = torch.where(done, tau, moved)
        if bool(done.all()):
            break
    weights, _ = _exponential(z, tau, q)
    total = weights.sum(dim=-1, keepdim=True)
    return weights.div_(torch.where(total == 0, 1.0, total))  # what rounding left over


def _exponential(z: Tensor, tau: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """p = exp_α(z − τ) and its slope p^{1 − q}, which is p / (1 + q(z − τ)) on the support; q = α − 1."""
    if q.numel() == 1 and float(q) in (0.5, 1.0):
        base = torch.add(1.0 - q * tau, z, alpha=float(q)).clamp_(min=0.0)
        return (base, base.sign()) if q == 1.0 else (base.square(), base)
    u = z - tau
    base = (q * u).clamp_(min=-1.0)
    logs = base.log1p() / q.clamp(min=torch.finfo(u.dtype).tiny)  # exact down to α = 1
    p = torch.where(q > 0, logs, u).exp_()
    return p, torch.where(p > 0, p / (1.0 + base), 0.0)


def _by_alpha(p: Tensor, s: Tensor, q: Tensor) -> Tensor:
    r"""∂w/∂α, the source's proposition 1, written without its differences over (α − 1)².

    With L = ln p, s = p^{1 − q}, m = Σ pL, e = (e^{−qL} − 1 + qL) / q² → L²/2 and M = Σ pe:
    ∂p/∂α = p·(M − e − q(L·M − m·e)) / Σ s.
    """
    logs = torch.where(p > 0, p, 1.0).log()
    entropy = p * logs
    t = q * logs
    series = 0.5 - t * (1 / 6 - t * (1 / 24 - t * (1 / 120 - t / 720)))
    exact = (s - p + q * entropy) / q.square().clamp(min=torch.finfo(p.dtype).tiny)
    curved = torch.where(t.abs() < SMALL, entropy * logs * series, exact)  # p·e
    m, total = entropy.sum(dim=-1, keepdim=True), curved.sum(dim=-1, keepdim=True)
    sums = s.sum(dim=-1, keepdim=True)
    change = p * total - curved - q * (entropy * total - m * curved)
    return change / torch.where(sums == 0, 1.0, sums)
