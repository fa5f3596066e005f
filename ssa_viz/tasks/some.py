"""Is some number so far positive?"""

from __future__ import annotations

from torch import Tensor

from ssa_viz.tasks.base import Quantifier


class Some(Quantifier):
    """False until a number is above 0, which makes it True for good."""

    name = "some"
    label = "Some"
    question = "Is some number so far positive?"
    order = 1
    decisive_sign = 1

    def answers(self, numbers: Tensor, function: Tensor) -> Tensor:
        return (numbers > 0).cummax(dim=1).values.to(numbers.dtype)
