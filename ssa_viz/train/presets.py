"""The recipes of the shipped checkpoints. docs/log.md says what else was tried and how these were chosen."""

from __future__ import annotations

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
