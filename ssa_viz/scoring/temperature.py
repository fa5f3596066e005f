"""Softmax with a temperature."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import Parameter, ScoringFunction, working_dtype
from ssa_viz.scoring.softmax import exponential_rest, scaled_softmax


class Temperature(ScoringFunction):
    r"""w_i = e^{x_i / T} / Σ_j e^{x_j / T} over the visible keys j, T > 0.

    T → ∞ is uniform, T → 0 gives everything to the largest logit, T = 1 is softmax. Adding a constant to all logits
    changes nothing. A learned temperature changes how fast the other keys are lost, not that they are: e^{−λΔ/T}.
    A quotient too large for its dtype counts as the largest number there is.

    Source: Hinton, Vinyals, Dean 2015, https://arxiv.org/abs/1503.02531, equation 1.
    """

    name = "temperature"
    label = "Temperature"
    order = 10
    formula = r"w_i = \frac{e^{x_i / T}}{\sum_j e^{x_j / T}}"
    source = "https://arxiv.org/abs/1503.02531"
    parameters_spec = (Parameter("T", "T", "higher is flatter", 2.0, 0.0, (0.1, 10.0)),)

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        return scaled_softmax(logits, visible, self._factor(logits))

    def score(self, logits: Tensor) -> Tensor:
        return (logits * self._factor(logits)).exp()

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """As softmax's, of x / T."""
        return exponential_rest(logits * self._factor(logits)[0, 0, 0], factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j e^{x_j / T}·e^{−t / T}."""
        factor = self._factor(others)[0, 0, 0]
        return (torch.logsumexp(others * factor, 0) - largest * factor).exp()

    def _factor(self, logits: Tensor) -> Tensor:
        return 1.0 / self.value("T").view(-1, 1, 1).to(working_dtype(logits.dtype))
