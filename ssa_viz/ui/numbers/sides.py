"""The two models that the page compares, each with what it made of the sequence, or with why it could not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssa_viz import jobs
from ssa_viz.checkpoints import Checkpoint
from ssa_viz.errors import CheckpointError, SSAVizError
from ssa_viz.figures.palette import Palette
from ssa_viz.inspect import Problem, Reading
from ssa_viz.jobs.status import FINISHED, STOPPED
from ssa_viz.model import VARIANTS, ModelConfig
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import numbers_within
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.presets import SCORED, SHIPPED, checkpoint_name
from ssa_viz.ui import cache

OWN = "runs/"  # begins the ids of runs
MOST_SIDES = 4


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


@dataclass(frozen=True)
class Offer:
    """A checkpoint that can be put on the page: one of models/ by its folder's name, a trained run as runs/<id>."""

    id: str
    name: str
    folder: Path
    run: TrainConfig


def offers(task: str) -> dict[str, Offer]:
    """Every usable checkpoint of `task`, id → offer: the shipped ones first, then a visitor's own, the newest first."""
    found: dict[str, Offer] = {}
    for listing in cache.catalogue():
        if listing.config is not None and listing.config.train.task == task:
            run = listing.config.train
            found[listing.name] = Offer(listing.name, SCORING[run.model.scoring].label, listing.folder, run)
    for each in jobs.runs(cache.RUNS):
        if each.run is None or each.run.train.task != task or each.status.state not in (FINISHED, STOPPED):
            continue
        label = SCORING[each.run.train.model.scoring].label
        own = each.name if each.name != label else f"{label} · run {each.id[-4:]}"
        found[f"{OWN}{each.id}"] = Offer(f"{OWN}{each.id}", own, each.folder, each.run.train)
    return found


def variants(task: str, offered: Mapping[str, Offer]) -> list[str]:
    """The architectures that there are checkpoints of `task` for, the shipped ones first."""
    shipped = [variant for name, variant in SHIPPED if name == task]
    own = {offer.run.model.variant for id_, offer in offered.items() if id_.startswith(OWN)}
    return shipped + [variant for variant in VARIANTS if variant in own and variant not in shipped]


def chosen_sides(
    task: str, variant: str, chosen: Sequence[str], offered: Mapping[str, Offer], colours: Palette
) -> list[Side]:
    """The chosen checkpoints; without a choice the shipped pair of the task and architecture."""
    if not chosen:
        return load_sides(task, variant, colours)
    sides: list[Side] = []
    for id_ in chosen:
        offer = offered[id_]
        label = offer.name if all(side.label != offer.name for side in sides) else f"{offer.name} ({len(sides) + 1})"
        colour = colours.scoring(offer.run.model.scoring)
        if any(side.colour == colour for side in sides):
            colour = colours.others[len(sides) % len(colours.others)]
        beside = [side.checkpoint.config.train for side in sides if side.checkpoint is not None]
        try:
            loaded = cache.checkpoint(offer.folder)
        except CheckpointError as error:
            sides.append(Side(label, colour, error=str(error)))
            continue
        unfit = _misfit(loaded.config.train, beside)
        sides.append(Side(label, colour, error=f"{label} {unfit}") if unfit else Side(label, colour, loaded))
    return sides


def load_sides(task: str, variant: str, colours: Palette) -> list[Side]:
    """The shipped pair for a task and an architecture; one that is not what its folder says is an error."""
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
    return _misfit(run, beside)


def _misfit(run: TrainConfig, beside: list[TrainConfig]) -> str | None:
    """Why a model cannot be compared with the others head by head, or None if it can."""
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
