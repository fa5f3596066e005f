"""Is every number so far positive?"""

from __future__ import annotations

from torch import Tensor

from ssa_viz.tasks.base import Quantifier


class Every(Quantifier):
    """True while every number so far is above 0; the first number that is not makes it False for good."""

    name = "every"
    label = "Every"
    question = "Is every number so far positive?"
    order = 0
    decisive_sign = -1

    def answers(self, numbers: Tensor, function: Tensor) -> Tensor:
        return (numbers > 0).cummin(dim=1).values.to(numbers.dtype)
