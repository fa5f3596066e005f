"""The recipes of the shipped checkpoints. docs/log.md says what else was tried and how these were chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ssa_viz.errors import UnknownNameError
from ssa_viz.model import ModelConfig
from ssa_viz.train.config import TrainConfig

SEEDS = (0, 1, 2, 3, 4)
ATTENTION_ONLY_STEPS = {"every": 2000, "some": 1200}
SCORED = ("softmax", "ssa")
SHIPPED = (
    ("every", "attention_only"),
    ("every", "transformer"),
    ("some", "attention_only"),
    ("some", "transformer"),
    ("linear", "transformer"),
)


def shipped(task: str, variant: str, scoring: str, seed: int) -> TrainConfig:
    """The recipe of one shipped checkpoint. It depends on the scoring function in nothing but its name.

    Raises:
        UnknownNameError: no checkpoint is shipped for this task and variant.
    """
    if (task, variant) not in SHIPPED:
        pairs = ", ".join(f"{t} with {v}" for t, v in SHIPPED)
        raise UnknownNameError(f"no recipe is shipped for {task} with {variant}; the shipped ones are: {pairs}")
    if task == "linear":
        return TrainConfig(
            model=ModelConfig(variant=variant, layers=3, context=31, scoring=scoring),
            task=task,
            prompt_format="labelled",
            length=16,
            seed=seed,
            steps=2500,
        )
    if variant == "transformer":
        model = ModelConfig(variant=variant, scoring=scoring)
        return TrainConfig(model=model, task=task, seed=seed, steps=600)
    model = ModelConfig(variant=variant, scoring=scoring, init="torch")
    return TrainConfig(model=model, task=task, seed=seed, steps=ATTENTION_ONLY_STEPS[task])


def checkpoint_name(task: str, variant: str, scoring: str) -> str:
    """The folder of a shipped checkpoint inside models/."""
    return f"{task}-{variant}-{scoring}"


@dataclass(frozen=True)
class Preset:
    """A recipe of the Train page.

    Attributes:
        label, text: for people.
        recipe: task, scoring function and seed → the run.
    """

    label: str
    text: str
    recipe: Callable[[str, str, int], TrainConfig]


def _classroom(task: str, scoring: str, seed: int) -> TrainConfig:
    """The shipped recipe, cut to what two cores do while a class watches."""
    if task == "linear":
        return replace(shipped(task, "transformer", scoring, seed), steps=600, batch=32)
    return replace(shipped(task, "attention_only", scoring, seed), steps=800)


def _careful(task: str, scoring: str, seed: int) -> TrainConfig:
    """The shipped recipe, longer."""
    variant = "transformer" if task == "linear" else "attention_only"
    return replace(shipped(task, variant, scoring, seed), steps=5000 if task == "linear" else 12_000)


def _paper(task: str, scoring: str, seed: int) -> TrainConfig:
    """The paper's: 12 layers, 8 heads, width 256, Adam, prompts that grow from 11 to 41 numbers with their labels."""
    return TrainConfig(
        model=ModelConfig(variant="transformer", layers=12, heads=8, width=256, context=81, scoring=scoring),
        task=task,
        prompt_format="labelled",
        length=41,
        seed=seed,
        steps=500_001,
        batch=64,
        learning_rate=1e-4,
        warmup=0,
        weight_decay=0.0,
        schedule="constant",
        first_length=11,
        length_step=2,
        length_every=2000,
    )


PRESETS = {
    "classroom": Preset("Classroom", "About a minute for two functions on two cores.", _classroom),
    "careful": Preset("Careful", "About ten minutes for two functions on two cores.", _careful),
    "paper": Preset("Paper", "The paper's size and length; for a GPU.", _paper),
}
