"""Training as a generator of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ssa_viz.errors import InvalidInputError
from ssa_viz.model import Decoder
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.probe import Probe, Probed
from ssa_viz.train.state import TrainingState
from ssa_viz.train.training import Progress, Training


@dataclass(frozen=True)
class Finished:
    """The trained model, in eval mode."""

    model: Decoder


def train(
    config: TrainConfig,
    *,
    every: int = 100,
    probe_every: int = 0,
    device: str = "cpu",
    state: TrainingState | None = None,
) -> Iterator[Progress | Probed | Finished]:
    """Train, yielding a `Progress` each `every` steps and `Finished` at the end.

    The global random state is neither read nor changed. Stop by not asking for the next event. To save the state and
    go on later, drive a `Training` yourself.

    Args:
        probe_every: also yield a `Probed` each so many steps; 0 for none. Probing changes nothing in the run.
        device: a name as `ssa_viz.train.devices` lists it.
        state: where to go on from.

    Raises:
        InvalidInputError: `every` is below 1, or what `Training` refuses.
        NonFiniteError: the loss became NaN or infinite; the message says by which step.
    """
    if every < 1 or probe_every < 0:
        raise InvalidInputError(f"progress can be told every 1 or more steps, not every {min(every, probe_every)}")
    run = Training(config, device=device, state=state)
    probe = Probe(config) if probe_every else None
    while not run.done:
        run.advance()
        if run.step % every == 0 or run.done:
            yield run.progress()
        if probe is not None and (run.step % probe_every == 0 or run.done):
            yield probe.look(run.model, run.step)
    yield Finished(run.model.eval())
