"""What a run needs to go on exactly where it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from ssa_viz.train.config import TrainConfig


@dataclass(frozen=True)
class TrainingState:
    """Everything that the rest of a run depends on.

    Attributes:
        config: the run that it belongs to.
        step: steps done.
        since: steps in the running sums.
        tensors: `model.*`, AdamW's `step.*`, `exp_avg.*` and `exp_avg_sq.*` for each parameter, `sums` (3,), and
            `data`, the state of the generator of prompts (bytes).
    """

    config: TrainConfig
    step: int
    since: int
    tensors: Mapping[str, Tensor]
