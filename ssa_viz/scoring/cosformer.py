"""CosFormer: a comparison of queries and keys without an exponential, weaker with distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssa_viz.scoring.base import Parameter, ScoringFunction, perhaps, prepared, spoilt


class CosFormer(ScoringFunction):
    r"""w_ij = x_ij / Σ_j x_ij over the visible keys, x_ij = relu(q_i)·relu(k_j)·cos(π/2·(i − j)/m).

    It compares queries and keys in its own way: its logits are these x, never negative, and not q·k/√D. A row without
    any positive x is empty. Multiplying all logits by one factor changes nothing; adding a constant does.
    The source takes m as the longest input of the batch, so that a token that comes later changes earlier rows; here m
    is a constant, at least the longest input that is meant, and a key m or more tokens away gets 0. With typed logits
    the x are these logits, for keys in one dimension and a query of 1 at the last position.

    Source: Qin et al. 2022, "cosFormer: rethinking softmax in attention", https://arxiv.org/abs/2202.08791,
    equation 10.
    """

    name = "cosformer"
    label = "CosFormer"
    order = 60
    formula = (
        r"\begin{gathered} w_{ij} = \frac{x_{ij}}{\sum_j x_{ij}} \\"
        r" x_{ij} = q_i^+ \cdot k_j^+ \cos\frac{\pi (i - j)}{2 m} \end{gathered}"
    )
    source = "https://arxiv.org/abs/2202.08791"
    parameters_spec = (
        Parameter("m", "m", "the distance at which a key gets nothing", 256.0, 0.0, (8.0, 512.0), constant=True),
    )
    row_sum = "one or zero"
    smooth = False

    def logits(self, query: Tensor, key: Tensor, places: Tensor) -> Tensor:
        distances = places[-query.shape[-2] :, None] - places  # (Q, K)
        m = self.value("m").view(-1, 1, 1)
        angles = (math.pi / 2) * distances.to(m.dtype) / m
        nearness = angles.clamp(-math.pi / 2, math.pi / 2).cos().clamp(min=0.0)  # (H, Q, K)
        return (query.relu() @ key.relu().transpose(-2, -1)) * nearness.to(query.dtype)

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        x, hidden = prepared(logits, visible)
        scores = x.relu()
        most = scores.detach().amax(dim=-1, keepdim=True)
        huge = most > torch.finfo(x.dtype).max / x.shape[-1]  # their sum might overflow
        if perhaps(huge):
            scores = scores / torch.where(huge, most, 1.0)
        total = scores.sum(dim=-1, keepdim=True)
        # Below the normal numbers a quotient has no finite slope: such a row counts as empty.
        weights = scores / torch.where(total < torch.finfo(x.dtype).tiny, torch.inf, total)
        return spoilt(weights, x, hidden).to(logits.dtype)

    def score(self, logits: Tensor) -> Tensor:
        return logits.relu()

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """1 − max_i x_i / Σ_j max(x_j, 0), whatever λ is; 0 for an empty row."""
        scores = logits.clamp(min=0.0).sort().values
        return (scores[:-1].sum() / scores.sum().clamp(min=torch.finfo(scores.dtype).tiny)).expand_as(factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j max(x_j, 0) / t."""
        return others.clamp(min=0.0).sum() / largest
