"""What a run is doing. A process that works on a run holds a lock on its folder, which ends with the process, however
it ends: a run that says it is running while nobody holds the lock was interrupted."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from filelock import FileLock, Timeout

from ssa_viz.errors import InvalidInputError

STATUS_FILE = "status.json"
LOCK_FILE = ".lock"
REQUEST_FILE = "request"

QUEUED, STARTING, RUNNING, MEASURING = "queued", "starting", "running", "measuring"
PAUSED, STOPPED, FINISHED, FAILED, INTERRUPTED = "paused", "stopped", "finished", "failed", "interrupted"
ACTIVE = (STARTING, RUNNING, MEASURING)
STATES = (QUEUED, *ACTIVE, PAUSED, STOPPED, FINISHED, FAILED, INTERRUPTED)
PAUSE, STOP = "pause", "stop"  # requests

STARTS_WITHIN = 60.0  # seconds from the launch until the process holds its lock; importing torch takes a few
QUIET_AFTER = 30.0  # seconds without a heartbeat until one says so
PADDED = 1024  # bytes: a status can then be overwritten in place when a disk is full


@dataclass(frozen=True)
class Status:
    """One line about a run.

    Attributes:
        state: one of `STATES`; `interrupted` is found out on reading and never written.
        step: steps done.
        seconds: of training so far, over all of its processes.
        steps_per_second: lately; 0 if unknown.
        sentence: why it failed, or whatever else is to be said.
        pid: of the process that wrote it.
        time: when it was written, Unix time: the heartbeat.
    """

    state: str
    step: int = 0
    seconds: float = 0.0
    steps_per_second: float = 0.0
    sentence: str = ""
    pid: int = 0
    time: float = 0.0

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    @property
    def quiet(self) -> bool:
        """Whether a running process has not been heard of for a while."""
        return self.state == RUNNING and time.time() - self.time > QUIET_AFTER


KINDS = get_type_hints(Status)


def write_status(folder: Path, status: Status) -> None:
    """Replace the status. On a full disk the old file's room is written over.

    Raises:
        OSError: even that is impossible.
    """
    stamped = replace(status, time=time.time(), pid=os.getpid(), sentence=status.sentence[:300])
    content = json.dumps(asdict(stamped)).ljust(PADDED - 1).encode() + b"\n"
    path = folder / STATUS_FILE
    temporary = folder / f".{STATUS_FILE}.{os.getpid()}.tmp"
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        with path.open("r+b") as file:
            file.write(content)


def read_status(folder: Path) -> Status:
    """What the run is doing now. Never raises: a status that cannot be read is a failure that says so."""
    status = _written(folder)
    if status.active and not is_worked_on(folder):
        if status.state == STARTING and time.time() - status.time < STARTS_WITHIN:
            return status
        status = _written(folder)  # it may have ended well in between
        if status.active:
            return replace(status, state=INTERRUPTED, sentence="Its process has ended before its time.")
    return status


@contextmanager
def claimed(folder: Path, patience: float = 5.0) -> Iterator[None]:
    """Hold the folder's lock: nobody else works on this run meanwhile.

    Raises:
        InvalidInputError: another process works on it, and still does after `patience` seconds.
    """
    lock = FileLock(folder / LOCK_FILE, timeout=patience)
    try:
        lock.acquire()
    except Timeout:
        raise InvalidInputError(f"another process is already training in {folder}; wait for it or pause it") from None
    try:
        yield
    finally:
        lock.release()


def is_worked_on(folder: Path) -> bool:
    """Whether a process holds the folder's lock."""
    if not (folder / LOCK_FILE).exists():
        return False
    try:
        with FileLock(folder / LOCK_FILE, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a folder that cannot be written to
        return False


def ask(folder: Path, request: str) -> None:
    """Ask the run's process to pause or stop, now or when it next looks."""
    (folder / REQUEST_FILE).write_text(request)


def asked(folder: Path) -> str | None:
    """What the run was asked for."""
    try:
        request = (folder / REQUEST_FILE).read_text()
    except OSError:
        return None
    return request if request in (PAUSE, STOP) else None


def forget_request(folder: Path) -> None:
    (folder / REQUEST_FILE).unlink(missing_ok=True)


def _written(folder: Path) -> Status:
    for attempt in range(3):
        try:
            document = json.loads((folder / STATUS_FILE).read_bytes()[: 4 * PADDED])
            status = Status(**{name: _field(document[name], kind) for name, kind in KINDS.items()})
            if status.state in STATES:
                return status
        except (OSError, ValueError, KeyError, TypeError):
            if attempt < 2:
                time.sleep(0.02)  # it may be just being written over
    return Status(FAILED, sentence="Its status cannot be read; resume it to go on from its last saved state.")


def _field(value: Any, kind: type[Any]) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise TypeError
    return value
