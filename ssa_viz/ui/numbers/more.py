"""Further looks, one at a time: the magnitude sweep, the table of heads, and the difference map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from ssa_viz import inspect
from ssa_viz.errors import SSAVizError
from ssa_viz.figures import export, heatmap
from ssa_viz.figures.sweep import sweep as sweep_figure
from ssa_viz.inspect import Sweep
from ssa_viz.sequence import label
from ssa_viz.tasks import TASKS, Outlier
from ssa_viz.ui import cache
from ssa_viz.ui.charts import chart
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.numbers.properties import INSERT
from ssa_viz.ui.numbers.sides import Side
from ssa_viz.ui.numbers.views import Scene
from ssa_viz.ui.state import State

VIEWS = {
    "table": ":material/table: Table of heads",  # first, since it is the quickest to draw after an edit
    "sweep": ":material/show_chart: Magnitude sweep",
    "difference": ":material/compare: Difference map",
}
LINEAR_LIMIT = 1.0  # squared error above which a `linear` answer counts as wrong: the variance of the intercept


def more(view: Scene) -> None:
    """The chosen further look; only that one is computed."""
    st.segmented_control(
        "Look closer",
        list(VIEWS),
        key=view.state.key("view"),
        format_func=VIEWS.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    {"sweep": _sweep, "table": _table, "difference": _difference}[view.state["view"]](view)


def _sweep(view: Scene) -> None:
    outlier = view.problem.outlier or _position(view)
    sign = -1 if view.state["value"] < 0 else 1
    problem = replace(view.problem, outlier=outlier)
    results: dict[str, tuple[Side, Sweep]] = {}
    for side in view.sides:
        if side.checkpoint is None or side.reading is None:
            continue
        try:
            results[side.label] = (side, cache.sweep(side.checkpoint, problem, sign))
        except SSAVizError as error:
            st.error(plain(f"{side.label}: {error}"), icon=":material/error:")
    if not results:
        return
    boolean = TASKS[problem.task].boolean
    first_wrong = {name: result.first_wrong(0.5 if boolean else LINEAR_LIMIT) for name, (_, result) in results.items()}
    values = next(iter(results.values()))[1].values
    st.markdown(_sentence(first_wrong, values, outlier.position + 1, boolean))
    layer, head = view.head
    curves: dict[str, dict[str, NDArray[np.float32]]] = {
        "largest weight": {name: r.largest_weight[:, layer, head] for name, (_, r) in results.items()},
        "contextual mass": {name: r.contextual_mass[:, layer, head] for name, (_, r) in results.items()},
        "answer": {name: _answer(r, boolean) for name, (_, r) in results.items()},
    }
    for column, (quantity, lines) in zip(st.columns(len(curves)), curves.items(), strict=True):
        named = quantity if quantity != "answer" else _ANSWER_AXIS[boolean]
        figure = sweep_figure(
            values,
            {name: (line, results[name][0].colour) for name, line in lines.items()},
            ytitle=named,
            yrange=(0.0, 1.0) if quantity != "answer" or boolean else _log_range(lines.values()),
            palette=view.palette,
            title=f"{quantity.capitalize()} · {view.head_name}" if quantity != "answer" else "Answer there",
            first_wrong=first_wrong,
            current=outlier.value if view.problem.outlier else None,
        )
        with column:
            chart(
                figure,
                f"sweep_{quantity.replace(' ', '_')}",
                alt=f"{named} against the injected value, one line a model",
                data=lambda named=named, lines=lines: export.csv(  # type: ignore[misc]
                    {"injected": values, **{f"{named}: {name}": line for name, line in lines.items()}}
                ),
            )


def _position(view: Scene) -> Outlier:
    """Where the sweep injects while the outlier is switched off."""
    insert = view.state["how"] == INSERT
    return Outlier(view.state["value"], view.state["at"] - 1, insert=insert)


_ANSWER_AXIS = {True: "P(True) at the injected number", False: "log₁₀ squared error at the injected number"}
LOG_FLOOR = -6.0  # smaller squared errors are drawn there


def _log_range(lines: Iterable[NDArray[np.float32]]) -> tuple[float, float]:
    return LOG_FLOOR, max(1.0, float(np.ceil(max(line.max() for line in lines))))


def _answer(result: Sweep, boolean: bool) -> NDArray[np.float32]:
    return result.predictions if boolean else np.log10(np.maximum(result.error, 10**LOG_FLOOR))


def _sentence(
    first_wrong: Mapping[str, float | None], values: NDArray[np.float64], position: int, boolean: bool
) -> str:
    """At which of the values tried each model first goes wrong, in words."""
    wrong = "answers wrong" if boolean else f"is off by a squared error above {LINEAR_LIMIT:g}"
    parts = []
    for name, value in first_wrong.items():
        if value is None:
            parts.append(f"**{name}** never {wrong}")
        elif value == values[0]:
            parts.append(f"**{name}** {wrong} already at **{label(value)}**, the smallest tried")
        else:
            parts.append(f"**{name}** first {wrong} at **{_signed(value)}**")
    return (
        f"A number at position {position} grows from {_signed(values[0])} to {_signed(values[-1])}, in {len(values)} "
        f"steps: {'; '.join(parts)}."
    )


def _signed(value: float) -> str:
    """A value to three digits with a real minus sign."""
    return f"{float(f'{value:.3g}'):,g}".replace("-", "−").replace(",", "\N{NARROW NO-BREAK SPACE}")


def _table(view: Scene) -> None:
    columns: dict[str, object] = {}
    for side, reading in view.read:
        row = inspect.concentration(reading, view.query)
        columns |= {
            f"{side.label}: largest weight": row.largest_weight.ravel(),
            f"{side.label}: contextual mass": row.contextual_mass.ravel(),
            f"{side.label}: effective tokens": row.effective_tokens.ravel(),
            f"{side.label}: on the first": row.on_first.ravel(),
        }
        if row.on_outlier is not None:
            columns[f"{side.label}: on the injected"] = row.on_outlier.ravel()
    layers, heads = view.read[0][1].weights.shape[:2]
    names = [(layer, head) for layer in range(layers) for head in range(heads)]
    table = pd.DataFrame({"head": [f"L{layer} H{head}" for layer, head in names], **columns})
    st.caption(
        f"Row of {view.labels[view.query]} (token {view.query}). Click a column to sort, a row to choose its head."
    )
    key = "heads_table"
    st.dataframe(
        table,
        key=key,
        hide_index=True,
        on_select=lambda: _row_chosen(view.state, key, names),
        selection_mode="single-row",
        column_config={
            name: st.column_config.NumberColumn(format="%.1f" if "tokens" in name else "%.3f") for name in columns
        },
    )
    st.download_button("CSV", table.to_csv(index=False), "heads.csv", "text/csv", icon=":material/download:",
                       type="tertiary", key="heads_csv", on_click="ignore")  # fmt: skip


def _row_chosen(state: State, key: str, names: list[tuple[int, int]]) -> None:
    rows = st.session_state[key].selection.rows
    if rows:
        state["layer"], state["head"] = names[rows[0]]


def _difference(view: Scene) -> None:
    if len(view.read) < 2:
        st.info("A difference needs both models.")
        return
    (first, one), (second, two) = view.read[:2]
    difference = two.weights[view.head] - one.weights[view.head]
    figure = heatmap.difference(
        one.weights[view.head],
        two.weights[view.head],
        one.visible,
        view.labels,
        title=f"{second.label} minus {first.label} · {view.head_name}",
        palette=view.palette,
        names=(first.label, second.label),
        outlier=view.outlier,
        highlight_query=view.query,
    )
    queries, keys = np.nonzero(one.visible)
    chart(
        figure,
        "difference",
        alt=f"Weight of {second.label} minus weight of {first.label} in {view.head_name}",
        data=lambda: export.csv(
            {
                "query": queries,
                "query_number": one.tokens[queries],
                "key": keys,
                "key_number": one.tokens[keys],
                "weight_difference": difference[queries, keys],
            }
        ),
    )
