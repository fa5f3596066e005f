"""The command that trains a checkpoint again."""

from __future__ import annotations

import shlex
from dataclasses import fields

from ssa_viz.cli import OWN, train_config
from ssa_viz.model import ModelConfig
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.presets import SHIPPED


def training_command(config: TrainConfig) -> str:
    """A shell line that trains `config`: a shipped recipe by its name, and only what differs from it."""
    model = config.model
    recipe = (config.task, model.variant) in SHIPPED
    chosen = {"task": config.task, "variant": model.variant, "scoring": model.scoring, "seed": config.seed}
    base = train_config({**chosen, "shipped": recipe, "initial": [], "fixed": []})
    words = ["python", "-m", "ssa_viz", "train", *(["--shipped"] if recipe else [])]
    for name, value in chosen.items():
        words += [f"--{name}", str(value)]
    for one, usual, kind in ((model, base.model, ModelConfig), (config, base, TrainConfig)):
        for field in fields(kind):
            value = getattr(one, field.name)
            if field.name not in OWN and value != getattr(usual, field.name):
                words += [f"--{field.name.replace('_', '-')}", str(value)]
    initial = [f"{name}={value!r}" for name, value in model.initial.items() if base.model.initial.get(name) != value]
    fixed = [name for name, learns in model.learnable.items() if not learns and base.model.learnable.get(name, True)]
    words += ["--initial", *initial] if initial else []
    words += ["--fixed", *fixed] if fixed else []
    return shlex.join(words)
