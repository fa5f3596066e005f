"""A run's state, time and errors in words."""

from __future__ import annotations

from ssa_viz.checkpoints.files import reason
from ssa_viz.errors import as_sentence
from ssa_viz.jobs import Listed
from ssa_viz.jobs.status import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    MEASURING,
    PAUSED,
    QUEUED,
    RUNNING,
    STARTING,
    STOPPED,
)

STATES = {
    QUEUED: ("Waiting", "for a run before it to end"),
    STARTING: ("Starting", ""),
    RUNNING: ("Training", ""),
    MEASURING: ("Measuring", "the trained model on fresh prompts"),
    PAUSED: ("Paused", ""),
    STOPPED: ("Stopped", "what it had learned is kept"),
    FINISHED: ("Finished", ""),
    FAILED: ("Failed", ""),
    INTERRUPTED: ("Interrupted", "resume it, and it goes on from its last saved state"),
}


def trouble(error: Exception) -> str:
    """Why something could not be done, as a sentence."""
    if isinstance(error, OSError):
        return f"The folder of the runs cannot be written to ({reason(error)}); make room or mend it, and try again."
    return as_sentence(str(error))


def duration(seconds: float) -> str:
    """A time that a person can plan with."""
    if seconds < 1:
        return "a second"
    if seconds < 100:
        return f"{seconds:.0f} seconds"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds / 86400:.0f} days"


def standing(each: Listed) -> str:
    """One line: what the run is doing, how fast, and for how long."""
    status = each.status
    word, more = STATES[status.state]
    line = f"{word} {more}".strip()
    if each.run is None:
        return line
    steps = each.run.train.steps
    if status.state in (RUNNING, PAUSED, INTERRUPTED, STOPPED, FAILED):
        line += f" · step {status.step:,} of {steps:,}"
    if status.state == RUNNING and status.steps_per_second > 0:
        left = (steps - status.step) / status.steps_per_second
        line += f" · {status.steps_per_second:.3g} steps a second · {duration(left)} left"
    if status.quiet:
        line += " · no sign of life for a while"
    if status.state == FINISHED:
        line += f" · {steps:,} steps in {duration(status.seconds)}"
    return line
