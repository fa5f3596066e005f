"""Attention small enough to check by hand: one row with chosen logits, one prompt of a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.inspect.reading import Floats
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS

OTHERS = (1.0, 0.5, 0.0, -0.5)  # logits of the keys that stay as they are while one grows


@dataclass(frozen=True)
class Row:
    """One query's row over K keys, all of them visible.

    Attributes:
        logits, weights: float64, (K,).
        contextual_mass, effective_tokens: of the row.
        collapsed: largest weight above 0.9 with 4 or more keys.
    """

    logits: NDArray[np.float64]
    weights: NDArray[np.float64]
    contextual_mass: float
    effective_tokens: float
    collapsed: bool


@dataclass(frozen=True)
class LaidOut:
    """A prompt as a model reads it.

    Attributes:
        tokens: float32, (T,).
        reads: the token at which each of the N answers is read, (N,).
        answers: the truth there, (N,).
    """

    tokens: Floats
    reads: NDArray[np.int64]
    answers: Floats


@torch.no_grad()
def row(scoring: str, logits: Sequence[float]) -> Row:
    """What the scoring function makes of one row's logits, with its starting parameters.

    Raises:
        UnknownNameError: there is no such scoring function.
        InvalidInputError: no logit.
        NonFiniteError: a logit is NaN or infinite.
    """
    if not len(logits):
        raise InvalidInputError("a row needs at least one logit")
    given = torch.tensor(list(logits), dtype=torch.float64)
    if not given.isfinite().all():
        raise NonFiniteError("a logit is NaN or infinite; give finite numbers")
    visible = torch.ones_like(given, dtype=torch.bool)
    weights: Tensor = SCORING[scoring](1).double()(given.view(1, 1, 1, -1), visible)[0, 0, 0]
    return Row(
        logits=given.numpy(),
        weights=weights.numpy(),
        contextual_mass=float(metrics.contextual_mass(weights)),
        effective_tokens=float(metrics.effective_tokens(weights)),
        collapsed=bool(metrics.collapsed(weights, visible)),
    )


def laid_out(task: str, prompt_format: str, numbers: Sequence[float], function: Sequence[float] = ()) -> LaidOut:
    """`numbers` as a prompt of `task`; `function` is (a, b) for `linear` and empty for the quantifiers.

    Raises:
        UnknownNameError: there is no such task.
        InvalidInputError: the task has no such format, or there is no number.
    """
    prompts = TASKS[task]().layout(
        torch.tensor([list(numbers)], dtype=torch.float32), torch.tensor([list(function)]), prompt_format
    )
    return LaidOut(prompts.tokens[0].numpy(), prompts.reads.numpy(), prompts.answers[0].numpy())
