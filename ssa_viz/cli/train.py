"""`ssa-viz train`: one run in this process, which can be paused with Ctrl+C and goes on with the same command."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssa_viz import jobs
from ssa_viz.checkpoints import check_room
from ssa_viz.checkpoints.format import CONFIG_FILE
from ssa_viz.checkpoints.training_state import states
from ssa_viz.cli.options import add_options, train_config
from ssa_viz.errors import InvalidInputError
from ssa_viz.jobs.folder import RUN_FILE, RunConfig, read_run, write_run
from ssa_viz.jobs.records import METRICS_FILE, PROBE_FILE, probe_steps
from ssa_viz.jobs.status import FAILED, FINISHED, INTERRUPTED, PAUSED, STOPPED, forget_request
from ssa_viz.train import Progress, TrainConfig
from ssa_viz.train.devices import check_precision
from ssa_viz.train.presets import checkpoint_name
from ssa_viz.train.ranks import joined, leading

RUN_OPTIONS: tuple[str, ...] = ("name", "threads", "every", "probe_every", "snapshot_seconds", "device", "compiled")


def add_train(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_train)
    add_options(command)
    command.add_argument(
        "--out", type=Path, help="folder to write; default that of --config's run.json, or runs/<what it is>-<seed>"
    )
    command.add_argument("--force", action="store_true", help="begin anew where there already is something")
    command.add_argument("--device", default=argparse.SUPPRESS, help="cpu, cuda, cuda:1 or mps; default cpu")
    command.add_argument("--name", default=argparse.SUPPRESS, help="for people; shown in the app")
    command.add_argument(
        "--every", type=int, default=argparse.SUPPRESS, help="steps between two records; default 200 records a run"
    )
    command.add_argument(
        "--probe-every",
        type=int,
        default=argparse.SUPPRESS,
        help="steps between two looks at a fixed sequence; default at most 60 a run",
    )
    command.add_argument(
        "--snapshot-seconds",
        type=float,
        default=argparse.SUPPRESS,
        help=f"between two saved states; default {RunConfig(TrainConfig()).snapshot_seconds:g}",
    )
    command.add_argument(
        "--compile",
        dest="compiled",
        action="store_true",
        default=argparse.SUPPRESS,
        help="PyTorch's compiler, with CUDA graphs on a GPU; a minute for each length of prompts first",
    )
    command.add_argument("--quiet", action="store_true", help="no progress")


def _train(arguments: argparse.Namespace) -> int:
    with joined(getattr(arguments, "device", "cpu")) as device:
        folder = _prepare(arguments)
        options = vars(arguments)
        report = None if arguments.quiet else _Reporter(read_run(folder).train.steps)
        status = jobs.work(folder, device=device if "device" in options or device != "cpu" else None, report=report)
        if not leading():
            return 0
    if report is not None:
        report.close()
    jobs.start_waiting(folder.parent)
    if status.state == FAILED:
        print(f"ssa-viz: {status.sentence}", file=sys.stderr)
        return 1
    if status.state == PAUSED:
        print(f"ssa-viz: paused after step {status.step}; the same command goes on from there", file=sys.stderr)
        return 130
    print(folder)
    return 0


def _prepare(arguments: argparse.Namespace) -> Path:
    """The folder of the run that is asked for, ready to be worked on: a new one, or one that goes on."""
    options: dict[str, Any] = vars(arguments)
    config = train_config(options)
    source: Path | None = arguments.config
    own = source is not None and source.name == RUN_FILE and arguments.out is None
    name = f"{checkpoint_name(config.task, config.model.variant, config.model.scoring)}-{config.seed}"
    folder: Path = source.parent if own and source is not None else arguments.out or Path("runs") / name
    given = {key: options[key] for key in RUN_OPTIONS if key in options}
    run = replace(read_run(source.parent), train=config, **given) if own and source else RunConfig(config, **given)
    if not leading():
        return folder
    check_precision(config.precision, run.device)
    there = jobs.listed(folder) if (folder / RUN_FILE).exists() else None
    if arguments.force:
        _clear(folder)
    elif (folder / CONFIG_FILE).exists() and not (there and _to_be_stopped(there)):
        raise InvalidInputError(f"{folder} already holds a checkpoint; choose another --out, or add --force")
    elif there is not None and there.run is not None and there.run.train != config:
        raise InvalidInputError(
            f"{folder} holds a run with other settings; choose another --out, or add --force to begin anew"
        )
    elif there is not None and there.status.state in (PAUSED, INTERRUPTED, FAILED):
        forget_request(folder)
    check_room(folder, config.model)
    if there is None or there.run != run:
        write_run(folder, run)
    return folder


def _to_be_stopped(there: jobs.Listed) -> bool:
    """Whether a run has a checkpoint only because it is written a second time; a finished one is left alone."""
    return there.status.state not in (FINISHED, STOPPED)


def _clear(folder: Path) -> None:
    """Remove a run's states and records, so that it begins anew; its checkpoint stays until there is another."""
    for path in (*states(folder), folder / METRICS_FILE, folder / "status.json"):
        path.unlink(missing_ok=True)
    for step in probe_steps(folder):
        (folder / PROBE_FILE.format(step=step)).unlink(missing_ok=True)
    forget_request(folder)


class _Reporter:
    """One line that is written over on a terminal; a line each tenth of the run elsewhere."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.live = sys.stderr.isatty()
        self.said = 0

    def __call__(self, event: Progress, seconds: float) -> None:
        if not self.live and event.step < self.steps and (event.step - self.said) * 10 < self.steps:
            return
        self.said = event.step
        left = seconds / event.step * (self.steps - event.step)
        done = 20 * event.step // self.steps
        bar = f"{'█' * done}{'·' * (20 - done)} " if self.live else ""
        line = f"{bar}step {event.step}/{self.steps}  loss {event.loss:.4f}  error {event.error:.4f}  {left:.0f} s left"
        print(f"\r{line:<90}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.live:
            print(file=sys.stderr)
