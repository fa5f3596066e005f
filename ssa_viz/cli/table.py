"""`ssa-viz table`: the Robustness page's table, from what was measured or measured anew from the checkpoints."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ssa_viz import checkpoints
from ssa_viz.checkpoints.strict_json import read_object
from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate import card
from ssa_viz.evaluate.table import MAIN, Table, constants_of, parts, table
from ssa_viz.model import VARIANTS
from ssa_viz.tasks import TASKS
from ssa_viz.train.presets import checkpoint_name


def add_table(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_table)
    command.add_argument("--models", type=Path, default=Path("models"))
    command.add_argument("--task", choices=list(TASKS), help="only this one; default all that have every function")
    command.add_argument("--variant", choices=VARIANTS, help="default that which has every function")
    command.add_argument("--shipped", action="store_true", help="the shipped seeds alone, not mean ± spread of all")
    command.add_argument("--measure", action="store_true", help="measure the shipped checkpoints anew (minutes)")


def _table(arguments: argparse.Namespace) -> int:
    pairs = [
        (task, arguments.variant or usual) for task, usual in MAIN if arguments.task is None or task == arguments.task
    ]
    seeds = read_object(arguments.models / "seeds.json")
    if arguments.measure:
        seeds = {f"{task}-{variant}": _measured(arguments.models, seeds, task, variant) for task, variant in pairs}
    found = parts(seeds, pairs, only_shipped=arguments.shipped or arguments.measure)
    _print(table(found, {task: constants_of(task, variant) for task, variant in pairs}))
    return 0


def _measured(models: Path, seeds: dict[str, Any], task: str, variant: str) -> dict[str, Any]:
    """The entry of the shipped checkpoints, as they are measured now."""
    try:
        names = list(seeds[f"{task}-{variant}"]["shipped"])
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"seeds.json says of no checkpoint of {task} with {variant}") from error
    cards = {}
    for name in names:
        loaded = checkpoints.load(models / checkpoint_name(task, variant, name))
        cards[name] = [card(loaded.model, loaded.config.train)]
    return {"seeds": [0], "shipped": dict.fromkeys(names, 0), "cards": cards}


def _print(what: Table) -> None:
    """As Markdown; bold is what is clearly lowest."""
    print("| | " + " | ".join(what.columns) + " |")
    print("|---" * (len(what.columns) + 1) + "|")
    for row, cells in what.cells.items():
        texts = (f"**{cell.text}**" if cell.best else cell.text for cell in (cells[name] for name in what.columns))
        print(f"| {row} | " + " | ".join(texts) + " |")
