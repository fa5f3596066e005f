"""`ssa-viz runs`: what the Train page does with runs, from a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ssa_viz import jobs
from ssa_viz.errors import InvalidInputError
from ssa_viz.jobs.control import TRASH

ACTIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pause": (jobs.pause, "save a run's state and end its process"),
    "resume": (jobs.resume, "go on with a paused, interrupted or failed run, as soon as there is room"),
    "stop": (jobs.stop, "end a run and keep what it has learned as a checkpoint"),
    "discard": (jobs.discard, "put a run away"),
}


def add_runs(command: argparse.ArgumentParser) -> None:
    command.add_argument("--runs", type=Path, default=Path("runs"), help="the folder with the runs")
    command.set_defaults(run=_list)
    actions = command.add_subparsers(metavar="action")
    listing = actions.add_parser("list", help="every run and what it is doing")
    listing.set_defaults(run=_list)
    for name, (act, text) in ACTIONS.items():
        action = actions.add_parser(name, help=text)
        action.add_argument("id", help="the run's folder inside the folder with the runs")
        action.set_defaults(run=_acts(act))
    back = actions.add_parser("restore", help="bring a discarded run back")
    back.add_argument("id")
    back.set_defaults(run=_restore)
    export = actions.add_parser("export", help="write a finished run to one zip file")
    export.add_argument("id")
    export.add_argument("--to", type=Path, help="default <id>.zip")
    export.set_defaults(run=_export)
    rename = actions.add_parser("rename", help="give a run another name")
    rename.add_argument("id")
    rename.add_argument("name")
    rename.set_defaults(run=_rename)


def _list(arguments: argparse.Namespace) -> int:
    found = jobs.runs(arguments.runs)
    for each in found:
        of = f" of {each.run.train.steps}" if each.run else ""
        said = each.error or each.status.sentence
        print(f"{each.id}: {each.status.state}, step {each.status.step}{of}{f'; {said}' if said else ''}")
    if not found:
        print(f"no run in {arguments.runs}")
    return 0


def _acts(act: Callable[[Path], object]) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        act(_folder(arguments))
        return 0

    return run


def _restore(arguments: argparse.Namespace) -> int:
    jobs.restore(arguments.runs, arguments.id)
    return 0


def _rename(arguments: argparse.Namespace) -> int:
    jobs.rename(_folder(arguments), arguments.name)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    folder = _folder(arguments)
    path = arguments.to or Path(f"{folder.name}.zip")
    content = jobs.export(folder)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from error
    print(path)
    return 0


def _folder(arguments: argparse.Namespace) -> Path:
    folder: Path = arguments.runs / arguments.id
    if folder.parent != arguments.runs or folder.name == TRASH or not (folder / "run.json").exists():
        known = ", ".join(each.id for each in jobs.runs(arguments.runs)) or "none"
        raise InvalidInputError(f"there is no run {arguments.id!r} in {arguments.runs}; there is: {known}")
    return folder
