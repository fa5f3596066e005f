"""`ssa-viz evaluate` and `ssa-viz list`: what is measured of a checkpoint, and what there is."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from ssa_viz import checkpoints
from ssa_viz.evaluate import card


def add_evaluate(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_evaluate)
    command.add_argument("folders", nargs="+", type=Path, metavar="folder")
    action = command.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="compare with the saved card, to six digits; exit 1 if they differ"
    )
    action.add_argument("--save", action="store_true", help="replace the saved card")


def add_list(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_list)
    command.add_argument("folder", nargs="?", type=Path, default=Path("models"))


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
