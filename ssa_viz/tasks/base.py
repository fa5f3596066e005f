"""The protocol that every task follows: draw numbers, say the truth, lay both out as a prompt."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError
from ssa_viz.sequence import LARGEST

FORMATS = ("numbers", "labelled")


@dataclass(frozen=True)
class Outlier:
    """A value put into every sequence: it replaces the number at `position` (0-based), or is inserted before it.

    An inserted value makes the sequence one longer. Raises InvalidInputError for a value that is not finite.
    """

    value: float
    position: int
    insert: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.position, bool) or not isinstance(self.position, int):
            raise InvalidInputError(f"an outlier's position is a whole number, not {self.position!r}")
        if not isinstance(self.value, (int, float)) or not math.isfinite(self.value) or abs(self.value) > LARGEST:
            raise InvalidInputError(f"an outlier must be a number of size up to {LARGEST:g}, not {self.value}")
        if self.position < 0:
            raise InvalidInputError(f"an outlier's position counts from 0, so it cannot be {self.position}")

    def apply(self, numbers: Tensor) -> Tensor:
        """`numbers` (B, N) with the outlier in each row; (B, N), or (B, N + 1) when it is inserted.

        Raises:
            InvalidInputError: the position is past the end of the sequence.
        """
        length = numbers.shape[1]
        last = length if self.insert else length - 1
        if self.position > last:
            raise InvalidInputError(
                f"an outlier at position {self.position} does not fit {length} numbers (the last is {last})"
            )
        value = torch.full_like(numbers[:, :1], self.value)
        rest = numbers[:, self.position + (0 if self.insert else 1) :]
        return torch.cat([numbers[:, : self.position], value, rest], dim=1)


@dataclass(frozen=True)
class Shift:
    """How far test prompts lie from the training ones. The default is in distribution.

    Attributes:
        input_std: σ, the standard deviation of the numbers.
        function_std: σ of the function's coefficients (`linear` only).
        outlier: a value injected into every sequence.
    """

    input_std: float = 1.0
    function_std: float = 1.0
    outlier: Outlier | None = None

    def __post_init__(self) -> None:
        for name, value in (("input_std", self.input_std), ("function_std", self.function_std)):
            if not math.isfinite(value) or value <= 0:
                raise InvalidInputError(f"{name} must be a finite number above 0, not {value}")


@dataclass(frozen=True)
class Prompts:
    """A batch of prompts.

    Attributes:
        numbers: the numbers of each sequence, x for `linear`, (B, N).
        answers: the truth for each prefix that ends at that number, (B, N): 1 or 0 for the quantifiers, f(x) for
            `linear`.
        tokens: what the model reads, (B, T).
        reads: the token at which each of the N answers is read, (N,).
    """

    numbers: Tensor
    answers: Tensor
    tokens: Tensor
    reads: Tensor


class Task(ABC):
    """A family of prompts with a true answer for every prefix."""

    name: ClassVar[str]
    label: ClassVar[str]
    question: ClassVar[str]
    order: ClassVar[int] = 100
    formats: ClassVar[tuple[str, ...]] = FORMATS
    boolean: ClassVar[bool] = True
    function_size: ClassVar[int] = 0  # P, the parameters of each sequence's own function

    @abstractmethod
    def draw(self, batch: int, length: int, shift: Shift, generator: Generator) -> tuple[Tensor, Tensor]:
        """Numbers (B, N) and the parameters (B, P) of each sequence's own function (P = 0 if it has none)."""

    @abstractmethod
    def answers(self, numbers: Tensor, function: Tensor) -> Tensor:
        """The truth for every prefix, (B, N), from numbers (B, N) and each sequence's function (B, P)."""

    @abstractmethod
    def loss(self, predictions: Tensor, answers: Tensor) -> Tensor:
        """The training loss for each prediction, (B, N), from predictions and answers (B, N)."""

    @abstractmethod
    def error(self, predictions: Tensor, answers: Tensor) -> Tensor:
        """The reported error for each prediction, (B, N): 1 or 0 for the quantifiers, squared error for `linear`."""

    def settled(self, numbers: Tensor) -> Tensor | None:
        """Where an earlier number had already settled the answer, boolean (B, N); None if no number ever does."""
        return None

    def layout(self, numbers: Tensor, function: Tensor, prompt_format: str) -> Prompts:
        """Lay numbers out as prompts. `numbers`: only them; `labelled`: number, answer, number, answer, …

        The last answer of a labelled prompt is left out, since nothing is read after it.

        Raises:
            InvalidInputError: the task has no such format, or there is no number.
        """
        if prompt_format not in self.formats:
            raise InvalidInputError(
                f"task {self.name!r} has no prompt format {prompt_format!r}; it has: {', '.join(self.formats)}"
            )
        if numbers.shape[1] == 0:
            raise InvalidInputError("a prompt needs at least one number")
        if function.shape != (len(numbers), self.function_size):
            raise InvalidInputError(
                f"task {self.name!r} takes {self.function_size} function parameters for each of the {len(numbers)} "
                f"sequences, not {tuple(function.shape)}"
            )
        answers = self.answers(numbers, function)
        length = numbers.shape[1]
        if prompt_format == "numbers":
            return Prompts(numbers, answers, numbers, torch.arange(length))
        labels = 2 * answers - 1 if self.boolean else answers
        tokens = torch.stack([numbers, labels], dim=2).flatten(1)[:, :-1]
        return Prompts(numbers, answers, tokens, torch.arange(0, 2 * length - 1, 2))

    def sample(
        self,
        batch: int,
        length: int,
        generator: Generator,
        *,
        prompt_format: str,
        shift: Shift | None = None,
    ) -> Prompts:
        """A batch of prompts of `length` numbers (an inserted outlier makes it one more), drawn from `generator` on its
        own device; `reads` stays on the CPU. A GPU's generator draws other numbers than the CPU's from one seed.

        Raises:
            InvalidInputError: batch or length below 1, or what `layout` and `Outlier.apply` refuse.
        """
        if batch < 1 or length < 1:
            raise InvalidInputError(f"batch and length must be at least 1, not {batch} and {length}")
        shift = shift or Shift()
        numbers, function = self.draw(batch, length, shift, generator)
        if shift.outlier is not None:
            numbers = shift.outlier.apply(numbers)
        return self.layout(numbers, function, prompt_format)


def tokens_for(length: int, prompt_format: str) -> int:
    """How many tokens a prompt of `length` numbers takes."""
    return length if prompt_format == "numbers" else 2 * length - 1


def numbers_within(context: int, prompt_format: str) -> int:
    """How many numbers a prompt may have so that its tokens fit `context`."""
    return context if prompt_format == "numbers" else (context + 1) // 2


class Quantifier(Task):
    """One yes-or-no question about the numbers so far, settled for good by the first decisive number.

    `decisive_sign` is the sign of the number that settles it. Exact zero is not positive.
    """

    formats = ("numbers", "labelled")
    boolean = True
    decisive_sign: ClassVar[int]

    def draw(self, batch: int, length: int, shift: Shift, generator: Generator) -> tuple[Tensor, Tensor]:
        """|N(0, σ²)| whose first decisive sign is at a place drawn uniformly from 0…N (N: nowhere); signs after it
        are a fair coin. With independent signs nearly every long prompt would be settled within four numbers and a
        constant answer would look good."""
        device = generator.device
        size = torch.randn(batch, length, generator=generator, device=device).abs() * shift.input_std
        first = torch.randint(0, length + 1, (batch, 1), generator=generator, device=device)
        coin = torch.where(torch.rand(batch, length, generator=generator, device=device) < 0.5, 1.0, -1.0)
        place = torch.arange(length, device=device)
        sign = torch.where(place < first, -float(self.decisive_sign), coin)
        sign = torch.where(place == first, float(self.decisive_sign), sign)
        return size * sign, torch.empty(batch, 0, device=device)

    def settled(self, numbers: Tensor) -> Tensor:
        """Where an earlier number had already settled the answer, boolean (B, N)."""
        positive = numbers > 0
        decisive = positive if self.decisive_sign > 0 else ~positive
        seen = decisive.cummax(dim=1).values
        return F.pad(seen, (1, 0))[:, :-1]

    def loss(self, predictions: Tensor, answers: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(predictions, answers, reduction="none")

    def error(self, predictions: Tensor, answers: Tensor) -> Tensor:
        return ((predictions > 0).to(answers.dtype) != answers).to(torch.float32)
