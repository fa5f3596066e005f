"""A comparison's curves and attention: in place while it trains, with downloads when it rests."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ssa_viz import jobs
from ssa_viz.errors import SSAVizError
from ssa_viz.figures import export, heatmap
from ssa_viz.figures.palette import Palette
from ssa_viz.figures.scale import Scale
from ssa_viz.figures.training import Course, training
from ssa_viz.sequence import label
from ssa_viz.ui.charts import chart, key_of
from ssa_viz.ui.state import State
from ssa_viz.ui.train import live
from ssa_viz.ui.train.watched import Watched, boolean, steps

MORE = ("gradient_norm", "contextual_mass", "learning_rate", "length")


def moving(state: State, watched: list[Watched], palette: Palette) -> None:
    """Curves and attention that change in place."""
    share = boolean(watched)
    scale, unit = (100.0, " (%)") if share else (1.0, "")
    charts = [
        live.Chart("loss", "Loss", [each.course("trained", "loss") for each in watched], log=True),
        live.Chart(
            "outlier",
            f"Error from the 70 on{unit}",
            [each.course("probed", "outlier_error", scale) for each in watched],
        ),
        live.Chart(
            "weight",
            "Largest weight at the 70",
            [each.course("probed", "largest_weight") for each in watched],
            span=(0.0, 1.0),
        ),
    ]
    head = _pick_head(st, state, watched)
    pictures = _pictures(watched, head, None)
    live.live(
        watched[0].comparison,
        [each.name for each in watched],
        [each.colour for each in watched],
        charts,
        [
            None if picture is None else live.Map(f"{each.name} · {state['head']} · step {picture.step:,}", weights, at)
            for each, (picture, weights, _, at) in zip(watched, pictures, strict=True)
        ],
        steps=steps(watched),
        palette=palette,
    )


def curves(watched: list[Watched], palette: Palette) -> None:
    """Loss, errors and largest weight of all runs on the same axes."""
    share = boolean(watched)
    scale, unit = (100.0, " (%)") if share else (1.0, "")
    columns = st.columns(3)
    with columns[0]:
        _figure(watched, "loss", "Loss", "trained", "loss", palette, log=True)
    with columns[1]:
        title = "Error from the 70 on"
        _figure(watched, "outlier", title, "probed", "outlier_error", palette, scale=scale, unit=unit)
    with columns[2]:
        title = "Largest weight at the 70"
        _figure(watched, "weight", title, "probed", "largest_weight", palette, span=(0.0, 1.03))
    more = st.expander("More curves", icon=":material/show_chart:", key="train_more", on_change="rerun")
    if more.open:
        with more:
            columns = st.columns(3)
            with columns[0]:
                title = "Error in distribution"
                _figure(watched, "error", title, "probed", "error", palette, scale=scale, unit=unit)
            for i, quantity in enumerate(MORE, start=1):
                with columns[i % 3]:
                    kind = "probed" if quantity == "contextual_mass" else "trained"
                    title = quantity.replace("_", " ").capitalize()
                    _figure(watched, quantity, title, kind, quantity, palette)
            for i, (title, courses) in enumerate(_parameters(watched).items(), start=5):
                with columns[i % 3]:
                    _drawn(watched, key_of(title), title, courses, palette)


def _figure(
    watched: list[Watched],
    key: str,
    title: str,
    kind: str,
    quantity: str,
    palette: Palette,
    *,
    scale: float = 1.0,
    unit: str = "",
    log: bool = False,
    span: tuple[float, float] | None = None,
) -> None:
    courses = {each.name: each.course(kind, quantity, scale) for each in watched}
    _drawn(watched, key, f"{title}{unit}", courses, palette, log=log, span=span)


def _drawn(
    watched: list[Watched],
    key: str,
    title: str,
    courses: dict[str, Course],
    palette: Palette,
    *,
    log: bool = False,
    span: tuple[float, float] | None = None,
) -> None:
    courses = {name: course for name, course in courses.items() if course.steps}
    if not courses:
        st.container(height=344, border=False)  # keeps the place, so that nothing jumps when the first one comes
        return
    figure = training(courses, title=title, up="", steps=steps(watched), palette=palette, log=log, span=span)
    chart(
        figure,
        f"train_{key}",
        alt=f"{title} over the steps of {', '.join(courses)}",
        data=lambda: export.csv(
            {
                "run": [name for name, course in courses.items() for _ in course.steps],
                "step": [step for course in courses.values() for step in course.steps],
                key: [value for course in courses.values() for value in course.values],
            }
        ),
    )


def _parameters(watched: list[Watched]) -> dict[str, dict[str, Course]]:
    """The scoring parameters of each layer and head over the steps: run · parameter → head → course."""
    found: dict[str, dict[str, Course]] = {}
    for each in watched:
        records = [r for r in each.records.probed if isinstance(r.get("scoring"), dict)]
        if not records:
            continue
        for name, layers in records[-1]["scoring"].items():
            courses = {}
            for layer, heads in enumerate(layers):
                for head in range(len(heads)):
                    values = [r["scoring"][name][layer][head] for r in records]
                    courses[f"L{layer} H{head}"] = Course([r["step"] for r in records], values, each.colour)
            found[f"{each.name}: {name} per head"] = courses
    return found


def attention(state: State, watched: list[Watched], palette: Palette) -> None:
    """The attention on the fixed sequence, at any step of the past."""
    every = sorted(set().union(*(jobs.probe_steps(each.listed.folder) for each in watched)))
    if not every:
        return
    st.subheader("The attention on one sequence, as training went")
    picks = st.columns([5, 2], vertical_alignment="bottom")
    head = _pick_head(picks[1], state, watched)
    chosen = _chosen_step(picks[0], every)
    columns = st.columns(min(len(watched), 4))
    for i, (each, (picture, weights, labels, outlier)) in enumerate(
        zip(watched, _pictures(watched, head, chosen), strict=True)
    ):
        if picture is None:
            continue
        figure = heatmap.attention(
            weights,
            np.full(weights.shape, np.nan, dtype=np.float32),
            np.tril(np.ones(weights.shape, dtype=bool)),
            labels,
            title=f"{each.name} · {state['head']} · step {picture.step:,}",
            scale=Scale.LINEAR,
            palette=palette,
            outlier=outlier,
            height=380,
        )
        with columns[i % len(columns)]:
            chart(
                figure,
                f"train_attention_{each.key}",
                alt=f"Attention of {each.name} in {state['head']} at step {picture.step}",
                data=lambda weights=weights: export.csv(  # type: ignore[misc]
                    {f"key {k}": weights[:, k] for k in range(weights.shape[1])}
                ),
            )


def _pick_head(place: Any, state: State, watched: list[Watched]) -> tuple[int, int]:
    """The layer and head whose attention is shown."""
    model = next(each.listed.run.train.model for each in watched if each.listed.run is not None)
    heads = [f"L{layer} H{head}" for layer in range(model.layers) for head in range(model.heads)]
    if state["head"] not in heads:
        state["head"] = heads[-model.heads]
    place.selectbox("Head", heads, key=state.key("head"), width=230)
    layer, head = (int(part[1:]) for part in state["head"].split())
    return layer, head


def _pictures(
    watched: list[Watched], head: tuple[int, int], step: int | None
) -> list[tuple[jobs.Picture | None, NDArray[np.float32], list[str], int]]:
    """For each run its newest picture up to `step`, with that head's weights (Q, K), the tokens, and the 70's place."""
    found: list[tuple[jobs.Picture | None, NDArray[np.float32], list[str], int]] = []
    for each in watched:
        there = [at for at in jobs.probe_steps(each.listed.folder) if step is None or at <= step]
        picture = None
        if there and each.listed.run is not None:
            with suppress(SSAVizError):
                picture = jobs.probe_at(each.listed.folder, there[-1])
        if picture is None or each.listed.run is None or not _has(picture, head):
            found.append((None, np.empty((0, 0), dtype=np.float32), [], 0))
            continue
        labels, outlier = _labels(picture, each.listed.run.train.prompt_format)
        found.append((picture, picture.weights[head], labels, outlier))
    return found


def _has(picture: jobs.Picture, head: tuple[int, int]) -> bool:
    return bool(head[0] < picture.weights.shape[0] and head[1] < picture.weights.shape[1])


def _chosen_step(place: Any, every: list[int]) -> int:
    """The step that the pictures are of: the last, also when there are more by now, unless a person went back."""
    key, last = "train_step", "train:last step"
    if st.session_state.get(key) in (None, st.session_state.get(last)) or st.session_state[key] not in every:
        st.session_state[key] = every[-1]
    st.session_state[last] = every[-1]
    if len(every) == 1:
        place.caption(f"Step {every[0]:,}")
    else:
        place.select_slider("Step", every, key=key, format_func=lambda step: f"{step:,}")
    return int(st.session_state[key])


def _labels(picture: jobs.Picture, prompt_format: str) -> tuple[list[str], int]:
    """The tokens as they are shown, and which of them is the 70."""
    numbers = [label(float(number)) for number in picture.numbers]
    if prompt_format == "numbers":
        return numbers, picture.position
    tokens = [part for number in numbers for part in (number, "answer")]
    return tokens[:-1], 2 * picture.position
