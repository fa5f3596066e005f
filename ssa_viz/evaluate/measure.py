"""One model on one kind of prompt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError
from ssa_viz.model import Decoder
from ssa_viz.tasks import TASKS, Shift

CHUNK = 256  # sequences a forward pass, so that a large sample does not need large memory


@dataclass(frozen=True)
class Measures:
    """Means over sequences.

    Attributes:
        error: mean over sequences and positions: a share of wrong answers, or a squared error for `linear`.
        by_position: the same for each position, (N,).
        at: mean error at the injected value's own position; None without one.
        at_settled: the same, over the sequences whose answer an earlier number had settled; None for `linear`,
            without an injected value, or if there is no such sequence.
        after: mean error at the positions after the injected value; None without one or if there are none.
        start: mean error from the injected value's position on; None without one.
        largest_weight: largest weight of the row whose query is the injected value, (L, H); None without one.
        mass_on_outlier: mean weight on the injected value in the later rows, (L, H); None without one or
            without such rows.
    """

    error: float
    by_position: NDArray[np.float64]
    at: float | None = None
    at_settled: float | None = None
    after: float | None = None
    start: float | None = None
    largest_weight: NDArray[np.float64] | None = None
    mass_on_outlier: NDArray[np.float64] | None = None


@torch.no_grad()
def measure(
    model: Decoder,
    task_name: str,
    prompt_format: str,
    *,
    length: int,
    sequences: int,
    seed: int,
    shift: Shift | None = None,
) -> Measures:
    """Measure `model` on `sequences` fresh prompts of `length` numbers.

    Raises:
        InvalidInputError: the prompt does not fit the model's context, the outlier not the prompt, or there is no
            sequence to measure on.
        UnknownNameError: there is no such task.
    """
    if sequences < 1:
        raise InvalidInputError(f"measuring needs at least one sequence, not {sequences}")
    task = TASKS[task_name]()
    shift = shift or Shift()
    generator = torch.Generator().manual_seed(seed)
    outlier = shift.outlier
    errors, settled, largest, mass = [], [], [], []
    for start in range(0, sequences, CHUNK):
        count = min(CHUNK, sequences - start)
        prompts = task.sample(count, length, generator, prompt_format=prompt_format, shift=shift)
        predictions, trace = model(prompts.tokens, trace=outlier is not None)
        errors.append(task.error(predictions[:, prompts.reads], prompts.answers))
        if outlier is None or trace is None:
            continue
        token = int(prompts.reads[outlier.position])
        weights = trace.weights()  # (L, B, H, Q, K)
        largest.append(metrics.largest_weight(weights[..., token, :]).sum(dim=1))
        if token + 1 < weights.shape[-1]:
            mass.append(weights[..., token + 1 :, token].mean(dim=-1).sum(dim=1))
        already = task.settled(prompts.numbers)
        if already is not None:
            settled.append(already[:, outlier.position])
    error = torch.cat(errors).double()
    by_position = error.mean(dim=0)
    if outlier is None:
        return Measures(float(by_position.mean()), by_position.numpy())
    at = error[:, outlier.position]
    chosen = at[torch.cat(settled)] if settled else at[:0]
    return Measures(
        error=float(by_position.mean()),
        by_position=by_position.numpy(),
        at=float(at.mean()),
        at_settled=float(chosen.mean()) if len(chosen) else None,
        after=float(by_position[outlier.position + 1 :].mean()) if outlier.position + 1 < len(by_position) else None,
        start=float(by_position[outlier.position :].mean()),
        largest_weight=(torch.stack(largest).sum(dim=0) / sequences).double().numpy(),
        mass_on_outlier=(torch.stack(mass).sum(dim=0) / sequences).double().numpy() if mass else None,
    )
