"""Infer a line from points on it."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from ssa_viz.tasks.base import Shift, Task


class Linear(Task):
    """From x₁, f(x₁), x₂, f(x₂), …, x_i predict f(x_i) = a·x_i + b, with a and b unknown.

    Inputs are N(0, σ²) with σ = `input_std`; a and b are N(0, σ²) with σ = `function_std`. Its function is (a, b).
    """

    name = "linear"
    label = "Linear"
    question = "Which number does the line through the points so far give at this x?"
    order = 2
    formats = ("labelled",)
    boolean = False
    function_size = 2

    def draw(self, batch: int, length: int, shift: Shift, generator: Generator) -> tuple[Tensor, Tensor]:
        numbers = torch.randn(batch, length, generator=generator, device=generator.device) * shift.input_std
        function = torch.randn(batch, 2, generator=generator, device=generator.device) * shift.function_std
        return numbers, function

    def answers(self, numbers: Tensor, function: Tensor) -> Tensor:
        return function[:, :1] * numbers + function[:, 1:]

    def loss(self, predictions: Tensor, answers: Tensor) -> Tensor:
        return (predictions - answers).square()

    def error(self, predictions: Tensor, answers: Tensor) -> Tensor:
        return (predictions - answers).square()
