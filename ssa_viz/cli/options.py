"""From the options of `train` to a training config. Every field of the two configs is an option by itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ssa_viz.checkpoints.schema import recipe_from_document, recipe_to_document
from ssa_viz.checkpoints.strict_json import read_object
from ssa_viz.errors import InvalidInputError
from ssa_viz.model import VARIANTS, ModelConfig
from ssa_viz.model.config import INITS, POSITIONS, READOUTS
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import FORMATS, tokens_for
from ssa_viz.train import TrainConfig
from ssa_viz.train.config import PRECISIONS, SCHEDULES
from ssa_viz.train.presets import PRESETS, shipped

CHOICES: dict[str, Sequence[str]] = {
    "variant": VARIANTS,
    "positions": POSITIONS,
    "readout": READOUTS,
    "init": INITS,
    "prompt_format": FORMATS,
    "schedule": SCHEDULES,
    "precision": PRECISIONS,
}
# Options of their own below, or derived; every other field of the two configs becomes an option by itself.
OWN = ("task", "scoring", "seed", "variant", "model", "initial", "learnable")
BASE = {"task": "every", "scoring": "softmax", "variant": "attention_only", "seed": 0}


def add_options(command: argparse.ArgumentParser) -> None:
    """The options that say what is trained."""
    start = command.add_mutually_exclusive_group()
    start.add_argument("--shipped", action="store_true", help="start from the recipe of the shipped checkpoint")
    start.add_argument("--preset", choices=list(PRESETS), help="start from a preset of the Train page")
    start.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="start from a JSON file with sections model, task and train: a run's run.json (which goes on with that "
        "run), a checkpoint's config.json, or your own with only what differs from the defaults",
    )
    for name, choices, text in (
        ("task", list(TASKS), "what to learn"),
        ("scoring", list(SCORING), "scoring function"),
        ("variant", VARIANTS, "kind of decoder"),
    ):
        command.add_argument(
            f"--{name}", choices=choices, default=argparse.SUPPRESS, help=f"{text}; default {BASE[name]}"
        )
    command.add_argument(
        "--seed", type=int, default=argparse.SUPPRESS, help="of the starting weights and the data; default 0"
    )
    command.add_argument(
        "--initial",
        nargs="*",
        default=[],
        metavar="NAME=VALUE",
        help="starting scoring parameters, as n=1.5 b=1",
    )
    command.add_argument("--fixed", nargs="*", default=[], metavar="NAME", help="scoring parameters that do not learn")
    for config in (ModelConfig(), TrainConfig()):
        for field in fields(config):
            if field.name not in OWN:
                value = getattr(config, field.name)
                command.add_argument(
                    f"--{field.name.replace('_', '-')}",
                    type=type(value),
                    choices=CHOICES.get(field.name),
                    default=argparse.SUPPRESS,
                    help=f"default {value}, or that of --shipped, --preset or --config",
                )


def train_config(options: Mapping[str, Any]) -> TrainConfig:
    """The run that the options of `train` ask for, each under its name in the configs.

    Raises:
        CheckpointError: the file of `config` cannot be read.
        InvalidInputError, UnknownNameError: the options do not make a run.
    """
    config = _start(options)
    given = {name: value for name, value in options.items() if name not in OWN}
    model = replace(
        config.model,
        initial={**config.model.initial, **dict(_assignments(options.get("initial", [])))},
        learnable={**config.model.learnable, **dict.fromkeys(options.get("fixed", []), False)},
        **{f.name: given[f.name] for f in fields(ModelConfig) if f.name in given},
    )
    return replace(config, model=model, **{f.name: given[f.name] for f in fields(TrainConfig) if f.name in given})


def _start(options: Mapping[str, Any]) -> TrainConfig:
    """The recipe that the other options change."""
    chosen = {name: options.get(name, usual) for name, usual in BASE.items()}
    task, variant, scoring, seed = (chosen[name] for name in ("task", "variant", "scoring", "seed"))
    if options.get("config"):
        return _with_chosen(read_recipe(options["config"]), options)
    if options.get("preset"):
        return PRESETS[options["preset"]].recipe(task, scoring, seed)
    if options.get("shipped"):
        return shipped(task, variant, scoring, seed)
    format_ = TASKS[task].formats[0]
    return TrainConfig(
        model=ModelConfig(variant=variant, scoring=scoring, context=tokens_for(41, format_)),
        task=task,
        prompt_format=format_,
        seed=seed,
    )


def _with_chosen(config: TrainConfig, options: Mapping[str, Any]) -> TrainConfig:
    """A recipe from a file with the task, scoring function, variant and seed that were given beside it."""
    model = {name: options[name] for name in ("scoring", "variant") if name in options}
    if model.get("scoring", config.model.scoring) != config.model.scoring:
        model |= {"initial": {}, "learnable": {}}  # the other function's
    run = {name: options[name] for name in ("task", "seed") if name in options}
    return replace(config, model=replace(config.model, **model), **run)


def read_recipe(path: Path) -> TrainConfig:
    """The recipe in a JSON file; what its sections leave out has its default.

    Raises:
        CheckpointError: the file cannot be read.
        InvalidInputError, UnknownNameError: naming what is wrong in it.
    """
    document = read_object(path)
    if not any(section in document for section in ("model", "task", "train")):
        raise InvalidInputError(f"{path.name} has none of the sections model, task and train")
    usual = recipe_to_document(TrainConfig())
    sections = {}
    for name, section in usual.items():
        given = document.get(name, {})
        sections[name] = {**section, **given} if isinstance(given, dict) else given
    return recipe_from_document(sections)


def _assignments(texts: Sequence[str]) -> Iterator[tuple[str, float]]:
    for text in texts:
        name, _, value = text.partition("=")
        try:
            yield name, float(value)
        except ValueError:
            raise InvalidInputError(f"--initial takes NAME=NUMBER, not {text!r}") from None
