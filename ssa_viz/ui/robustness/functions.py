"""The Robustness page's sections: error against the width of the numbers, every function on every measure, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.functions import Functions, all_functions, by_width
from ssa_viz.figures import export
from ssa_viz.figures.curves import Axis, Line, curves
from ssa_viz.figures.palette import Palette
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.train.presets import checkpoint_name
from ssa_viz.ui import cache
from ssa_viz.ui.charts import chart
from ssa_viz.ui.numbers.inputs import VARIANT_LABELS
from ssa_viz.ui.robustness.properties import PAIRS
from ssa_viz.ui.robustness.table import constants
from ssa_viz.ui.state import State

REFERENCE = "softmax"


def pick(state: State) -> tuple[str, str]:
    """Which task and architecture."""
    st.segmented_control(
        "Models",
        PAIRS,
        key=state.key("of"),
        format_func=_title,
        required=True,
        label_visibility="collapsed",
        on_change=lambda: state.put({"a": "", "b": ""}),  # the error maps are then of the new pair
    )
    task, _, variant = state["of"].partition("-")
    return task, variant


def entry(task: str, variant: str) -> tuple[Mapping[str, Any], Functions] | None:
    """What models/seeds.json has on these models; None after saying that it has nothing usable."""
    try:
        found: Mapping[str, Any] = cache.seeds(cache.MODELS)[f"{task}-{variant}"]
        functions = all_functions(task, found)
    except (KeyError, InvalidInputError):
        st.info("models/seeds.json has nothing usable on these models.", icon=":material/info:")
        return None
    return found, functions


def verdict(found: Functions) -> None:
    """One sentence: on how many measures one function is clearly lowest, and which."""
    best = [measure.best for measure in found.measures]
    clear = {name: best.count(name) for name in found.names if name in best}
    count = f"{len(found.names)} functions, {len(found.seeds)} seeds each"
    if not clear:
        st.markdown(f"### {count}: on no measure is one of them clearly lowest")
        return
    parts = [f"{SCORING[name].label} on {many}" for name, many in clear.items()]
    st.markdown(f"### {count}: clearly lowest on {len(best) - best.count(None)} of {len(best)} measures")
    st.caption(
        f"{', '.join(parts)}. Clearly: its mean is further below the next one's than the spread over seeds of either."
    )


def widths(state: State, task: str, variant: str, entry: Mapping[str, Any], found: Functions, palette: Palette) -> None:
    """Error against σ of the numbers for the chosen functions, and for an answer that never changes."""
    state["f"] = [name for name in state["f"] if name in found.names] or list(found.names[:2])
    st.pills(
        "Scoring functions",
        found.names,
        selection_mode="multi",
        key=state.key("f"),
        format_func=lambda name: SCORING[name].label,
        wrap=True,
    )
    boolean = TASKS[task].boolean
    of = {"wider_inputs": "σ of the numbers"} if boolean else {
        "wider_inputs": "σ of the x", "wider_functions": "σ of the lines' a and b",
    }  # fmt: skip
    for column, (kind, axis) in zip(st.columns(len(of)), of.items(), strict=True):
        lines: dict[str, Line] = {}
        table: dict[str, Any] = {}
        for name in state["f"]:
            values = by_width(entry, name, kind)
            x = np.array(list(values))
            y = np.array([each.mean for each in values.values()])
            lines[SCORING[name].label] = Line(100 * y if boolean else y, palette.scoring(name))
            table |= {f"{name} mean": y, f"{name} std": [each.std for each in values.values()]}
        if not lines:
            st.info("Choose a scoring function above.", icon=":material/info:")
            return
        if boolean:
            floor = constants(task, variant)
            low = min(card["in_distribution"] for card in floor.values())
            lines["Constant answer"] = Line(np.full(len(x), 100 * low), palette.muted)
        figure = curves(
            x,
            lines,
            along=Axis(axis, log=True, span=(1.0, float(x.max()))),
            up=Axis("wrong (%)" if boolean else "squared error", log=not boolean),
            palette=palette,
            title=f"Error against {axis}",
            height=320,
        )
        with column:
            chart(
                figure,
                f"robustness_{kind}",
                alt=f"Error against {axis}, one line a function, mean over {len(found.seeds)} seeds",
                data=lambda x=x, table=table: export.csv({"sigma": x, **table}),  # type: ignore[misc]
            )


def in_words(found: Functions) -> None:
    """Each function against softmax, seed by seed, on what is asked about most."""
    lines = []
    for name in found.names:
        if name == REFERENCE:
            continue
        told = []
        for measure in found.measures:
            lower = len(measure.lower_than(name, REFERENCE))
            told.append(f"{measure.name[:1].lower()}{measure.name[1:]} in {lower} of {len(found.seeds)}")
        lines.append(f"- **{SCORING[name].label}** is lower than Softmax: {'; '.join(told)}.")
    with st.expander("Function by function, seed by seed, against Softmax", icon=":material/list:"):
        st.markdown("\n".join(lines) or "There is no other function to compare with.")


def traps() -> None:
    """How the published figures were measured, and why not here."""
    with st.expander("Two traps in how such figures can be measured", icon=":material/warning:"):
        st.markdown(
            "**The same signs at every σ.** The paper's public evaluation code seeds its random numbers anew for each "
            "number that it draws. All σ then share the same signs, and in the prompts that come of it every answer of "
            "*every* is No from the fourth number on. Whoever always answers No makes no error at any σ or length. "
            "Here each measurement draws fresh prompts, and the first number that settles the answer is equally likely "
            "at every place, so a constant answer is wrong about half of the time: it stands in the table, "
            "in the figure and beside the error maps.\n\n"
            "**One wrong answer, or one wrong sequence.** That code counts a sequence as wrong if any answer from the "
            "fourth number on is (its comment says third). In the table each answer counts by itself; the error maps "
            "have both ways of counting."
        )


def _title(pair: str) -> str:
    task, _, variant = pair.partition("-")
    return f"{TASKS[task].label} · {VARIANT_LABELS[variant].lower()}"


def checkpoints_of(task: str, variant: str, chosen: list[str]) -> list[str]:
    """The shipped checkpoints of the chosen functions, up to four, for the Numbers page."""
    there = {listing.name for listing in cache.catalogue()}
    named = [checkpoint_name(task, variant, scoring) for scoring in chosen]
    return [name for name in named if name in there][:4]
