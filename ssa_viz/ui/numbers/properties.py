"""Everything that a visitor of the Numbers page can change."""

from __future__ import annotations

from dataclasses import replace

from ssa_viz.figures.scale import Scale
from ssa_viz.model import VARIANTS
from ssa_viz.sequence import LARGEST, SMALLEST
from ssa_viz.tasks import TASKS
from ssa_viz.ui.state import State, checkpoints, choice, real, switch, text, whole
from ssa_viz.ui.typed import in_address

REPLACE, INSERT = "replace", "insert"
MOST_CHARACTERS = 20_000  # of a typed sequence; far more than any model reads, and little enough to stay quick
EXAMPLES = {
    "every": {
        "A no from the third on": "0.7 1.2 -0.4 0.9 1.6 0.3 1.1 0.8 -0.6 1.4 0.5 0.2",
        "All positive": "0.7 1.2 0.4 0.9 1.6 0.3 1.1 0.8 0.6 1.4 0.5 0.2",
        "A no at the very end": "0.7 1.2 0.4 0.9 1.6 0.3 1.1 0.8 0.6 1.4 0.5 -0.2",
        "The same number again and again": "1 1 -1 1 1 1 1 1 1 1",
        "Zero is not positive": "0.5 0.8 0 1.3 0.6 0.9",
    },
    "some": {
        "A yes from the third on": "-0.7 -1.2 0.4 -0.9 -1.6 -0.3 -1.1 -0.8 0.6 -1.4 -0.5 -0.2",
        "All negative": "-0.7 -1.2 -0.4 -0.9 -1.6 -0.3 -1.1 -0.8 -0.6 -1.4 -0.5 -0.2",
        "A yes at the very end": "-0.7 -1.2 -0.4 -0.9 -1.6 -0.3 -1.1 -0.8 -0.6 -1.4 -0.5 0.2",
        "The same number again and again": "-1 -1 1 -1 -1 -1 -1 -1 -1 -1",
        "Zero is not positive": "-0.5 -0.8 0 -1.3 -0.6 -0.9",
    },
    "linear": {
        "Twelve points": "0.7 -1.2 0.4 -0.9 1.6 -0.3 1.1 -0.8 0.6 -1.4 0.5 0.2",
        "From left to right": "-2 -1.6 -1.2 -0.8 -0.4 0 0.4 0.8 1.2 1.6 2",
        "Two points, again and again": "-1 1 -1 1 -1 1 -1 1",
    },
}


def first_example(task: str) -> str:
    """The sequence that a task starts with."""
    return next(iter(EXAMPLES[task].values()))


def numbers_state() -> State:
    """The page's state. Positions count from 1 for people; layers, heads and tokens from 0."""
    return State(
        "numbers",
        [
            choice("task", list(TASKS), "every"),
            choice("arch", VARIANTS, "attention_only"),
            replace(text("seq", first_example("every"), MOST_CHARACTERS), show=in_address),
            checkpoints("m"),
            switch("inject"),
            real("value", 70.0, LARGEST, least=SMALLEST),
            whole("at", 8, 1, 4096),
            choice("how", (REPLACE, INSERT), REPLACE),
            whole("layer", 1, 0, 63),
            whole("head", 0, 0, 63),
            choice("scale", [scale.value for scale in Scale], Scale.LINEAR.value),
            whole("row", 0, 0, 4096),
            real("a", 1.5, 5.0),
            real("b", -0.5, 5.0),
            whole("seed", 0, 0, 2**31 - 1),
            whole("length", 12, 1, 4096),
            choice("view", ("table", "sweep", "difference"), "table"),
        ],
    )
