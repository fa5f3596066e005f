"""Small enough to check by hand: the logits of one row, one prompt of a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz.inspect.reading import Floats
from ssa_viz.tasks import TASKS

OTHERS = (1.0, 0.5, 0.0, -0.5)  # logits of the keys that stay as they are while one grows


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
