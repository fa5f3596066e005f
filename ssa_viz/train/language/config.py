"""Everything that decides a language model's training besides the text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ssa_viz.errors import InvalidInputError
from ssa_viz.model.language import LanguageConfig
from ssa_viz.text.batches import Masking

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class LanguageRun:
    """One training run; it depends on the scoring function in nothing but its name.

    Attributes:
        model: what to train.
        corpus: what its text and its tokenizer are, as one hash (`corpus_id`): the same for runs to be compared.
        length: tokens in a block.
        batch: blocks in a step.
        steps: how many.
        seed: of the starting weights, the order of the blocks and the gaps.
        learning_rate: AdamW's peak, reached after `warmup` steps, then along a cosine to a tenth.
        weight_decay: on matrices only.
        clip: largest norm of the gradient.
        gap_share, gap_masked, gap_random: an encoder's gaps, as `Masking` has them.
        precision: `float32`, or `bfloat16` for the matrix products.

    Raises:
        InvalidInputError: on construction, for a run that cannot be done.
    """

    model: LanguageConfig = field(default_factory=LanguageConfig)
    corpus: str = ""
    length: int = 128
    batch: int = 32
    steps: int = 3000
    seed: int = 0
    learning_rate: float = 2e-3
    warmup: int = 100
    weight_decay: float = 0.1
    clip: float = 1.0
    gap_share: float = 0.15
    gap_masked: float = 0.9
    gap_random: float = 0.1
    precision: str = "float32"

    def __post_init__(self) -> None:
        for name, least in (("length", 2), ("batch", 1), ("steps", 1), ("seed", 0), ("warmup", 0)):
            whole = getattr(self, name)
            if not isinstance(whole, int) or isinstance(whole, bool) or not least <= whole < 2**31:
                raise InvalidInputError(f"{name} must be a whole number from {least} to {2**31 - 1}, not {whole!r}")
        for name in ("learning_rate", "weight_decay", "clip"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or (value == 0 and name != "weight_decay"):
                raise InvalidInputError(f"{name} must be a finite number above 0, not {value}")
        if self.length > self.model.context:
            raise InvalidInputError(f"length ({self.length}) must be at most the context ({self.model.context})")
        if self.precision not in PRECISIONS:
            raise InvalidInputError(f"precision must be one of {', '.join(PRECISIONS)}, not {self.precision!r}")
        _ = self.masking

    @property
    def masking(self) -> Masking:
        return Masking(self.gap_share, self.gap_masked, self.gap_random)

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        return self.learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))
