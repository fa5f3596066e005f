"""The same sequence with the injected value growing: where does a model let go of the context?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError
from ssa_viz.inspect.reading import Floats, Problem, check_fits, said
from ssa_viz.model import Decoder
from ssa_viz.tasks import TASKS


@dataclass(frozen=True)
class Sweep:
    """One model over V injected values, at the injected value's own position.

    Attributes:
        values: what was injected, (V,).
        largest_weight, contextual_mass: of the row whose query is the injected value, (V, L, H).
        predictions: P(True), or the predicted number, (V,).
        truth: 1 or 0, or the true number, (V,).
        error: 1 or 0 where the answer is wrong or right, or the squared error, (V,).
    """

    values: NDArray[np.float64]
    largest_weight: Floats
    contextual_mass: Floats
    predictions: Floats
    truth: Floats
    error: Floats

    def first_wrong(self, limit: float = 0.5) -> float | None:
        """The value smallest in size at which the error at the injected position exceeds `limit`; None if none.

        With the default, the first wrong answer of a quantifier.
        """
        wrong = self.values[self.error > limit]
        return float(wrong[np.argmin(np.abs(wrong))]) if len(wrong) else None


def magnitudes(sign: int = 1, count: int = 41) -> NDArray[np.float64]:
    """`count` values from 1 to 10⁴, evenly spaced on a log axis, with the given sign."""
    return sign * np.logspace(0, 4, count)


@torch.no_grad()
def sweep(model: Decoder, problem: Problem, values: Sequence[float] | NDArray[np.float64]) -> Sweep:
    """Let `model` read `problem` up to each injected value; `problem.outlier` says where.

    What comes before the injected value is the same for all, and what comes after it cannot be seen by it, so the
    values go through the model together, as alternatives to one another.

    Raises:
        InvalidInputError: the problem has no outlier, there is no value, or as `read`.
    """
    if problem.outlier is None:
        raise InvalidInputError("a sweep needs a position to inject at")
    if not len(values):
        raise InvalidInputError("a sweep needs at least one value to inject")
    task = TASKS[problem.task]()
    at = problem.outlier.position
    base = torch.tensor([problem.numbers], dtype=torch.float32)
    sequences = [replace(problem.outlier, value=float(value)).apply(base) for value in values]
    check_fits(model, problem, sequences[0].shape[1])
    numbers = torch.cat(sequences)[:, : at + 1]
    function = torch.tensor([problem.function]).expand(len(numbers), -1)
    prompts = task.layout(numbers, function, problem.prompt_format)  # ends with the injected value
    together = torch.cat([prompts.tokens[0, :-1], prompts.tokens[:, -1]])
    predictions, trace = model(together[None], alternatives=len(numbers), trace=True)
    assert trace is not None
    trace.check_finite()
    shared = prompts.tokens.shape[1] - 1
    answers, truth = predictions[0, shared:, None], prompts.answers[:, -1:]
    rows = torch.stack([layer.weights[0, :, shared:] for layer in trace.layers])  # (L, H, V, K)
    largest = metrics.largest_weight(rows).permute(2, 0, 1)  # (V, L, H)
    return Sweep(
        values=np.asarray(values, dtype=np.float64),
        largest_weight=largest.numpy(),
        contextual_mass=(1.0 - largest).numpy(),
        predictions=said(task, answers)[:, 0].numpy(),
        truth=truth[:, 0].numpy(),
        error=task.error(answers, truth)[:, 0].numpy(),
    )
