"""Runs as processes: queue, pause, kill, resume, and what ends them."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ssa_viz import checkpoints, jobs
from ssa_viz.errors import CheckpointError, InvalidInputError
from ssa_viz.jobs import Records, RunConfig, Status, estimate
from ssa_viz.jobs import folder as run_folder
from ssa_viz.jobs import worker as run_worker
from ssa_viz.jobs.queue import queue_lock
from ssa_viz.jobs.status import FAILED, FINISHED, INTERRUPTED, PAUSED, QUEUED, RUNNING, STOPPED, ask, write_status
from ssa_viz.model import ModelConfig
from ssa_viz.train import TrainConfig, training

ROOT = Path(__file__).resolve().parents[1]
TINY = ModelConfig(variant="attention_only", layers=1, heads=2, width=8, context=9, scoring="ssa")
PATIENCE = 120.0


@pytest.fixture(autouse=True)
def small_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card of 1024 prompts each would be most of the time of these tests; the processes' own are whole."""
    card = run_worker.card
    monkeypatch.setattr(run_worker, "card", lambda model, config: card(model, config, sequences=8))


def config(**changes: Any) -> TrainConfig:
    return dataclasses.replace(TrainConfig(model=TINY, length=7, steps=60, batch=4, warmup=0), **changes)


def run(name: str = "tiny", **changes: Any) -> RunConfig:
    own = {key: changes.pop(key) for key in ("every", "probe_every", "snapshot_seconds", "created") if key in changes}
    return RunConfig(config(**changes), name, **{"every": 7, "probe_every": 10, "snapshot_seconds": 0.0, **own})


def prepared(root: Path, wanted: RunConfig, name: str = "one") -> Path:
    """A run's folder that nobody has started."""
    folder = root / name
    folder.mkdir(parents=True)
    write_status(folder, Status(QUEUED))
    run_folder.write_run(folder, wanted)
    return folder


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def recorded(folder: Path) -> list[dict[str, Any]]:
    """All records but the seconds, which no two runs share."""
    records = Records(folder)
    records.update()
    both = [*records.trained, *records.probed]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in both]


def until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_a_run_from_beginning_to_end(tmp_path: Path) -> None:
    folder = prepared(tmp_path, run())
    told = []
    status = jobs.work(folder, report=lambda progress, seconds: told.append(progress.step))
    assert (status.state, status.step) == (FINISHED, 60)
    assert jobs.read_status(folder).state == FINISHED
    assert told == [7, 14, 21, 28, 35, 42, 49, 56, 60]
    steps = [record["step"] for record in recorded(folder)]
    assert steps == [*told, 0, 10, 20, 30, 40, 50, 60]
    assert jobs.probe_steps(folder) == [0, 10, 20, 30, 40, 50, 60]
    picture = jobs.probe_at(folder, 30)
    assert picture.weights.shape == (1, 2, 7, 7)
    assert picture.numbers[picture.position] == 70
    loaded = checkpoints.load(folder)
    assert loaded.config.train == run().train
    assert loaded.metrics["train_seconds"] >= 0
    assert not list(folder.glob("state-*"))
    assert json.loads((folder / "environment.json").read_text())["device"] == "cpu"
    assert [each.name for each in checkpoints.discover(tmp_path)] == ["one"]


def test_killed_at_random_moments_and_resumed_gives_the_same_bits(tmp_path: Path) -> None:
    """Twenty runs, each cut at a random step by an exception that nothing may catch, as SIGKILL would be, in one
    process so that it stays quick; the next test kills real processes."""
    steps = 16
    wanted = run(steps=steps, every=3, probe_every=5)
    reference = prepared(tmp_path, wanted, "reference")
    jobs.work(reference)
    rng = random.Random(3)
    for i in range(20):
        folder = prepared(tmp_path, wanted, f"cut-{i}")
        for cut in sorted(rng.sample(range(1, steps), k=rng.randint(1, 3))):
            killed_after(folder, cut)
        assert jobs.work(folder).state == FINISHED
        assert digest(folder) == digest(reference)
        assert recorded(folder) == recorded(reference)


class Killed(BaseException):
    """Ends a run where it is, with nothing cleaned up."""


def killed_after(folder: Path, step: int) -> None:
    """Work on a run until it would go beyond `step`."""
    advance = run_worker.Training.advance

    def dying(self: Any) -> None:
        if self.step >= step:
            raise Killed
        advance(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_worker.Training, "advance", dying)
        with pytest.raises(Killed):
            jobs.work(folder)
    # The lock went with the "process", so the run is interrupted, not running.
    assert jobs.read_status(folder).state == INTERRUPTED


def test_real_processes_killed_and_resumed_give_the_same_bits(tmp_path: Path) -> None:
    wanted = run(steps=1500, every=50, probe_every=500, snapshot_seconds=0.05)
    reference = prepared(tmp_path, wanted, "reference")
    [folder] = jobs.create(tmp_path / "queue", [wanted])
    for _ in range(2):
        seen = jobs.read_status(folder).step
        until(lambda seen=seen: jobs.read_status(folder).step > seen, "it trains")  # type: ignore[misc]
        os.kill(jobs.read_status(folder).pid, signal.SIGKILL)
        until(lambda: jobs.read_status(folder).state == INTERRUPTED, "its end is seen")
        jobs.resume(folder)
        until(lambda: jobs.read_status(folder).state == RUNNING, "it goes on")
    jobs.work(reference)
    until(lambda: jobs.read_status(folder).state == FINISHED, "it ends")
    assert digest(folder) == digest(reference)
    assert recorded(folder) == recorded(reference)
    assert not list(folder.glob(".*.tmp"))


def test_many_runs_at_once_are_each_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queued by two processes at the same moment, two at a time; nobody looks after them but themselves."""
    monkeypatch.setenv("SSA_VIZ_RUNS_AT_ONCE", "2")
    wanted = [run(f"r{seed}", seed=seed, steps=5) for seed in range(6)]
    threads = [threading.Thread(target=jobs.create, args=(tmp_path, wanted)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(jobs.runs(tmp_path)) == 6
    most = 0

    def over() -> bool:
        nonlocal most
        with queue_lock(tmp_path):  # so that none ends and another starts between two looks
            states = [each.status.state for each in jobs.runs(tmp_path)]
        most = max(most, sum(state in jobs.ACTIVE for state in states))
        return all(state in (FINISHED, FAILED) for state in states)

    until(over, "all end")
    assert most <= 2
    for each in jobs.runs(tmp_path):
        assert each.status.state == FINISHED
        # A record at its end and two looks: were it trained twice, there would be more.
        assert [record["step"] for record in recorded(each.folder)] == [5, 0, 5]


def test_a_run_is_not_worked_on_twice(tmp_path: Path) -> None:
    folder = prepared(tmp_path, run())
    with run_worker.claimed(folder):
        with (
            pytest.raises(InvalidInputError, match="another process is already training"),
            run_worker.claimed(folder, patience=0.1),
        ):
            pass
        write_status(folder, Status(RUNNING, 3))
        assert jobs.read_status(folder).state == RUNNING
    assert jobs.read_status(folder).state == INTERRUPTED


def test_pause_resume_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []
    monkeypatch.setattr("ssa_viz.jobs.queue._launch", lambda folder, status: started.append(folder))
    wanted = run()
    reference = prepared(tmp_path / "other", wanted)
    jobs.work(reference)
    folder = prepared(tmp_path, wanted)
    monkeypatch.setattr(run_worker, "LOOKS_EVERY", 0.0)
    ask(folder, "pause")
    assert jobs.work(folder).state == PAUSED
    assert jobs.read_status(folder).step == 0
    jobs.pause(folder)  # twice is once
    assert jobs.read_status(folder).state == PAUSED
    jobs.resume(folder)
    assert started == [folder]
    assert jobs.read_status(folder).state == QUEUED
    jobs.pause(folder)  # a waiting one
    jobs.resume(folder)
    assert jobs.work(folder).state == FINISHED
    assert digest(folder) == digest(reference)
    jobs.resume(folder)
    jobs.stop(folder)
    assert jobs.read_status(folder).state == FINISHED


def test_stop_keeps_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssa_viz.jobs.queue._launch", lambda folder, status: None)
    folder = prepared(tmp_path, run())
    with pytest.raises(InvalidInputError, match="nothing to keep"):
        jobs.stop(folder)
    killed_after(folder, 20)
    jobs.stop(folder)
    assert jobs.read_status(folder).state == QUEUED
    status = jobs.work(folder)
    assert (status.state, status.step) == (STOPPED, 20)
    assert checkpoints.load(folder).metrics["stopped_at_step"] == 20


def test_discard_restore_rename_export(tmp_path: Path) -> None:
    folder = prepared(tmp_path, run())
    with pytest.raises(InvalidInputError, match="no checkpoint yet"):
        jobs.export(folder)
    jobs.work(folder)
    jobs.rename(folder, "  a better name ")
    assert jobs.listed(folder).name == "a better name"
    with pytest.raises(InvalidInputError, match="a name has up to 80 characters"):
        jobs.rename(folder, "x" * 81)
    with zipfile.ZipFile(io.BytesIO(jobs.export(folder))) as file:
        file.extractall(tmp_path / "exported")
    assert checkpoints.load(tmp_path / "exported" / "one").config.train == run().train
    jobs.discard(folder)
    jobs.discard(folder)
    assert jobs.runs(tmp_path) == []
    jobs.restore(tmp_path, "one")
    assert checkpoints.load(folder).config.train == run().train
    with pytest.raises(InvalidInputError, match="not there any more"):
        jobs.restore(tmp_path, "one")


def test_nan_ends_a_run_with_a_sentence_and_the_last_good_state(tmp_path: Path) -> None:
    folder = prepared(tmp_path, run(learning_rate=1e30, clip=1e30, every=1))
    status = jobs.work(folder)
    assert status.state == FAILED
    assert "NaN or infin" in status.sentence
    assert "try a lower learning rate" in status.sentence
    assert not (folder / "model.safetensors").exists()


@pytest.mark.parametrize("file", ["metrics.jsonl", "state-"])
def test_a_full_disk_ends_a_run_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    folder = prepared(tmp_path, run())
    killed_after(folder, 20)
    real = Path.open

    def full(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        if file in self.name and mode != "rb":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, mode, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", full)
        status = jobs.work(folder)
    assert status.state == FAILED
    assert "no space left on device" in status.sentence
    assert "Its last state, of step" in status.sentence
    assert jobs.work(folder).state == FINISHED


def test_a_status_is_written_even_when_there_is_no_room_for_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_status(tmp_path, Status(RUNNING))

    def full(self: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    write_status(tmp_path, Status(FAILED, sentence="the disk is full"))
    assert jobs.read_status(tmp_path).sentence == "the disk is full"


def test_a_lost_device_and_little_memory_are_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, (error, words) in enumerate(
        [
            (RuntimeError("CUDA error: device lost\nmore"), "The device failed (CUDA error: device lost)"),
            (MemoryError(), "There was not enough memory"),
        ]
    ):
        folder = prepared(tmp_path, run(), f"r{i}")

        def fails(self: Any, error: Exception = error) -> None:
            raise error

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_worker.Training, "advance", fails)
            status = jobs.work(folder)
        assert status.state == FAILED
        assert words in status.sentence


def test_broken_runs_are_listed_and_break_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssa_viz.jobs.queue._launch", lambda folder, status: None)
    good = prepared(tmp_path, run(), "good")
    for name, content in {"empty": "", "list": "[]", "half": '{"format": "ssa-viz-run"', "other": "{}"}.items():
        folder = prepared(tmp_path, run(), name)
        (folder / "run.json").write_text(content)
    (tmp_path / "good" / "status.json").write_text("{")
    found = {each.id: each for each in jobs.runs(tmp_path)}
    assert set(found) == {"good", "empty", "list", "half", "other"}
    assert all(found[name].error for name in ("empty", "list", "half", "other"))
    assert found["good"].error is None
    assert found["good"].status.state == FAILED
    jobs.start_waiting(tmp_path)
    assert {jobs.read_status(found[name].folder).state for name in ("empty", "list")} == {FAILED}
    jobs.resume(good)
    assert jobs.work(good).state == FINISHED


def test_a_process_that_ends_at_once_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = prepared(tmp_path, dataclasses.replace(run(), device="cuda:9"))
    monkeypatch.setattr("ssa_viz.jobs.queue.PACKAGE_ROOT", tmp_path)  # where no ssa_viz can be found
    monkeypatch.setenv("PYTHONPATH", "")
    jobs.start_waiting(tmp_path)
    until(lambda: jobs.read_status(folder).state == FAILED, "its end is told")
    assert "No module named ssa_viz" in jobs.read_status(folder).sentence


def test_settings_that_are_left_out_have_their_defaults(tmp_path: Path) -> None:
    folder = prepared(tmp_path, run())
    document = json.loads((folder / "run.json").read_text())
    for name in ("compiled", "threads", "created"):
        del document[name]
    (folder / "run.json").write_text(json.dumps(document))
    read = jobs.read_run(folder)
    assert (read.compiled, read.threads, read.created) == (False, 1, 0.0)
    assert read.train == run().train


def test_records_survive_a_torn_line_and_are_read_on(tmp_path: Path) -> None:
    folder = prepared(tmp_path, run())
    killed_after(folder, 30)
    records = Records(folder)
    assert records.update()
    assert not records.update()
    before = len(records.trained)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"kind": "trained", "step": 3')
    assert not records.update()
    assert jobs.work(folder).state == FINISHED
    records.update()
    fresh = Records(folder)
    fresh.update()
    assert records.trained == fresh.trained
    assert len(fresh.trained) == 9 > before
    with pytest.raises(CheckpointError):
        jobs.probe_at(folder, 31)


def test_a_failed_create_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        jobs.create(tmp_path / "file", [run()])


def test_estimates_are_measured_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    here = estimate.estimate(config(steps=100_000))
    there = estimate.ask(config(steps=100))
    assert 0 < there.seconds < here.seconds
    assert 50 < there.megabytes < 5000
    assert here.seconds == pytest.approx(100_000 / here.steps_per_second, rel=1.5)
    # A step that takes a second for each number, since a busy machine can take longer for a shorter prompt.
    monkeypatch.setattr(estimate, "_step_seconds", lambda train, device: float(train.length))
    longest = estimate.estimate(config(steps=1000, batch=64))
    growing = estimate.estimate(config(steps=1000, batch=64, first_length=1, length_step=1, length_every=1000))
    assert growing.seconds < longest.seconds
    with pytest.raises(InvalidInputError, match="there is no device 'cuda:9' here"):
        estimate.estimate(config(), device="cuda:9")


def torchrun(folder: Path) -> subprocess.Popen[str]:
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        *("-m", "ssa_viz", "train", "--config", str(folder / "run.json"), "--quiet"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def test_two_processes_train_what_one_does_and_a_killed_one_ends_both(tmp_path: Path) -> None:
    wanted = run(steps=600, every=50, probe_every=300)
    one, two = prepared(tmp_path / "alone", wanted), prepared(tmp_path, wanted, "two")
    first = torchrun(two)
    until(lambda: jobs.read_status(two).step > 50, "it trains")
    leader = jobs.read_status(two).pid
    workers = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
    [other] = [int(pid) for pid in workers if int(pid) != leader]
    os.kill(other, signal.SIGKILL)
    _, said = first.communicate(timeout=PATIENCE)
    assert first.returncode != 0, said
    assert jobs.read_status(two).state in (FAILED, INTERRUPTED, PAUSED)
    second = torchrun(two)
    jobs.work(one)
    _, said = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, said
    for alone, together in zip(recorded(one), recorded(two), strict=True):
        if "loss" in alone:
            assert together["loss"] == pytest.approx(alone["loss"], abs=1e-5), alone["step"]
        assert together["step"] == alone["step"]
    assert json.loads((two / "environment.json").read_text())["processes"] == 2
    checkpoints.load(two)


def test_a_batch_that_cannot_be_shared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training.ranks, "get_world_size", lambda: 2)
    monkeypatch.setattr(training.ranks, "get_rank", lambda: 1)
    assert training._own_rows(6) == slice(3, 6)
    with pytest.raises(InvalidInputError, match="a batch of 5 cannot be shared equally by 2 processes"):
        training._own_rows(5)
