"""Softmax with one more in the denominator."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import ScoringFunction
from ssa_viz.scoring.sink import magnified_beside_sink, with_sink


class SoftmaxPlusOne(ScoringFunction):
    r"""w_i = e^{x_i} / (1 + Σ_j e^{x_j}) over the visible keys j, also called quiet attention.

    A row whose logits are all very negative is nearly empty: the rest, 1 / (1 + Σ e^x), goes to no token. The 1 is
    that of the formula, not of the shifted exponentials: logits [−10, −10] give 4.5e-5 each. Adding a constant to all
    logits changes the weights. The same as a sink logit fixed at 0.

    Source: Miller 2023, "Attention is off by one", https://www.evanmiller.org/attention-is-off-by-one.html.
    """

    name = "softmax_plus_one"
    label = "Softmax plus one"
    order = 20
    formula = r"w_i = \frac{e^{x_i}}{1 + \sum_j e^{x_j}}"
    source = "https://www.evanmiller.org/attention-is-off-by-one.html"
    row_sum = "at most one"

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        return with_sink(logits, visible, logits.new_zeros(1, 1, 1))

    def score(self, logits: Tensor) -> Tensor:
        return logits.exp()

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """Σ_j e^{λx_j} without the largest, over 1 + Σ e^{λx}."""
        return magnified_beside_sink(logits, factors, logits.new_zeros(()))

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j e^{x_j}·e^{−t}."""
        return (torch.logsumexp(others, 0) - largest).exp()
