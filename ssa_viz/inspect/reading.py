"""One model reading one sequence, and everything about it that a page shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.model import Decoder
from ssa_viz.tasks import TASKS, Outlier, Task
from ssa_viz.tasks.base import numbers_within

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Problem:
    """What a model is asked: a sequence, the task's function if it has one, and perhaps an injected value.

    Attributes:
        task, prompt_format: names of the task and of the layout of its prompts.
        numbers: the sequence before the outlier is put in, N values.
        function: the task's own parameters, (a, b) for `linear`, empty for the quantifiers.
        outlier: a value to inject, or None.

    Raises:
        NonFiniteError: on construction, for a NaN or an infinity.
    """

    task: str
    prompt_format: str
    numbers: tuple[float, ...]
    function: tuple[float, ...] = ()
    outlier: Outlier | None = None

    def __post_init__(self) -> None:
        for value in (*self.numbers, *self.function):
            if not math.isfinite(value):
                raise NonFiniteError(f"a problem is made of finite numbers, and {value} is none")


@dataclass(frozen=True)
class Reading:
    """What a model computed from one sequence. L layers, H heads, T tokens (queries Q and keys K), N numbers.

    Attributes:
        tokens: the numbers that the model read, (T,).
        reads: the token at which each answer is read, (N,).
        logits, weights: (L, H, Q, K); a hidden key's weight is 0.
        visible: boolean (Q, K).
        predictions: P(True) for the quantifiers, the predicted number for `linear`, (N,).
        truth: 1 or 0, or the true number, (N,).
        error: 1 or 0 where the answer is wrong or right, or the squared error, (N,).
        outlier: the token that holds the injected value, or None.
    """

    tokens: Floats
    reads: NDArray[np.int64]
    logits: Floats
    weights: Floats
    visible: NDArray[np.bool_]
    predictions: Floats
    truth: Floats
    error: Floats
    outlier: int | None

    @property
    def focus(self) -> int:
        """The query to look at first: the injected value's row, else the last row at which an answer is read."""
        return int(self.reads[-1]) if self.outlier is None else self.outlier


@dataclass(frozen=True)
class Concentration:
    """How concentrated each head's row is for one query; every array is (L, H).

    Attributes:
        largest_weight, contextual_mass, effective_tokens: of the row.
        on_outlier: weight on the injected value; None without one.
        on_first: weight on the first token, where attention sinks form.
        collapsed: largest weight above 0.9 with 4 or more visible keys.
    """

    largest_weight: Floats
    contextual_mass: Floats
    effective_tokens: Floats
    on_outlier: Floats | None
    on_first: Floats
    collapsed: NDArray[np.bool_]


@torch.no_grad()
def read(model: Decoder, problem: Problem) -> Reading:
    """Let `model` read `problem` once.

    Raises:
        InvalidInputError: no number, too many for the model's context, or the outlier does not fit.
        UnknownNameError: there is no such task.
        NonFiniteError: the numbers are so large that the model overflows.
    """
    task = TASKS[problem.task]()
    numbers = _inject(problem, torch.tensor([problem.numbers], dtype=torch.float32))
    check_fits(model, problem, numbers.shape[1])
    prompts = task.layout(numbers, torch.tensor([problem.function]), problem.prompt_format)
    predictions, trace = model(prompts.tokens, trace=True)
    assert trace is not None
    trace.check_finite()
    answers = predictions[:, prompts.reads]
    outlier = None if problem.outlier is None else int(prompts.reads[problem.outlier.position])
    return Reading(
        tokens=prompts.tokens[0].numpy(),
        reads=prompts.reads.numpy(),
        logits=trace.logits()[:, 0].numpy(),
        weights=trace.weights()[:, 0].numpy(),
        visible=trace.visible.numpy().copy(),  # else a change to it would reach into the model
        predictions=said(task, answers)[0].numpy(),
        truth=prompts.answers[0].numpy(),
        error=task.error(answers, prompts.answers)[0].numpy(),
        outlier=outlier,
    )


def concentration(reading: Reading, query: int) -> Concentration:
    """How concentrated every head's row is for `query`, a token's index.

    Raises:
        InvalidInputError: there is no such token.
    """
    if not 0 <= query < len(reading.tokens):
        raise InvalidInputError(f"query {query} is not one of the {len(reading.tokens)} tokens")
    rows = torch.tensor(reading.weights[:, :, query])
    visible = torch.tensor(reading.visible[query])
    return Concentration(
        largest_weight=metrics.largest_weight(rows).numpy(),
        contextual_mass=metrics.contextual_mass(rows).numpy(),
        effective_tokens=metrics.effective_tokens(rows).numpy(),
        on_outlier=None if reading.outlier is None else rows[..., reading.outlier].numpy(),
        on_first=rows[..., 0].numpy(),
        collapsed=metrics.collapsed(rows, visible).numpy(),
    )


def contextual_mass(reading: Reading, layer: int, head: int) -> Floats:
    """Contextual mass of every query's row in one head, (Q,)."""
    mass: Floats = metrics.contextual_mass(torch.tensor(reading.weights[layer, head])).numpy()
    return mass


@torch.no_grad()
def predicted_line(model: Decoder, problem: Problem, grid: Sequence[float]) -> Floats:
    """What the model answers at each x of `grid`, asked right after the whole sequence, (G,).

    When the sequence fills the context, its last number gives way to the question.

    Raises:
        InvalidInputError: as `read`.
    """
    task = TASKS[problem.task]()
    seen = _inject(problem, torch.tensor([problem.numbers], dtype=torch.float32))
    check_fits(model, problem, seen.shape[1])
    seen = seen[:, : numbers_within(model.config.context, problem.prompt_format) - 1]
    asked = torch.tensor(list(grid), dtype=torch.float32)[:, None]
    numbers = torch.cat([seen.expand(len(asked), -1), asked], dim=1)
    function = torch.tensor([problem.function]).expand(len(asked), -1)
    prompts = task.layout(numbers, function, problem.prompt_format)
    answers = model(prompts.tokens).predictions[:, prompts.reads[-1]]
    if not torch.isfinite(answers).all():
        raise NonFiniteError("the predicted line is NaN or infinite; the numbers are too large for this model")
    line: Floats = said(task, answers).numpy()
    return line


def said(task: Task, answers: torch.Tensor) -> torch.Tensor:
    """A model's raw answers as people read them: P(True) for a yes-or-no task, else the number itself."""
    return torch.sigmoid(answers) if task.boolean else answers


def _inject(problem: Problem, numbers: torch.Tensor) -> torch.Tensor:
    return numbers if problem.outlier is None else problem.outlier.apply(numbers)


def check_fits(model: Decoder, problem: Problem, length: int) -> None:
    """Raises InvalidInputError when the model's context does not hold `length` numbers."""
    most = numbers_within(model.config.context, problem.prompt_format)
    if length > most:
        raise InvalidInputError(f"this model reads up to {most} numbers and was given {length}")
