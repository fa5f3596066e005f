"""Every function on every measure: the page's table, its choices and its download."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.table import MAIN, NOTHING, Part, Table, constants_of, parts, table
from ssa_viz.figures import export
from ssa_viz.ui import cache
from ssa_viz.ui.state import State

SEEDS = {"all": "All seeds", "shipped": "The shipped seed"}


def section(state: State, task: str, variant: str) -> None:
    """The table of one task and architecture or of all tasks, over all seeds or of the shipped ones."""
    st.header("Every measure")
    first, second = st.columns([1, 1], vertical_alignment="center")
    first.segmented_control(
        "Seeds", list(SEEDS), key=state.key("seeds"), format_func=SEEDS.__getitem__, required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    second.toggle("All tasks in one table", key=state.key("all"))
    pairs = [pair for pair in MAIN if "-".join(pair) in cache.seeds(cache.MODELS)] if state["all"] else []
    try:
        found = parts(cache.seeds(cache.MODELS), pairs or [(task, variant)], only_shipped=state["seeds"] == "shipped")
    except InvalidInputError as error:
        st.info(f"The table cannot be drawn: {error}.", icon=":material/info:")
        return
    _draw(table(found, {part.task: constants(part.task, part.variant) for part in found}))
    st.download_button(
        "CSV",
        lambda: _csv(found),
        f"robustness_{'all' if pairs else f'{task}_{variant}'}.csv",
        "text/csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
    )
    over = (
        "Mean ± standard deviation over seeds of weights and data; bold where the lowest mean is further from the next "
        "one than either's spread."
        if state["seeds"] == "all"
        else "The seed with the median error in distribution, whose checkpoint is in models/. `python -m ssa_viz table "
        "--measure` measures these numbers again. One seed says little."
    )
    st.caption(
        f"Lower is better. {over} Test prompts that no model was trained or chosen on. “From 70 on”: the injected "
        "number's own position and all later ones, averaged over three places. “At 70”: its own, for yes-or-no "
        "questions where an earlier number had settled the answer. Weight: the largest one in the row of the 70, left "
        "out where the rows of a function have any sum. What this does not show: that one function is better in "
        "general. The models are small, five seeds are few, and the spread is often as large as the error."
    )


def constants(task: str, variant: str) -> dict[bool, dict[str, Any]]:
    """The cards of both constant answers; none for `linear`."""
    return _constants(task, variant)


@st.cache_data(max_entries=16, show_spinner=False)
def _constants(task: str, variant: str) -> dict[bool, dict[str, Any]]:
    return constants_of(task, variant)


def _draw(what: Table) -> None:
    """A click on a head sorts by the number; what is shown has its spread."""
    rows = pd.Index(list(what.cells), name="Function")
    means = pd.DataFrame(
        {name: [_number(cells[name].number) for cells in what.cells.values()] for name in what.columns}, index=rows
    )

    def styles(column: pd.Series) -> list[str]:
        return ["font-weight: 700" if what.cells[row][str(column.name)].best else "" for row in column.index]

    styler = means.style.apply(styles, axis=0)
    for name in what.columns:
        for row, cells in what.cells.items():  # cell by cell, as equal means can have other spreads
            words = cells[name].text
            styler = styler.format(lambda value, words=words: words, subset=pd.IndexSlice[[row], [name]])
    st.dataframe(styler, width="stretch", height=38 + 35 * len(rows), placeholder=NOTHING.text)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _csv(found: Sequence[Part]) -> bytes:
    """Every seed's number, a line a task, function and seed."""
    measures = list(dict.fromkeys(measure.name for part in found for measure in part.found.measures))
    lines = [(part, name, i) for part in found for name in part.found.names for i in range(len(part.found.seeds))]

    def value(part: Part, name: str, i: int, wanted: str) -> float:
        for measure in part.found.measures:
            if measure.name == wanted and (spread := measure.found[name]) is not None:
                return spread.values[i]
        return np.nan

    return export.csv(
        {
            "task": [part.task for part, _, _ in lines],
            "variant": [part.variant for part, _, _ in lines],
            "function": [name for _, name, _ in lines],
            "seed": [part.found.seeds[i] for part, _, i in lines],
            **{wanted: [value(*line, wanted) for line in lines] for wanted in measures},
        }
    )
