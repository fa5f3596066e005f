"""What a visitor can change on the Robustness page."""

from __future__ import annotations

from ssa_viz.evaluate.grids import COUNTINGS
from ssa_viz.scoring import SCORING
from ssa_viz.train.presets import SHIPPED
from ssa_viz.ui.state import State, choice, names, switch, text

FIRST_CHOSEN = ("softmax", "ssa", "softmax_plus_one", "sparsemax")
PAIRS = [f"{task}-{variant}" for task, variant in SHIPPED]
KINDS = ("first", "value")  # of error maps: the task's own two shifts, or an injected value and its position
LONGEST_ID = 200


def robustness_state() -> State:
    """The page's state.

    `of`: task and architecture; `f`: functions of the figure; `all`: the table of all tasks; `seeds`: which ones the
    table is of; `map`, `by`, `rel`: which error map, what is counted, and whether divided by the targets' variance;
    `a`, `b`: the models whose maps are compared.
    """
    return State(
        "robustness",
        [
            choice("of", PAIRS, PAIRS[0]),
            names("f", list(SCORING), FIRST_CHOSEN),
            switch("all"),
            choice("seeds", ("all", "shipped"), "all"),
            choice("map", KINDS, KINDS[0]),
            choice("by", ("", *COUNTINGS), ""),
            switch("rel"),
            text("a", "", LONGEST_ID),
            text("b", "", LONGEST_ID),
        ],
    )
