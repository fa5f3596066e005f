"""Scalable-Softmax: softmax that sharpens with the number of keys."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssa_viz.scoring.base import Parameter, ScoringFunction, left_out, working_dtype
from ssa_viz.scoring.softmax import exponential_rest, scaled_softmax


class SSMax(ScoringFunction):
    r"""w_i = n^{s·x_i} / Σ_j n^{s·x_j} over the n visible keys j: softmax of s·ln(n)·x, s > 0.

    n is counted in each row, so that a padded or causal row equals the same row alone; the source's length is that of
    the whole input. A row of one visible key is that key. Made against weights that thin out as the input grows: a
    longer row is sharper, so one large logit takes all sooner, not later. s·ln(n) = 1 is softmax. Adding a constant to
    all logits changes nothing. A product too large for its dtype counts as the largest number there is.

    The source learns s from an initial value; the default here is the 0.43 that it found trained heads to prefer.
    Source: Nakanishi 2025, "Scalable-Softmax is superior for attention", https://arxiv.org/abs/2501.19399, equation 2.
    """

    name = "ssmax"
    label = "SSMax"
    order = 12
    formula = r"\begin{gathered} w_i = \frac{n^{s x_i}}{\sum_j n^{s x_j}} \\ n \text{ visible keys} \end{gathered}"
    source = "https://arxiv.org/abs/2501.19399"
    parameters_spec = (Parameter("s", "s", "how much a longer row is sharpened", 0.43, 0.0, (0.05, 2.0)),)

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        count = logits.shape[-1] - left_out(logits, visible).sum(dim=-1, keepdim=True, dtype=torch.int32)
        s = self.value("s").view(-1, 1, 1).to(working_dtype(logits.dtype))
        return scaled_softmax(logits, visible, s * count.clamp(min=1).to(s.dtype).log())

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """As softmax's, of s·ln(n)·x."""
        return exponential_rest(logits * self.value("s")[0] * math.log(len(logits)), factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j n^{s·x_j}·n^{−s·t}."""
        factor = self.value("s")[0] * math.log(len(others) + 1)
        return (torch.logsumexp(others * factor, 0) - largest * factor).exp()
