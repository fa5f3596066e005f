"""Everything that decides a training run; two equal configs give equal weights on one machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ssa_viz.errors import InvalidInputError
from ssa_viz.model import ModelConfig
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import tokens_for


@dataclass(frozen=True)
class TrainConfig:
    """One training run.

    Attributes:
        model: what to train.
        task, prompt_format: what on.
        length: numbers in each training prompt; every prefix of it is an example.
        seed: of the starting weights and of the data.
        steps, batch: how much.
        learning_rate: peak, reached after `warmup` steps and followed down a cosine to a tenth.
        weight_decay: AdamW's, on matrices only, so that biases and a scoring function's parameters stay free.
        clip: largest norm of the gradient.

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

    def __post_init__(self) -> None:
        task = TASKS[self.task]
        if self.prompt_format not in task.formats:
            raise InvalidInputError(
                f"task {self.task!r} has no prompt format {self.prompt_format!r}; it has: {', '.join(task.formats)}"
            )
        for name, least in (("length", 1), ("steps", 1), ("batch", 1), ("warmup", 0), ("seed", 0)):
            whole = getattr(self, name)
            if not isinstance(whole, int) or isinstance(whole, bool) or not least <= whole < 2**31:
                raise InvalidInputError(f"{name} must be a whole number from {least} to {2**31 - 1}, not {whole!r}")
        for name in ("learning_rate", "weight_decay", "clip"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or (value == 0 and name != "weight_decay"):
                raise InvalidInputError(f"{name} must be a finite number above 0, not {value}")
        needed = tokens_for(self.length, self.prompt_format)
        if needed > self.model.context:
            raise InvalidInputError(
                f"{self.length} numbers as {self.prompt_format!r} are {needed} tokens, more than the context of "
                f"{self.model.context}"
            )
