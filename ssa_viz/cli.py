"""The command line: train a model, measure a checkpoint, list what is there."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from ssa_viz import checkpoints
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.evaluate import card
from ssa_viz.model import VARIANTS, ModelConfig
from ssa_viz.model.config import INITS, POSITIONS, READOUTS
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import FORMATS, tokens_for
from ssa_viz.train import Finished, Progress, TrainConfig, train
from ssa_viz.train.presets import checkpoint_name, shipped

CHOICES: dict[str, Sequence[str]] = {
    "variant": VARIANTS,
    "positions": POSITIONS,
    "readout": READOUTS,
    "init": INITS,
    "prompt_format": FORMATS,
}
MOST_THREADS = 1024
# Options of their own below, or derived; every other field of the two configs becomes an option by itself.
OWN = ("task", "scoring", "seed", "variant", "model", "initial", "learnable")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 on success, 1 on one of our errors or a failed check, 2 on bad usage."""
    arguments = _parser().parse_args(argv)
    torch.set_num_threads(arguments.threads)
    try:
        code: int = arguments.run(arguments)
    except SSAVizError as error:
        print(f"ssa-viz: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nssa-viz: stopped; nothing was saved", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    defaults = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(prog="ssa-viz", description=__doc__)
    parser.add_argument(
        "--threads", type=_threads, default=1, help="CPU threads; results depend on it in the last bits"
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    command = commands.add_parser("train", help="train a model and save it", formatter_class=defaults)
    command.set_defaults(run=_train)
    command.add_argument("--task", choices=list(TASKS), default="every", help="what to learn")
    command.add_argument("--scoring", choices=list(SCORING), default="softmax", help="scoring function")
    command.add_argument("--variant", choices=VARIANTS, default="attention_only", help="kind of decoder")
    command.add_argument("--seed", type=int, default=0, help="of the starting weights and the data")
    command.add_argument("--out", type=Path, help="folder to write; default runs/<task>-<variant>-<scoring>-<seed>")
    command.add_argument("--shipped", action="store_true", help="start from the recipe of the shipped checkpoint")
    command.add_argument("--force", action="store_true", help="replace a checkpoint that is already there")
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
                    help=f"default {value}, or the recipe's with --shipped",
                )

    command = commands.add_parser("evaluate", help="measure checkpoints and print their cards")
    command.set_defaults(run=_evaluate)
    command.add_argument("folders", nargs="+", type=Path, metavar="folder")
    action = command.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="compare with the saved card, to six digits; exit 1 if they differ"
    )
    action.add_argument("--save", action="store_true", help="replace the saved card")

    command = commands.add_parser("list", help="list the checkpoints in a folder")
    command.set_defaults(run=_list)
    command.add_argument("folder", nargs="?", type=Path, default=Path("models"))
    return parser


def _threads(text: str) -> int:
    if not 1 <= (count := int(text)) <= MOST_THREADS:
        raise argparse.ArgumentTypeError(f"must be from 1 to {MOST_THREADS}, not {count}")
    return count


def _train(arguments: argparse.Namespace) -> int:
    config = train_config(vars(arguments))
    name = checkpoint_name(config.task, config.model.variant, config.model.scoring)
    folder = arguments.out or Path("runs") / f"{name}-{config.seed}"
    if (folder / "config.json").exists() and not arguments.force:
        raise InvalidInputError(f"{folder} already holds a checkpoint; choose another --out, or add --force")
    checkpoints.check_room(folder, config.model)
    started = time.monotonic()
    for event in train(config):
        if isinstance(event, Progress):
            _report(event, config.steps, time.monotonic() - started)
        elif isinstance(event, Finished):
            print(file=sys.stderr)
            measured = card(event.model, config)
            measured["train_seconds"] = round(time.monotonic() - started, 1)
            checkpoints.save(folder, event.model, config, measured)
    print(folder)
    return 0


def train_config(options: Mapping[str, Any]) -> TrainConfig:
    """The run that the options of `train` ask for, each under its name in the configs.

    Raises:
        InvalidInputError, UnknownNameError: the options do not make a run.
    """
    task, variant, scoring = options["task"], options["variant"], options["scoring"]
    if options["shipped"]:
        config = shipped(task, variant, scoring, options["seed"])
    else:
        format_ = TASKS[task].formats[0]
        config = TrainConfig(
            model=ModelConfig(variant=variant, scoring=scoring, context=tokens_for(41, format_)),
            task=task,
            prompt_format=format_,
            seed=options["seed"],
        )
    given = {name: value for name, value in options.items() if name not in OWN}
    model = replace(
        config.model,
        initial={**config.model.initial, **dict(_assignments(options["initial"]))},
        learnable={**config.model.learnable, **dict.fromkeys(options["fixed"], False)},
        **{f.name: given[f.name] for f in fields(ModelConfig) if f.name in given},
    )
    return replace(config, model=model, **{f.name: given[f.name] for f in fields(TrainConfig) if f.name in given})


def _assignments(texts: Sequence[str]) -> Iterator[tuple[str, float]]:
    for text in texts:
        name, _, value = text.partition("=")
        try:
            yield name, float(value)
        except ValueError:
            raise InvalidInputError(f"--initial takes NAME=NUMBER, not {text!r}") from None


def _report(event: Progress, steps: int, seconds: float) -> None:
    left = seconds / event.step * (steps - event.step)
    line = f"step {event.step}/{steps}  loss {event.loss:.4f}  error {event.error:.4f}  {left:.0f} s left"
    end = "" if sys.stderr.isatty() else "\n"
    print(f"\r{line:<70}" if end == "" else line, end=end, file=sys.stderr, flush=True)


def first_difference(measured: Any, saved: Any, where: str = "card") -> str | None:
    """What differs first between two cards, numbers to six digits; None if nothing does.

    Weights are rounded in other places on other processors, and where compiled loops compute them.
    """
    if isinstance(measured, dict) and isinstance(saved, dict) and measured.keys() == saved.keys():
        pairs = [(f"{where}.{key}", measured[key], saved[key]) for key in measured]
    elif isinstance(measured, list) and isinstance(saved, list) and len(measured) == len(saved):
        pairs = [(f"{where}[{i}]", *both) for i, both in enumerate(zip(measured, saved, strict=True))]
    elif isinstance(measured, float) and isinstance(saved, float) and math.isclose(measured, saved, rel_tol=1e-6):
        return None
    else:
        return None if measured == saved else f"{where} is {measured!r} and was {saved!r}"
    found = (first_difference(one, other, name) for name, one, other in pairs)
    return next((each for each in found if each is not None), None)


def _evaluate(arguments: argparse.Namespace) -> int:
    code = 0
    for folder in arguments.folders:
        checkpoint = checkpoints.load(folder)
        measured = card(checkpoint.model, checkpoint.config.train)
        if arguments.save:
            run = checkpoint.config.train
            checkpoints.save(folder, checkpoint.model, run, {**checkpoint.metrics, **measured})
        elif not arguments.check:
            print(json.dumps({"name": checkpoint.config.name, **measured}, indent=2))
        else:
            saved = {key: checkpoint.metrics.get(key) for key in measured}
            differs = first_difference(json.loads(json.dumps(measured)), saved)
            same = differs is None
            print(f"{folder}: {'same as its card' if same else f'DIFFERS from its card: {differs}'}")
            code = code if same else 1
    return code


def _list(arguments: argparse.Namespace) -> int:
    listings = checkpoints.discover(arguments.folder)
    for listing in listings:
        if listing.config is None:
            print(f"{listing.name}: {listing.error}")
        else:
            run = listing.config.train
            print(f"{listing.name}: {run.task}, {run.model.variant}, {run.model.scoring}, seed {run.seed}")
    if not listings:
        print(f"no checkpoint in {arguments.folder}")
    return 0
