"""Softmax made sharper where its entropy is high."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import ScoringFunction, left_out
from ssa_viz.scoring.softmax import Softmax, exponential_rest, normalised, scaled_softmax

COEFFICIENTS = (-0.037, 0.481, -2.3, 4.917, -1.791)  # of H⁴, H³, H², H, 1
LEAST_ENTROPY = 0.5
EPS = 1e-9  # inside the logarithm, as in the source


class AdaptiveTemperature(ScoringFunction):
    r"""Softmax of βx, where β ≥ 1 follows from the entropy H of the row's own softmax p.

    H = −Σ_j p_j ln(p_j + 1e-9), in nats; β = max(1, −0.037 H⁴ + 0.481 H³ − 2.3 H² + 4.917 H − 1.791) if H > 0.5,
    else 1. So a row that is spread out is sharpened, and one that is sharp is left alone: where softmax collapses, this
    does too. The source uses it at inference, on a model trained with softmax; trained with it, the gradient here goes
    through β as well. No parameters. Adding a constant to all logits changes nothing.

    Source: Veličković et al. 2024, "softmax is not enough", https://arxiv.org/abs/2410.01104, section 4.
    """

    name = "adaptive_temperature"
    label = "Adaptive temperature"
    order = 11
    formula = (
        r"\begin{gathered} w_i = \frac{e^{\beta x_i}}{\sum_j e^{\beta x_j}} \\"
        r" \beta = \max(1, \mathrm{poly}_4(H(p))) \end{gathered}"
    )
    source = "https://arxiv.org/abs/2410.01104"
    smooth = False

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        return scaled_softmax(logits, visible, self.sharpness(logits, visible))

    def sharpness(self, logits: Tensor, visible: Tensor) -> Tensor:
        """β of each row, (B, H, Q, 1)."""
        p = normalised(logits, left_out(logits, visible))
        entropy = -(p * (p + EPS).log()).sum(dim=-1, keepdim=True)
        fit = torch.zeros_like(entropy)
        for coefficient in COEFFICIENTS:
            fit = fit * entropy + coefficient
        sharp = (fit > 1.0) & (entropy > LEAST_ENTROPY)
        # A row with a NaN keeps β = 1: its weights become NaN by themselves.
        return torch.where(sharp, fit, 1.0)

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """As softmax's: β is 1 once the row is sharp, and does not matter where only equal logits remain."""
        return exponential_rest(logits, factors)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """As softmax's: β is 1 once the row is sharp."""
        return Softmax(1).grown(others, largest)
