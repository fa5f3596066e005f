"""The same sequence with the injected value growing: where does a model let go of the context?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError
from ssa_viz.inspect.reading import Floats, Problem, said
from ssa_viz.model import Decoder
from ssa_viz.tasks import TASKS

CELLS = 2_000_000  # logits a layer that one forward pass may form, so that a long sweep stays small in memory


@dataclass(frozen=True)
class Sweep:
    """One model over V injected values, at the injected value's own position.

    Attributes:
        values: what was injected, (V,).
        largest_weight, contextual_mass: of the row whose query is the injected value, (V, L, H).
        predictions: P(True), or the predicted number, (V,).
        truth: 1 or 0, or the true number, (V,).
        error: 1 or 0 where the answer is wrong or right, or the squared error, (V,).
        later_error: mean error over the positions after the injected value, (V,); NaN if it is the last.
    """

    values: NDArray[np.float64]
    largest_weight: Floats
    contextual_mass: Floats
    predictions: Floats
    truth: Floats
    error: Floats
    later_error: Floats

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
    """Let `model` read `problem` once for each injected value; `problem.outlier` says where.

    Raises:
        InvalidInputError: the problem has no outlier, or as `read`.
    """
    if problem.outlier is None:
        raise InvalidInputError("a sweep needs a position to inject at")
    task = TASKS[problem.task]()
    base = torch.tensor([problem.numbers], dtype=torch.float32)
    rows = [replace(problem.outlier, value=float(value)).apply(base) for value in values]
    numbers = torch.cat(rows)
    function = torch.tensor([problem.function]).expand(len(rows), -1)
    prompts = task.layout(numbers, function, problem.prompt_format)
    token = int(prompts.reads[problem.outlier.position])
    chunk = max(1, CELLS // (model.config.heads * prompts.tokens.shape[1] ** 2))
    answers, largest = [], []
    for tokens in torch.split(prompts.tokens, chunk):
        predictions, trace = model(tokens, trace=True)
        assert trace is not None
        trace.check_finite()
        answers.append(predictions[:, prompts.reads])
        rows_at = torch.stack([layer.weights[:, :, token] for layer in trace.layers], dim=1)  # (V, L, H, K)
        largest.append(metrics.largest_weight(rows_at))
    answer = torch.cat(answers)
    weight = torch.cat(largest)
    error = task.error(answer, prompts.answers)
    at = problem.outlier.position
    later = error[:, at + 1 :]
    return Sweep(
        values=np.asarray(values, dtype=np.float64),
        largest_weight=weight.numpy(),
        contextual_mass=(1.0 - weight).numpy(),
        predictions=said(task, answer[:, at]).numpy(),
        truth=prompts.answers[:, at].numpy(),
        error=error[:, at].numpy(),
        later_error=(later.mean(dim=1) if later.shape[1] else torch.full((len(rows),), torch.nan)).numpy(),
    )
