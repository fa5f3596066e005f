"""Softmax with a learned sink: one more logit that belongs to no token."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ssa_viz.kernels import fused
from ssa_viz.scoring.base import Parameter, ScoringFunction, left_out, working_dtype
from ssa_viz.scoring.softmax import normalised, through_softmax


class Sink(ScoringFunction):
    r"""w_i = e^{x_i} / (e^c + Σ_j e^{x_j}) over the visible keys j, with a logit c per head that no key has.

    The sink's share, 1 − Σ w, goes to no token: a head can look away. c → −∞ is softmax, c = 0 is softmax-plus-one.
    Adding a constant to all logits changes the weights, since the sink stays. The share is not shown as a token.

    Source: OpenAI 2025, gpt-oss, https://arxiv.org/abs/2508.10925, and Xiao et al. 2023 for the sinks that softmax
    makes for itself, https://arxiv.org/abs/2309.17453.
    """

    name = "sink"
    label = "Sink logit"
    order = 21
    formula = r"w_i = \frac{e^{x_i}}{e^{c} + \sum_j e^{x_j}}"
    source = "https://arxiv.org/abs/2508.10925"
    parameters_spec = (Parameter("c", "c", "the logit of the sink: higher takes more", 0.0, -math.inf, (-5.0, 10.0)),)
    row_sum = "at most one"

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        return with_sink(logits, visible, self.value("c").view(-1, 1, 1))

    def score(self, logits: Tensor) -> Tensor:
        return logits.exp()

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        return magnified_beside_sink(logits, factors, self.value("c")[0])

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j e^{x_j}·e^{−t}: a token that outgrows the others outgrows the sink too."""
        return (torch.logsumexp(others, 0) - largest).exp()


def with_sink(logits: Tensor, visible: Tensor, sink: Tensor) -> Tensor:
    """e^x / (e^sink + Σ e^x) over the visible keys; the sink broadcasts to (H, 1, 1). First derivatives only."""
    weights: Tensor = _WithSink.apply(logits, visible, sink)  # type: ignore[no-untyped-call]
    return weights


def magnified_beside_sink(logits: Tensor, factors: Tensor, sink: Tensor) -> Tensor:
    """Σ_j e^{λx_j} without the largest, over e^c + Σ e^{λx}: exact, with logarithms so that nothing overflows."""
    rows = (factors[:, None] * logits).sort(dim=-1).values  # (F, K)
    column = sink.to(rows.dtype).expand(len(rows), 1)
    return (torch.logsumexp(rows[:, :-1], -1) - torch.logsumexp(torch.cat([rows, column], -1), -1)).exp()


class _WithSink(torch.autograd.Function):
    """Softmax times what the sink leaves, σ(ln Σ e^x − sink)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, visible: Tensor, sink: Tensor) -> Tensor:
        x = logits.to(working_dtype(logits.dtype))
        sink = sink.to(x.dtype)
        hidden = left_out(x, visible)
        weights = fused.softmax(x, visible) if fused.usable(x) else normalised(x, hidden)
        largest = weights.amax(dim=-1, keepdim=True)
        # The largest logit is ln Σ e^x + ln of its weight. An empty row has neither.
        total = torch.where(hidden, -torch.inf, x).amax(dim=-1, keepdim=True) - largest.log()
        kept = torch.where(largest == 0, 0.0, torch.sigmoid(total - sink))
        weights = weights.mul_(kept).masked_fill_(hidden, 0.0)
        ctx.save_for_backward(weights, torch.where(largest == 0, 1.0, torch.sigmoid(sink - total)))
        ctx.dtypes = logits.dtype
        ctx.sink_shape = sink.shape
        return weights.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None]:
        weights, sunk = ctx.saved_tensors  # sunk by itself: 1 − kept is lost beside 1 where the sink is far below
        grad = grad.to(weights.dtype)
        by_sink = None
        if ctx.needs_input_grad[2]:
            mean = (grad * weights).sum(dim=-1, keepdim=True)
            by_sink = -(sunk * mean).sum_to_size(ctx.sink_shape)
        return through_softmax(weights, grad).to(ctx.dtypes), None, by_sink
