"""The Numbers page's pictures, from the two readings."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st

from ssa_viz import inspect
from ssa_viz.figures import export, heatmap, mass, overview
from ssa_viz.figures.palette import Palette
from ssa_viz.figures.scale import Scale
from ssa_viz.inspect import Problem, Reading
from ssa_viz.scoring import SCORING
from ssa_viz.sequence import label
from ssa_viz.tasks import TASKS
from ssa_viz.ui.charts import chart, key_of
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.numbers.sides import Side
from ssa_viz.ui.state import State

TALL, LOW = 520, 400  # pixels of a map, for two columns and for more


@dataclass(frozen=True)
class Scene:
    """Everything that the views need.

    Attributes:
        state: the page's state.
        palette: the colours.
        problem: what was asked.
        sides: the two models.
        labels: the tokens as they are shown, (T,).
        query: the token whose row the numbers are about.
    """

    state: State
    palette: Palette
    problem: Problem
    sides: list[Side]
    labels: list[str]
    query: int

    @property
    def read(self) -> list[tuple[Side, Reading]]:
        """The sides that have a reading."""
        return [(side, side.reading) for side in self.sides if side.reading is not None]

    @property
    def exact(self) -> list[str]:
        """The tokens with all their digits, for the CSV files."""
        return [str(token) for token in self.read[0][1].tokens]

    @property
    def head(self) -> tuple[int, int]:
        return (self.state["layer"], self.state["head"])

    @property
    def head_name(self) -> str:
        return f"L{self.state['layer']} H{self.state['head']}"

    @property
    def outlier(self) -> int | None:
        return self.read[0][1].outlier if self.read else None


def scene(state: State, palette: Palette, problem: Problem, sides: list[Side]) -> Scene:
    """Bring the chosen head and row into the range of what was read, and put together what the views need."""
    readings = [side.reading for side in sides if side.reading is not None]
    if not readings:
        return Scene(state, palette, problem, sides, [], 0)
    first = readings[0]
    layers, heads = first.weights.shape[:2]
    state["layer"], state["head"] = min(state["layer"], layers - 1), min(state["head"], heads - 1)
    state["row"] = min(state["row"], len(first.tokens))
    query = state["row"] - 1 if state["row"] else first.focus
    return Scene(state, palette, problem, sides, [label(float(token)) for token in first.tokens], query)


def verdict(view: Scene) -> None:
    """One card a model: how much of the chosen row goes to one number, and what the model answers there."""
    for column, side in zip(st.columns(len(view.sides)), view.sides, strict=True):
        with column:
            if side.reading is None:
                st.error(plain(side.error or "Nothing was read."), icon=":material/error:")
            else:
                st.html(_card(view, side, side.reading))


def _card(view: Scene, side: Side, reading: Reading) -> str:
    concentration = inspect.concentration(reading, view.query)
    largest = float(concentration.largest_weight[view.head])
    top = int(np.argmax(reading.weights[(*view.head, view.query)]))
    effective = float(concentration.effective_tokens[view.head])
    visible = int(reading.visible[view.query].sum())
    state = " · collapsed" if concentration.collapsed[view.head] else ""
    mean = float(concentration.largest_weight.mean())
    if side.checkpoint is not None and SCORING[side.checkpoint.config.train.model.scoring].row_sum == "any":
        most = f"most on {view.labels[top]} (token {top})" if largest > 0 else "no number gets any weight"
        return (
            f'<div class="ssa-card" style="--ssa-colour: {side.colour}">'
            f'<div class="name">{escape(side.label)}</div>'
            f'<div class="big">Largest weight {largest:.3g}</div>'
            f'<div class="line">{escape(view.head_name)}, row of {escape(view.labels[view.query])}: {escape(most)}. '
            "Rows of this function do not sum to 1.</div>"
            f'<div class="line">Mean over all {concentration.largest_weight.size} heads: {mean:.3g}.</div>'
            f'<div class="line">{_answer(view, reading)}</div></div>'
        )
    return (
        f'<div class="ssa-card" style="--ssa-colour: {side.colour}">'
        f'<div class="name">{escape(side.label)}</div>'
        f'<div class="big">{_percent(largest)} on one number{state}</div>'
        f'<div class="line">{escape(view.head_name)}, row of {escape(view.labels[view.query])}: most on '
        f"{escape(view.labels[top])} (token {top}). Contextual mass {_percent(1 - largest)}, as spread out as "
        f"{effective:.1f} of {visible} numbers.</div>"
        f'<div class="line">Mean over all {concentration.largest_weight.size} heads: '
        f"{_percent(mean)} on one number.</div>"
        f'<div class="line">{_answer(view, reading)}</div></div>'
    )


def _answer(view: Scene, reading: Reading) -> str:
    """What the model answers at the chosen row, beside the truth."""
    task = TASKS[view.problem.task]
    asked = np.flatnonzero(reading.reads == view.query)
    if not len(asked):
        return "No answer is read at this token."
    index = int(asked[0])
    said, true, error = (float(a[index]) for a in (reading.predictions, reading.truth, reading.error))
    if not task.boolean:
        return f"Predicts {said:.3g}; the line gives {true:.3g}: squared error {error:.2g}."
    mark = '<span class="wrong">✗ wrong</span>' if error else '<span class="right">✓ right</span>'
    return f"“{escape(task.question)}” It says {said > 0.5} (P = {said:.2f}): {mark}."


def maps(view: Scene) -> None:
    """The attention of the chosen head, side by side on one colour scale."""
    for column, side in zip(st.columns(len(view.sides)), view.sides, strict=True):
        if side.reading is None:
            continue
        reading = side.reading
        figure = heatmap.attention(
            reading.weights[view.head],
            reading.logits[view.head],
            reading.visible,
            view.labels,
            title=f"{side.label} · {view.head_name}",
            scale=Scale(view.state["scale"]),
            palette=view.palette,
            outlier=view.outlier,
            highlight_query=view.query,
            height=TALL if len(view.sides) <= 2 else LOW,
        )
        with column:
            chart(
                figure,
                f"attention_{_key(side)}",
                alt=f"Attention of {side.label} in {view.head_name}: queries down, keys across. The row of "
                f"{view.labels[view.query]} gives {_percent(float(reading.weights[(*view.head, view.query)].max()))} "
                "to one key",
                data=lambda reading=reading: export.attention_csv(  # type: ignore[misc]
                    reading.weights, reading.logits, reading.visible, view.exact
                ),
            )


def overviews(view: Scene) -> None:
    """Every layer and head at once. A click chooses one; so do the buttons above, by key."""
    first = view.read[0][1]
    layers, heads = first.weights.shape[:2]
    picks = st.columns([2, 3, 3], vertical_alignment="bottom")
    _pick(picks[0], "Layer", view.state.key("layer"), layers)
    _pick(picks[1], "Head", view.state.key("head"), heads)
    picks[2].selectbox(
        "Row (query) that the numbers above are about",
        range(len(view.labels) + 1),
        key=view.state.key("row"),
        format_func=lambda row: (
            f"{row - 1}: {view.labels[row - 1]}"
            if row
            else "the injected number"
            if view.outlier is not None
            else "the last number"
        ),
    )
    for column, side in zip(st.columns(len(view.sides)), view.sides, strict=True):
        if side.reading is None:
            continue
        reading, key = side.reading, f"overview_{_key(side)}"
        figure = overview.overview(
            reading.weights,
            reading.visible,
            scale=Scale(view.state["scale"]),
            palette=view.palette,
            selected=view.head,
            title=f"{side.label} · all layers and heads",
            outlier=view.outlier,
        )
        with column:
            chart(
                figure,
                key,
                alt=f"Attention of {side.label} in all {layers} layers and {heads} heads",
                data=lambda reading=reading: export.attention_csv(  # type: ignore[misc]
                    reading.weights, reading.logits, reading.visible, view.exact
                ),
                on_select=lambda key=key: _clicked(view.state, key),  # type: ignore[misc]
            )


def _pick(column: st.delta_generator.DeltaGenerator, name: str, key: str, count: int) -> None:
    """Buttons for a few options, a list for many."""
    if count <= 12:
        column.segmented_control(name, range(count), key=key, required=True)
    else:
        column.selectbox(name, range(count), key=key)


def _clicked(state: State, key: str) -> None:
    points = st.session_state[key].selection.points
    if points:
        state["layer"], state["head"] = (int(value) for value in points[0]["customdata"][:2])


def masses(view: Scene) -> None:
    """Contextual mass of every row of the chosen head, both models on one plot."""
    series = {side.label: (inspect.contextual_mass(reading, *view.head), side.colour) for side, reading in view.read}
    figure = mass.contextual_mass(
        series,
        view.labels,
        palette=view.palette,
        title=f"Contextual mass of each row · {view.head_name}",
        outlier=view.outlier,
    )
    chart(
        figure,
        "mass",
        alt="Contextual mass of each row, one line a model",
        data=lambda: export.csv(
            {
                "query": np.arange(len(view.labels)),
                "token": view.read[0][1].tokens,
                **{f"contextual_mass_{name}": values for name, (values, _) in series.items()},
            }
        ),
    )


def _key(side: Side) -> str:
    """A side's label as part of a session key and a file name."""
    return key_of(side.label.lower())


def _percent(share: float) -> str:
    """A share in whole percent; what is not quite none or all does not round to it."""
    if 0 < share < 0.005:
        return "under 1%"
    if 0.995 < share < 1:
        return "over 99%"
    return f"{100 * share:.0f}%"
