"""The process that works on a run: it trains, records, saves states, and does what it is asked to."""

from __future__ import annotations

import math
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from ssa_viz import checkpoints
from ssa_viz.checkpoints.files import reason
from ssa_viz.checkpoints.training_state import latest_state, save_state, states
from ssa_viz.errors import SSAVizError, as_sentence
from ssa_viz.evaluate import card
from ssa_viz.jobs import records
from ssa_viz.jobs.folder import RunConfig, read_run, write
from ssa_viz.jobs.status import (
    FAILED,
    FINISHED,
    MEASURING,
    PAUSE,
    PAUSED,
    RUNNING,
    STOP,
    STOPPED,
    Status,
    ask,
    asked,
    claimed,
    forget_request,
    write_status,
)
from ssa_viz.train import Probe, Progress, Training
from ssa_viz.train.ranks import agreed, leading, shared
from ssa_viz.version import __version__

LOOKS_EVERY = 0.2  # seconds between two looks for a request
BEATS_EVERY = 1.0  # seconds between two heartbeats
ENVIRONMENT_FILE = "environment.json"
REQUESTS = (None, PAUSE, STOP)

Report = Callable[[Progress, float], None]


def work(folder: Path, *, device: str | None = None, report: Report | None = None) -> Status:
    """Train the run in `folder`, from its last saved state if it has one, and say how it ended.

    Whatever ends it, the last good state stays, and the status says in a sentence what happened. SIGTERM and Ctrl+C
    pause it.

    Args:
        device: another one than run.json says.
        report: told each progress with the seconds of training so far.

    Raises:
        CheckpointError: run.json cannot be used.
        InvalidInputError: another process works on this run.
    """
    run = read_run(folder)
    if device is not None:
        run = replace(run, device=device)
    if not leading():
        _Follower(folder, run).train()
        return Status(FINISHED)
    with claimed(folder), _asked_by_signals(folder):
        torch.set_num_threads(run.threads)
        worker = _Leader(folder, run, report)
        try:
            return worker.finish(worker.train())
        except (SSAVizError, OSError, MemoryError, RuntimeError) as error:
            return worker.fail(error)
        finally:
            worker.beat.stop()


class _Follower:
    """The training loop, as every process of a run goes through it; only the leader leaves anything behind."""

    def __init__(self, folder: Path, run: RunConfig) -> None:
        self.folder, self.run = folder, run

    def train(self) -> str | None:
        """Train to the end, or until a request; which one."""
        self.training = Training(
            self.run.train,
            device=self.run.device,
            state=latest_state(self.folder, self.run.train),
            compiled=self.run.compiled,
        )
        self.begin()
        while not self.training.done:
            # Alone, a process can be asked at any step; together, they meet at the steps that are recorded.
            if not shared() or self.training.step % self.run.record_every == 0:
                request = REQUESTS[agreed(REQUESTS.index(self.request()), self.training.device)]
                if request is not None:
                    return request
                self.keep_state()
            self.training.advance()
            if self.training.step % self.run.record_every == 0 or self.training.done:
                self.record(self.training.progress())
            if self.training.step % self.run.look_every == 0 or self.training.done:
                self.look()
        return None

    def begin(self) -> None: ...
    def request(self) -> str | None: ...
    def keep_state(self) -> None: ...
    def record(self, progress: Progress) -> None: ...
    def look(self) -> None: ...


class _Leader(_Follower):
    def __init__(self, folder: Path, run: RunConfig, report: Report | None) -> None:
        super().__init__(folder, run)
        self.report = report
        self.before = 0.0  # seconds of training in earlier processes
        self.started = self.saved = time.monotonic()
        self.looked = -math.inf
        self.beat = _Heartbeat(folder, Status(RUNNING))

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.started

    def begin(self) -> None:
        step = self.training.step
        checkpoints.check_room(self.folder, self.run.train.model)
        for left in self.folder.glob(".*.tmp"):  # by a process that was killed while it wrote
            if f".{os.getpid()}." not in left.name:
                left.unlink(missing_ok=True)
        records.forget_after(self.folder, step)
        known = records.Records(self.folder)
        known.update()
        self.before = max((record["seconds"] for record in (*known.trained, *known.probed)), default=0.0)
        write(self.folder / ENVIRONMENT_FILE, environment(self.run))
        self.probe = Probe(self.run.train)
        self.started = self.saved = time.monotonic()
        self.first = step
        if step == 0:
            self.look()

    def request(self) -> str | None:
        now = time.monotonic()
        if now - self.looked < LOOKS_EVERY and not shared():
            return None
        self.looked = now
        rate = (self.training.step - self.first) / max(1e-9, now - self.started)
        self.beat.status = Status(RUNNING, self.training.step, self.seconds, rate)
        return asked(self.folder)

    def keep_state(self) -> None:
        if time.monotonic() - self.saved > self.run.snapshot_seconds:
            save_state(self.folder, self.training.state())
            self.saved = time.monotonic()

    def record(self, progress: Progress) -> None:
        records.append(self.folder, progress, self.seconds)
        if self.report is not None:
            self.report(progress, self.seconds)

    def look(self) -> None:
        records.append(self.folder, self.probe.look(self.training.model, self.training.step), self.seconds)

    def finish(self, request: str | None) -> Status:
        """Save what the run was asked for, or all of it at its end."""
        step, seconds = self.training.step, round(self.seconds, 1)
        if request == PAUSE:
            save_state(self.folder, self.training.state())
            return self.end(Status(PAUSED, step, seconds))
        self.training.state()  # refuses NaN and infinity
        self.beat.status = Status(MEASURING, step, seconds)
        model = self.training.model.eval().cpu()
        metrics = {**card(model, self.run.train), "train_seconds": seconds}
        if not self.training.done:
            metrics["stopped_at_step"] = step
        checkpoints.save(self.folder, model, self.run.train, metrics)
        for path in states(self.folder):
            path.unlink(missing_ok=True)
        return self.end(Status(FINISHED if self.training.done else STOPPED, step, seconds))

    def fail(self, error: Exception) -> Status:
        step = self.training.step if hasattr(self, "training") else 0
        left = states(self.folder)
        kept = f" Its last state, of step {int(left[0].stem.split('-')[1])}, is kept." if left else ""
        return self.end(Status(FAILED, step, self.seconds, sentence=_sentence(error) + kept))

    def end(self, status: Status) -> Status:
        self.beat.stop()
        with suppress(OSError):
            forget_request(self.folder)
            write_status(self.folder, status)
        return status


class _Heartbeat:
    """Writes the status each second, also during a step that takes longer."""

    def __init__(self, folder: Path, status: Status) -> None:
        self.status = status
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while True:
            with suppress(OSError):  # the training itself will meet the same fault and say so
                write_status(self._folder, self.status)
            if self._over.wait(BEATS_EVERY):
                return


def environment(run: RunConfig) -> dict[str, str | int]:
    """What a run's numbers depend on besides its settings."""
    name = torch.cuda.get_device_name(run.device) if run.device.startswith("cuda") else run.device
    return {
        "library_version": __version__,
        "torch_version": str(torch.__version__),
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "processor": platform.machine(),
        "device": name,
        "threads": run.threads,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "kernels": os.environ.get("SSA_VIZ_KERNELS", "1"),
    }


def _sentence(error: Exception) -> str:
    """What happened and what to do, for a person."""
    if isinstance(error, SSAVizError):
        text = as_sentence(str(error))
        return text + ("" if text.endswith(".") else ".")
    if isinstance(error, OSError):
        return f"Its folder cannot be written to ({reason(error)}); make room or mend the folder, then resume it."
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return "There was not enough memory; use a smaller batch or model, or another device."
    if shared():
        return "Another process of this run has ended; start the same command again to go on."
    return f"The device failed ({str(error).splitlines()[0][:120]}); resume it, perhaps on another device."


@contextmanager
def _asked_by_signals(folder: Path) -> Iterator[None]:
    """SIGTERM and Ctrl+C ask for a pause while this lasts; only a process's first thread can listen to signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def pause(number: int, frame: FrameType | None) -> None:
        ask(folder, PAUSE)

    before = {number: signal.signal(number, pause) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
