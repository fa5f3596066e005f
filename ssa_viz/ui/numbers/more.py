"""Further looks, one at a time: the magnitude sweep, the table of heads, and the difference map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from ssa_viz import inspect
from ssa_viz.errors import SSAVizError
from ssa_viz.figures import export, heatmap
from ssa_viz.figures.sweep import sweep as sweep_figure
from ssa_viz.inspect import Sweep
from ssa_viz.sequence import format_number
from ssa_viz.tasks import TASKS, Outlier
from ssa_viz.ui import cache
from ssa_viz.ui.charts import chart
from ssa_viz.ui.numbers.properties import INSERT
from ssa_viz.ui.numbers.sides import Side
from ssa_viz.ui.numbers.views import Scene
from ssa_viz.ui.state import State

VIEWS = {
    "sweep": ":material/show_chart: Magnitude sweep",
    "table": ":material/table: Table of heads",
    "difference": ":material/compare: Difference map",
}
LINEAR_LIMIT = (
    1.0  # squared error above which a `linear` answer counts as wrong: the variance of the intercept
)


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
            st.error(f"{side.label}: {error}", icon=":material/error:")
    if not results:
        return
    boolean = TASKS[problem.task].boolean
    first_wrong = {
        name: result.first_wrong(0.5 if boolean else LINEAR_LIMIT) for name, (_, result) in results.items()
    }
    st.markdown(_sentence(first_wrong, outlier.position + 1, boolean))
    values = next(iter(results.values()))[1].values
    layer, head = view.head
    panels = (
        ("largest_weight", "largest weight", (0.0, 1.0), lambda r: r.largest_weight[:, layer, head]),
        ("contextual_mass", "contextual mass", (0.0, 1.0), lambda r: r.contextual_mass[:, layer, head]),
        ("answer", *_answer_axis(boolean, [r for _, r in results.values()]), lambda r: _answer(r, boolean)),
    )
    for column, (key, title, yrange, get) in zip(st.columns(3), panels, strict=True):
        curves = {name: (get(result), side.colour) for name, (side, result) in results.items()}
        figure = sweep_figure(
            values,
            curves,
            ytitle=title,
            yrange=yrange,
            palette=view.palette,
            title=title.capitalize() + (f" · {view.head_name}" if key != "answer" else ""),
            first_wrong=first_wrong,
            current=outlier.value if view.problem.outlier else None,
        )
        with column:
            chart(
                figure,
                f"sweep_{key}",
                alt=f"{title} against the injected value, one line a model",
                data=lambda key=key, curves=curves: export.csv(  # type: ignore[misc]
                    {"injected": values, **{f"{key}_{name}": y for name, (y, _) in curves.items()}}
                ),
            )


def _position(view: Scene) -> Outlier:
    """Where the sweep injects while the outlier is switched off."""
    insert = view.state["how"] == INSERT
    return Outlier(view.state["value"], view.state["at"] - 1, insert=insert)


def _answer_axis(boolean: bool, results: list[Sweep]) -> tuple[str, tuple[float, float]]:
    if boolean:
        return "P(True) at the injected number", (0.0, 1.0)
    largest = max(float(_answer(result, boolean).max()) for result in results)
    return "log₁₀ squared error at the injected number", (-6.0, max(1.0, np.ceil(largest)))


def _answer(result: Sweep, boolean: bool) -> np.ndarray:
    return result.predictions if boolean else np.log10(np.maximum(result.error, 1e-6))


def _sentence(first_wrong: dict[str, float | None], position: int, boolean: bool) -> str:
    wrong = "answers wrong" if boolean else f"is off by a squared error above {LINEAR_LIMIT:g}"
    parts = [
        f"**{name}** first {wrong} at **{format_number(float(f'{value:.3g}'))}**"
        if value is not None
        else f"**{name}** never {wrong} up to 10 000"
        for name, value in first_wrong.items()
    ]
    return f"With a growing number at position {position}: {'; '.join(parts)}."


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
            name: st.column_config.NumberColumn(format="%.1f" if "tokens" in name else "%.3f")
            for name in columns
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
    chart(
        figure,
        "difference",
        alt=f"Weight of {second.label} minus weight of {first.label} in {view.head_name}",
        data=lambda: export.attention_csv(
            two.weights - one.weights, two.logits - one.logits, one.visible, view.labels
        ),
    )
