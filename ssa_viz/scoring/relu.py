"""ReLU attention: every key on its own, in proportion to its logit."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz.scoring.base import ScoringFunction, prepared, spoilt


class ReLU(ScoringFunction):
    r"""w_i = max(x_i, 0) / n for each visible key i, n the number of visible keys in its row.

    Nothing is normalised: a weight grows with its logit without bound, and takes nothing from the others. The source
    divides by the length of the input; in a causal row that is the number of keys seen. Keys with x ≤ 0 get nothing and
    do not learn. Adding a constant to all logits changes the weights.

    Source: Wortsman et al. 2023, "Replacing softmax with ReLU in vision transformers",
    https://arxiv.org/abs/2309.08586, section 3.
    """

    name = "relu"
    label = "ReLU"
    order = 51
    formula = r"w_i = \frac{\max(x_i, 0)}{n}"
    source = "https://arxiv.org/abs/2309.08586"
    row_sum = "any"
    smooth = False

    def forward(self, logits: Tensor, visible: Tensor) -> Tensor:
        x, hidden = prepared(logits, visible)
        count = (x.shape[-1] - hidden.sum(dim=-1, keepdim=True, dtype=torch.int32)).clamp(min=1)
        return spoilt(x.relu() / count, x, hidden).to(logits.dtype)

    def score(self, logits: Tensor) -> Tensor:
        return logits.relu()

    def magnified(self, logits: Tensor, factors: Tensor) -> Tensor:
        """λ·Σ_j max(x_j, 0) / n over the others: it grows."""
        return factors * logits.sort().values[:-1].clamp(min=0.0).sum() / len(logits)

    def grown(self, others: Tensor, largest: Tensor) -> Tensor:
        """Σ_j max(x_j, 0) / n, whatever the growing logit is."""
        return (others.clamp(min=0.0).sum() / (len(others) + 1)).expand_as(largest)
