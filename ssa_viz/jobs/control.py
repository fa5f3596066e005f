"""What a person does with runs. Everything here may be called twice, and from several processes at once."""

from __future__ import annotations

import io
import secrets
import shutil
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from ssa_viz.checkpoints.files import fault, reason
from ssa_viz.checkpoints.format import CONFIG_FILE, METRICS_FILE, WEIGHTS_FILE
from ssa_viz.checkpoints.training_state import states
from ssa_viz.errors import InvalidInputError
from ssa_viz.jobs import records
from ssa_viz.jobs.folder import RUN_FILE, RunConfig, read_run, write_run
from ssa_viz.jobs.listing import runs
from ssa_viz.jobs.queue import queue_lock, start_waiting
from ssa_viz.jobs.status import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    PAUSE,
    PAUSED,
    QUEUED,
    STOP,
    STOPPED,
    Status,
    ask,
    forget_request,
    is_worked_on,
    read_status,
    write_status,
)
from ssa_viz.jobs.worker import ENVIRONMENT_FILE

TRASH = ".trash"
MOST_IN_TRASH = 20
CREATE_LOCK = ".create.lock"
DISCARD_PATIENCE = 15.0  # seconds that a running process has to save its state
EXPORTED = (WEIGHTS_FILE, CONFIG_FILE, METRICS_FILE, RUN_FILE, ENVIRONMENT_FILE, records.METRICS_FILE)


def create(root: Path, wanted: Sequence[RunConfig]) -> list[Path]:
    """Queue runs and start as many as there is room for; their folders.

    A run that is already queued or running with the very same settings is not made a second time: asking twice, as a
    double click does, gives the same runs.

    Raises:
        CheckpointError: the disk refuses; nothing is queued then.
    """
    made: list[Path] = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / CREATE_LOCK):
            going = [
                (each.run, each.folder)
                for each in runs(root)
                if each.run is not None and (each.status.active or each.status.state == QUEUED)
            ]
            folders = []
            for run in wanted:
                same = (at for other, at in going if (other.train, other.device) == (run.train, run.device))
                if (folder := next(same, None)) is None:
                    folder = _new_folder(root, run)
                    made.append(folder)
                    going.append((run, folder))
                    write_status(folder, Status(QUEUED))
                    write_run(folder, run)  # last, since it makes the folder a run
                folders.append(folder)
    except OSError as error:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise fault(root, f"cannot be written: {reason(error)}") from error
    start_waiting(root)
    return folders


def pause(folder: Path) -> None:
    """Save the state of a running run and end its process; a queued one waits until it is resumed."""
    with queue_lock(folder.parent):  # or it might just be started
        status = read_status(folder)
        if status.state == QUEUED:
            _become(folder, PAUSED)
    if status.active:
        ask(folder, PAUSE)


def resume(folder: Path) -> None:
    """Queue a paused, interrupted or failed run again; it goes on from its last state."""
    if read_status(folder).state in (PAUSED, INTERRUPTED, FAILED):
        forget_request(folder)
        _become(folder, QUEUED)
    start_waiting(folder.parent)


def stop(folder: Path) -> None:
    """End a run for good and keep what it has learned as a checkpoint.

    Raises:
        InvalidInputError: it has not begun, so that there is nothing to keep.
    """
    status = read_status(folder)
    if status.state in (FINISHED, STOPPED):
        return
    if not status.active:
        if not states(folder):
            raise InvalidInputError("this run has no saved state, so there is nothing to keep; discard it instead")
        _become(folder, QUEUED)
    ask(folder, STOP)
    start_waiting(folder.parent)


def discard(folder: Path) -> None:
    """Put a run away, ending its process first. `restore` brings it back; of those put away the newest 20 are kept.

    Raises:
        InvalidInputError: its process does not end.
        CheckpointError: the disk refuses.
    """
    if not folder.exists():
        return
    pause(folder)
    deadline = time.monotonic() + DISCARD_PATIENCE
    while read_status(folder).active or is_worked_on(folder):
        if time.monotonic() > deadline:
            raise InvalidInputError("its process is still saving; discard it again in a moment")
        time.sleep(0.1)
    trash = folder.parent / TRASH
    try:
        trash.mkdir(exist_ok=True)
        shutil.rmtree(trash / folder.name, ignore_errors=True)
        folder.rename(trash / folder.name)
        (trash / folder.name).touch()
        oldest = sorted(trash.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[MOST_IN_TRASH:]
        for each in oldest:
            shutil.rmtree(each, ignore_errors=True)
    except OSError as error:
        raise fault(folder, f"cannot be discarded: {reason(error)}") from error
    start_waiting(folder.parent)


def restore(root: Path, name: str) -> None:
    """Bring a discarded run back, as it was.

    Raises:
        InvalidInputError: it is not there any more.
    """
    try:
        (root / TRASH / name).rename(root / name)
    except OSError:
        raise InvalidInputError("this run is not there any more") from None


def rename(folder: Path, name: str) -> None:
    """Give a run another name for people; its folder keeps its own.

    Raises:
        InvalidInputError: the name is too long or cannot be seen.
        CheckpointError: the disk refuses.
    """
    write_run(folder, replace(read_run(folder), name=name.strip()))


def export(folder: Path) -> bytes:
    """A finished run as one zip file: the checkpoint as in models/, its settings and everything measured.

    Raises:
        CheckpointError: a file cannot be read.
        InvalidInputError: there is no checkpoint yet.
    """
    if not (folder / CONFIG_FILE).exists():
        raise InvalidInputError("this run has no checkpoint yet")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name in EXPORTED:
            path = folder / name
            with suppress(FileNotFoundError):
                try:
                    file.writestr(f"{folder.name}/{name}", path.read_bytes())
                except PermissionError as error:
                    raise fault(path, f"cannot be read: {reason(error)}") from error
    return buffer.getvalue()


def _new_folder(root: Path, run: RunConfig) -> Path:
    """A folder that nobody else has, whose name says what is in it."""
    train = run.train
    while True:
        name = f"{train.task}-{train.model.variant}-{train.model.scoring}-{train.seed}-{secrets.token_hex(2)}"
        with suppress(FileExistsError):
            (root / name).mkdir()
            return root / name


def _become(folder: Path, state: str) -> None:
    status = read_status(folder)
    write_status(folder, Status(state, status.step, status.seconds))
