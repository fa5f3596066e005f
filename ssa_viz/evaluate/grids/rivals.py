"""Who needs no training: constant answers to a yes-or-no question, and three classics for a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

NEIGHBOURS = 3


def constant_yes(numbers: Tensor, answers: Tensor) -> Tensor:
    """Predictions (B, N) of somebody who always says yes."""
    return torch.full_like(answers, 1.0)


def constant_no(numbers: Tensor, answers: Tensor) -> Tensor:
    """Predictions (B, N) of somebody who always says no."""
    return torch.full_like(answers, -1.0)


def least_squares(numbers: Tensor, answers: Tensor) -> Tensor:
    """From the points (x, f(x)) before each x, the line of least squares, the shortest (a, b) where many fit; (B, N).

    With none before it the prediction is 0. In float64, whatever the inputs are.
    """
    x, y = numbers.double(), answers.double()
    found = torch.zeros_like(y)
    found[:, 1:2] = (y[:, :1] / (1 + x[:, :1] ** 2)) * (1 + x[:, :1] * x[:, 1:2])  # one point: (a, b) ∥ (x, 1)
    for i in range(2, x.shape[1]):
        before, values = x[:, :i], y[:, :i]
        middle, level = before.mean(dim=1, keepdim=True), values.mean(dim=1, keepdim=True)
        spread = (before - middle).square().sum(dim=1, keepdim=True)
        slope = ((before - middle) * (values - level)).sum(dim=1, keepdim=True) / torch.where(spread > 0, spread, 1.0)
        found[:, i : i + 1] = level + slope * (x[:, i : i + 1] - middle)
    return found


def nearest_neighbours(numbers: Tensor, answers: Tensor) -> Tensor:
    """The mean of f at the three x before that are nearest (of fewer, while there are fewer; 0 with none), (B, N)."""
    x, y = numbers.double(), answers.double()
    found = torch.zeros_like(y)
    for i in range(1, x.shape[1]):
        nearest = (x[:, :i] - x[:, i : i + 1]).abs().topk(min(NEIGHBOURS, i), dim=1, largest=False).indices
        found[:, i] = y[:, :i].gather(1, nearest).mean(dim=1)
    return found


def mean(numbers: Tensor, answers: Tensor) -> Tensor:
    """The mean of f at all x before, 0 with none, (B, N)."""
    y = answers.double()
    counts = torch.arange(1, y.shape[1], dtype=y.dtype)
    found = torch.zeros_like(y)
    found[:, 1:] = y.cumsum(dim=1)[:, :-1] / counts
    return found


Rival = Callable[[Tensor, Tensor], Tensor]

CONSTANT: Mapping[str, Rival] = {"always yes": constant_yes, "always no": constant_no}
CLASSIC: Mapping[str, Rival] = {
    "least squares": least_squares,
    "nearest neighbours": nearest_neighbours,
    "mean": mean,
}


def rivals(boolean: bool) -> Mapping[str, Rival]:
    """Name → numbers (B, N) and true answers (B, N) to predictions (B, N), each from what stands before it."""
    return CONSTANT if boolean else CLASSIC
