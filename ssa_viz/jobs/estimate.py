"""How long a run will take and how much memory, from a short warm-up on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch

from ssa_viz.checkpoints.schema import recipe_from_document, recipe_to_document
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.evaluate import card
from ssa_viz.evaluate.card import SEQUENCES
from ssa_viz.jobs.folder import RunConfig
from ssa_viz.jobs.queue import PACKAGE_ROOT
from ssa_viz.train import Probe, TrainConfig, Training

WARM_UP = 2  # steps that are not timed
TIMED = 5.0  # seconds of steps at most
MOST_STEPS = 20
CARD_SAMPLE = 16  # sequences; the card itself has `SEQUENCES`


@dataclass(frozen=True)
class Estimate:
    """Attributes:
    seconds: the whole run with its measurements.
    steps_per_second: at its longest prompts.
    megabytes: the process's largest memory, on the GPU if it trains there.
    """

    seconds: float
    steps_per_second: float
    megabytes: float


def estimate(train: TrainConfig, *, device: str = "cpu", threads: int = 1) -> Estimate:
    """Train a few steps here and now. The memory is that of this process; call it in a fresh one, as `ask` does."""
    torch.set_num_threads(threads)
    run = RunConfig(train, device=device)
    longest = _step_seconds(replace(train, first_length=0), device)
    mean = longest
    if train.first_length:
        shortest = _step_seconds(replace(train, first_length=0, length=train.first_length), device)
        lengths = [train.length_at(step) for step in range(0, train.steps, max(1, train.steps // 1000))]
        share = (sum(lengths) / len(lengths) - train.first_length) / max(1, train.length - train.first_length)
        mean = shortest + (longest - shortest) * share
    model = Training(train, device=device).model
    probe = Probe(train)
    looking = _timed(lambda: probe.look(model, 0)) * (train.steps / run.look_every)
    few = _timed(lambda: card(model.cpu(), train, sequences=CARD_SAMPLE))
    more = _timed(lambda: card(model.cpu(), train, sequences=2 * CARD_SAMPLE))
    measuring = few + max(0.0, more - few) / CARD_SAMPLE * (SEQUENCES - CARD_SAMPLE)
    return Estimate(mean * train.steps + looking + measuring, 1 / longest, _megabytes(device))


def ask(train: TrainConfig, *, device: str = "cpu", threads: int = 1, patience: float = 120.0) -> Estimate:
    """`estimate` in a process of its own, so that a run without room in memory ends that one and not this one.

    Raises:
        InvalidInputError: it did not come through, with the reason.
    """
    document = {**recipe_to_document(train), "device": device, "threads": threads}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ssa_viz.jobs.estimate"],
            input=json.dumps(document),
            capture_output=True,
            text=True,
            cwd=PACKAGE_ROOT,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidInputError(
            f"a few steps took more than {patience:.0f} seconds; this model is too large for {device}"
        ) from None
    if done.returncode == 1:
        raise InvalidInputError(done.stderr.strip().splitlines()[-1])
    if done.returncode:
        raise InvalidInputError("the warm-up was ended by the system, most likely for want of memory")
    return Estimate(**json.loads(done.stdout))


def _step_seconds(train: TrainConfig, device: str) -> float:
    run = Training(replace(train, steps=max(train.steps, WARM_UP + MOST_STEPS)), device=device)
    for _ in range(WARM_UP):
        run.advance()
    run.progress()  # waits for a GPU
    started, count = time.perf_counter(), 0
    while count < MOST_STEPS and (count == 0 or time.perf_counter() - started < TIMED):
        run.advance()
        count += 1
    run.progress()
    return (time.perf_counter() - started) / count


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _megabytes(device: str) -> float:
    if device.startswith("cuda"):
        return torch.cuda.max_memory_reserved(device) / 2**20
    if sys.platform == "win32":  # which has no such count without another package
        return float("nan")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 2**10


if __name__ == "__main__":
    try:
        asked = json.load(sys.stdin)
        where = {name: asked.pop(name) for name in ("device", "threads")}
        print(json.dumps(asdict(estimate(recipe_from_document(asked), **where))))
    except SSAVizError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except (MemoryError, torch.OutOfMemoryError):
        print("there is not enough memory; use a smaller batch or model, or another device", file=sys.stderr)
        sys.exit(1)
