"""One cell of an error map: a model's errors, and those of its rivals, on the same fresh prompts."""

from __future__ import annotations

import torch
from torch import Tensor

from ssa_viz import metrics
from ssa_viz.errors import NonFiniteError
from ssa_viz.evaluate.grids.grid import Grid
from ssa_viz.evaluate.grids.rivals import rivals
from ssa_viz.model import Decoder
from ssa_viz.tasks import TASKS, Outlier
from ssa_viz.train.config import TrainConfig

Cell = dict[str, dict[str, float | None]]  # who → counting → error

MODEL, TARGET = "model", "target"
FOURTH, THIRD = 3, 2  # counted from 0
# Logits of one head and layer in one pass: more do not fit a core's cache, and take twice as long.
LOGITS = 100_000
MOST_AT_ONCE = 64

COUNTINGS = {
    "answers": "wrong answers, each by itself",
    "sequences": "wrong sequences: any answer from the fourth number on",
    "points": "squared error, every point",
    "known": "squared error from the third point on, where the line is known",
    "from": "from the injected value on",
    "at": "at the injected value itself",
    "after": "after the injected value",
    "largest_weight": "largest weight in the injected value's row",
}


def countings(grid: Grid, boolean: bool) -> tuple[str, ...]:
    """What is counted in every cell, the first one first."""
    if any(along.what == "value" for along in (grid.rows, grid.columns)):
        return ("from", "at", "after", "largest_weight")
    return ("answers", "sequences") if boolean else ("points", "known")


@torch.inference_mode()
def measure_cell(model: Decoder, run: TrainConfig, grid: Grid, row: int, column: int) -> Cell:
    """Everything that is counted in one cell; None where there is nothing to count.

    `model` must read the grid's longest prompts (`lengthened`).

    Raises:
        NonFiniteError: a prediction is not finite.
    """
    task = TASKS[run.task]()
    shift, length, seed = grid.at(row, column)
    generator = torch.Generator().manual_seed(seed)
    prompts = task.sample(grid.sequences, length, generator, prompt_format=run.prompt_format, shift=shift)
    outlier = shift.outlier
    at_once = max(1, min(MOST_AT_ONCE, LOGITS // prompts.tokens.shape[1] ** 2))
    said, largest = [], 0.0
    for start in range(0, grid.sequences, at_once):
        predictions, trace = model(prompts.tokens[start : start + at_once], trace=outlier is not None)
        said.append(predictions[:, prompts.reads])
        if outlier is not None and trace is not None:
            token = int(prompts.reads[outlier.position])
            weights = trace.weights()[..., token, :]  # (L, B, H, K)
            largest += float(metrics.largest_weight(weights).mean(dim=(0, 2)).double().sum())
    predictions = torch.cat(said)
    if not torch.isfinite(predictions).all():
        raise NonFiniteError(f"the predictions at {_where(grid, row, column)} are not finite")
    found = {MODEL: _counted(task.error(predictions, prompts.answers), outlier, task.boolean)}
    for name, rival in rivals(task.boolean).items():
        error = task.error(rival(prompts.numbers, prompts.answers), prompts.answers)
        found[name] = _counted(error, outlier, task.boolean)
    if outlier is not None:
        found[MODEL]["largest_weight"] = largest / grid.sequences
    elif not task.boolean:
        found[TARGET] = {"variance": float(prompts.answers.double().var(correction=0))}
    return found


def _counted(error: Tensor, outlier: Outlier | None, boolean: bool) -> dict[str, float | None]:
    """From errors (B, N): a share of wrong answers or sequences, or a mean squared error."""
    error = error.double()
    if outlier is not None:
        at = outlier.position
        after = error[:, at + 1 :]
        return {
            "from": float(error[:, at:].mean()),
            "at": float(error[:, at].mean()),
            "after": float(after.mean()) if after.numel() else None,
        }
    if boolean:
        late = error[:, FOURTH:]
        anywhere = float((late > 0).any(dim=1).double().mean()) if late.numel() else None
        return {"answers": float(error.mean()), "sequences": anywhere}
    late = error[:, THIRD:]
    return {"points": float(error.mean()), "known": float(late.mean()) if late.numel() else None}


def _where(grid: Grid, row: int, column: int) -> str:
    down, across = grid.rows, grid.columns
    return f"{down.label} = {down.values[row]:g}, {across.label} = {across.values[column]:g}"
