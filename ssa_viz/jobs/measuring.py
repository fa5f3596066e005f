"""Error maps measured in the background: processes of their own, one at a time, each watched and each to be cancelled.

What is asked for twice is measured once. A process writes its map whole at its end or not at all, so one that is
cancelled or killed leaves nothing behind; and it ends by itself once nobody reads what it says any more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ssa_viz.errors import as_sentence
from ssa_viz.jobs.queue import PACKAGE_ROOT, TORCHRUN

PROGRESS = "cells"  # as ssa_viz.cli.maps prints it
WAITING, RUNNING, DONE, CANCELLED, FAILED = "waiting", "running", "done", "cancelled", "failed"


class Measuring:
    """One map on its way. Every attribute may be read at any time, from any thread.

    Attributes:
        state: waiting, running, done, cancelled or failed.
        done, count: cells; 0 of 0 until the first is done.
        error: a sentence, if it failed.
    """

    def __init__(self, command: list[str]) -> None:
        self.state = WAITING
        self.done = self.count = 0
        self.error: str | None = None
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self.future: Future[None] | None = None

    @property
    def active(self) -> bool:
        return self.state in (WAITING, RUNNING)

    def cancel(self) -> None:
        """End it; nothing happens if it has ended."""
        with self._lock:
            if not self.active:
                return
            self.state = CANCELLED
            if self._process is not None:
                self._process.terminate()

    def work(self) -> None:
        """Run the process to its end."""
        with self._lock:
            if self.state != WAITING:
                return
            environment = {name: value for name, value in os.environ.items() if not name.startswith(TORCHRUN)}
            try:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=PACKAGE_ROOT,
                    env={**environment, "PYTHONUNBUFFERED": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                self.state, self.error = FAILED, f"It could not be started: {error.strerror}."
                return
            self.state = RUNNING
        assert self._process.stdout is not None
        last = ""
        with self._process.stdout as lines:
            for line in lines:
                words = line.split()
                if len(words) == 3 and words[0] == PROGRESS and words[1].isdecimal() and words[2].isdecimal():
                    self.done, self.count = int(words[1]), int(words[2])
                else:
                    last = line.strip() or last
        code = self._process.wait()
        with self._lock:
            if self.state == CANCELLED:
                return
            self.state = DONE if code == 0 else FAILED
            if code != 0:
                said = last.removeprefix("ssa-viz: ")
                outside = f"Its process was ended from outside (signal {-code})."
                ended = outside if code < 0 else f"Its process ended with code {code}."
                self.error = as_sentence(said) if said else ended


class Desk:
    """Who measures what. One for all visitors of a server."""

    def __init__(self) -> None:
        self._by_key: dict[str, Measuring] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ssa-viz-measuring")

    def find(self, key: str) -> Measuring | None:
        """What was last started for this map."""
        return self._by_key.get(key)

    def start(self, key: str, folder: Path, kind: str, sequences: int, into: Path) -> Measuring:
        """Measure the map of the checkpoint in `folder`, or go on doing so; the map lands in the folder `into`."""
        with self._lock:
            there = self._by_key.get(key)
            if there is not None and there.active:
                return there
            command = [
                *(sys.executable, "-m", "ssa_viz", "--threads", str(os.cpu_count() or 1)),
                *("maps", str(folder.absolute()), "--kind", kind, "--sequences", str(sequences)),
                *("--to", str(into.absolute()), "--progress"),
            ]
            measuring = self._by_key[key] = Measuring(command)
            measuring.future = self._pool.submit(measuring.work)
            self._forget()
            return measuring

    def _forget(self, most: int = 200) -> None:
        """Drop the oldest that have ended."""
        ended = [key for key, each in self._by_key.items() if not each.active]
        for key in ended[: max(0, len(self._by_key) - most)]:
            del self._by_key[key]


DESK = Desk()
