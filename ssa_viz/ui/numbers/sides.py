"""The two models that the page compares, each with what it made of the sequence, or with why it could not."""

from __future__ import annotations

from dataclasses import dataclass

from ssa_viz.checkpoints import Checkpoint
from ssa_viz.errors import CheckpointError, SSAVizError
from ssa_viz.figures.palette import Palette
from ssa_viz.inspect import Problem, Reading
from ssa_viz.model import ModelConfig
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import numbers_within
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.presets import SCORED, SHIPPED, checkpoint_name
from ssa_viz.ui import cache


@dataclass(frozen=True)
class Side:
    """One of the compared models.

    Attributes:
        label, colour: of its scoring function, the same on every figure.
        checkpoint: None if it could not be loaded.
        reading: None if there is no checkpoint, no sequence, or the model could not read it.
        error: one sentence saying why something is None; None if nothing is wrong.
    """

    label: str
    colour: str
    checkpoint: Checkpoint | None = None
    reading: Reading | None = None
    error: str | None = None


def variants(task: str) -> list[str]:
    """The architectures that checkpoints of `task` are shipped for."""
    return [variant for name, variant in SHIPPED if name == task]


def load_sides(task: str, variant: str, colours: Palette) -> list[Side]:
    """The pair of checkpoints for a task and an architecture; one that is not what its folder says is an error."""
    sides: list[Side] = []
    for scoring in SCORED:
        label, colour = SCORING[scoring].label, colours.scoring(scoring)
        name = checkpoint_name(task, variant, scoring)
        beside = [side.checkpoint.config.train for side in sides if side.checkpoint is not None]
        try:
            loaded = cache.checkpoint(cache.MODELS / name)
            reason = _unfit(loaded.config.train, name, beside)
        except CheckpointError as error:
            sides.append(Side(label, colour, error=str(error)))
        else:
            unfit = reason and f"{cache.MODELS.name}/{name} {reason}"
            sides.append(Side(label, colour, error=unfit) if unfit else Side(label, colour, loaded))
    return sides


def _unfit(run: TrainConfig, name: str, beside: list[TrainConfig]) -> str | None:
    """Why a checkpoint cannot be shown under `name` beside the others, or None if it can."""
    own = checkpoint_name(run.task, run.model.variant, run.model.scoring)
    if own != name:
        return f"holds a model of {own}; put the right one there"
    for other in beside:
        if _shape(other) != _shape(run):
            return f"cannot stand beside the other model: it has {_shape(run)}, the other {_shape(other)}"
    return None


def _shape(run: TrainConfig) -> str:
    """What two models must share so that their pictures can be compared head by head."""
    return f"{run.model.layers} layers of {run.model.heads} heads and {run.prompt_format} prompts"


def read_sides(sides: list[Side], problem: Problem) -> list[Side]:
    """The same sides with their readings of `problem`."""
    done = []
    for side in sides:
        if side.checkpoint is None:
            done.append(side)
            continue
        try:
            reading = cache.read(side.checkpoint, problem)
            done.append(Side(side.label, side.colour, side.checkpoint, reading))
        except SSAVizError as error:
            done.append(Side(side.label, side.colour, side.checkpoint, error=str(error)))
    return done


def reads_up_to(sides: list[Side], task: str) -> tuple[int, str]:
    """How many numbers every loaded model reads, and the layout of their prompts."""
    runs = [side.checkpoint.config.train for side in sides if side.checkpoint is not None]
    if not runs:
        prompt_format = TASKS[task].formats[0]
        return numbers_within(ModelConfig().context, prompt_format), prompt_format
    prompt_format = runs[0].prompt_format
    return min(numbers_within(run.model.context, prompt_format) for run in runs), prompt_format
