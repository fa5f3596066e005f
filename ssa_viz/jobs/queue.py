"""Which run starts when. Whoever ends, creates or resumes a run starts the next ones, so that no server is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from ssa_viz.errors import CheckpointError, InvalidInputError
from ssa_viz.jobs.folder import LOG_FILE, RUN_FILE, read_run
from ssa_viz.jobs.status import FAILED, QUEUED, STARTING, Status, is_worked_on, read_status, write_status

AT_ONCE = "SSA_VIZ_RUNS_AT_ONCE"
QUEUE_LOCK = ".queue.lock"
TORCHRUN = ("WORLD_SIZE", "RANK", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_", "TORCH_NCCL_")
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def runs_at_once() -> int:
    """How many runs a machine works on at the same time: its cores, or what the environment variable says.

    Raises:
        InvalidInputError: the variable is not a whole number above 0.
    """
    given = os.environ.get(AT_ONCE)
    if not given:
        return os.cpu_count() or 1
    if not given.isdecimal() or int(given) < 1:
        raise InvalidInputError(f"{AT_ONCE} must be a whole number above 0, not {given!r}")
    return int(given)


def start_waiting(root: Path) -> list[str]:
    """Start the queued runs below `root`, those first that were created first, as far as there is room; their ids.

    Any number of processes may call this at once.
    """
    if not root.is_dir():
        return []
    with queue_lock(root):
        folders = [path.parent for path in root.glob(f"*/{RUN_FILE}")]
        statuses = {folder: read_status(folder) for folder in folders}
        room = runs_at_once() - sum(status.active for status in statuses.values())
        waiting = [folder for folder in folders if statuses[folder].state == QUEUED]
        created = {}
        for folder in waiting:
            try:
                created[folder] = read_run(folder).created
            except CheckpointError as error:
                write_status(folder, Status(FAILED, sentence=str(error)))
        started = sorted(created, key=lambda folder: (created[folder], folder.name))[: max(0, room)]
        for folder in started:
            _launch(folder, statuses[folder])
    return [folder.name for folder in started]


def queue_lock(root: Path) -> FileLock:
    """Held by whoever decides what is queued below `root`."""
    return FileLock(root / QUEUE_LOCK)


def _launch(folder: Path, status: Status) -> None:
    """Start the run's process, with a session of its own so that it outlives this one."""
    write_status(folder, Status(STARTING, status.step, status.seconds))
    command = [sys.executable, "-m", "ssa_viz", "train", "--config", str((folder / RUN_FILE).resolve()), "--quiet"]
    # A run that torchrun started may start this one, which is not to wait for that one's company.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(TORCHRUN)}
    with (folder / LOG_FILE).open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=PACKAGE_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    # Without this a process that has ended stays in the table for as long as this one lives.
    threading.Thread(target=_wait, args=(process, folder), daemon=True).start()


def _wait(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait for a run's process; one that ended before it could say why is given its last words."""
    process.wait()
    status = read_status(folder)
    if status.state == STARTING and not is_worked_on(folder):
        with suppress(OSError):
            said = (folder / LOG_FILE).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            last = said[-1].removeprefix("ssa-viz: ") if said else "It ended without a word."
            write_status(folder, replace(status, state=FAILED, sentence=last))
