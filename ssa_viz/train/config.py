"""Everything that decides a training run; two equal configs give equal weights on one machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ssa_viz.errors import InvalidInputError
from ssa_viz.model import ModelConfig
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import tokens_for

SCHEDULES = ("cosine", "linear", "constant")
PRECISIONS = ("float32", "bfloat16")
LEAST = {
    "length": 1,
    "steps": 1,
    "batch": 1,
    "warmup": 0,
    "seed": 0,
    "first_length": 0,
    "length_step": 1,
    "length_every": 1,
}


@dataclass(frozen=True)
class TrainConfig:
    """One training run.

    Attributes:
        model: what to train.
        task, prompt_format: what on.
        length: numbers in each training prompt; every prefix of it is an example.
        seed: of the starting weights and of the data.
        steps, batch: how much.
        learning_rate: peak, reached after `warmup` steps.
        weight_decay: AdamW's, on matrices only, so that biases and a scoring function's parameters stay free. With 0 it
            is plain Adam.
        clip: largest norm of the gradient.
        schedule: how the learning rate goes on from its peak: `cosine` or `linear` down to a tenth at the last step, or
            `constant`.
        first_length, length_step, length_every: a curriculum. Prompts start with `first_length` numbers and grow by
            `length_step` each `length_every` steps, up to `length`. With `first_length` 0 they always have `length`.
        input_std: σ of the training numbers.
        precision: of the arithmetic, `float32`, or `bfloat16` for the matrix products (weights, and whatever PyTorch's
            autocast deems delicate, stay float32). It changes the result, so it belongs to the run.

    Raises:
        InvalidInputError, UnknownNameError: on construction, for a run that cannot be done.
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    task: str = "every"
    prompt_format: str = "numbers"
    length: int = 40
    seed: int = 0
    steps: int = 3000
    batch: int = 64
    learning_rate: float = 1e-3
    warmup: int = 100
    weight_decay: float = 0.01
    clip: float = 1.0
    schedule: str = "cosine"
    first_length: int = 0
    length_step: int = 2
    length_every: int = 2000
    input_std: float = 1.0
    precision: str = "float32"

    def __post_init__(self) -> None:
        task = TASKS[self.task]
        if self.prompt_format not in task.formats:
            raise InvalidInputError(
                f"task {self.task!r} has no prompt format {self.prompt_format!r}; it has: {', '.join(task.formats)}"
            )
        for name, choice, valid in (
            ("schedule", self.schedule, SCHEDULES),
            ("precision", self.precision, PRECISIONS),
        ):
            if choice not in valid:
                raise InvalidInputError(f"{name} must be one of {', '.join(valid)}, not {choice!r}")
        for name, least in LEAST.items():
            whole = getattr(self, name)
            if not isinstance(whole, int) or isinstance(whole, bool) or not least <= whole < 2**31:
                raise InvalidInputError(f"{name} must be a whole number from {least} to {2**31 - 1}, not {whole!r}")
        if self.first_length > self.length:
            raise InvalidInputError(
                f"first_length ({self.first_length}) must be at most length ({self.length}), or 0 for no curriculum"
            )
        for name in ("learning_rate", "weight_decay", "clip", "input_std"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or (value == 0 and name != "weight_decay"):
                raise InvalidInputError(f"{name} must be a finite number above 0, not {value}")
        needed = tokens_for(self.length, self.prompt_format)
        if needed > self.model.context:
            raise InvalidInputError(
                f"{self.length} numbers as {self.prompt_format!r} are {needed} tokens, more than the context of "
                f"{self.model.context}"
            )

    def length_at(self, step: int) -> int:
        """How many numbers the prompts of a step have; steps count from 0."""
        if not self.first_length:
            return self.length
        return min(self.length, self.first_length + self.length_step * (step // self.length_every))
