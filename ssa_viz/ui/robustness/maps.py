"""Error maps: two models over every combination of two shifts, their difference, and rivals that need no training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ssa_viz.checkpoints import CheckpointConfig, read_config
from ssa_viz.errors import CheckpointError
from ssa_viz.evaluate.grids import COUNTINGS, MODEL, Grid, Measured, Store, grids, usual
from ssa_viz.figures import export
from ssa_viz.figures.error_map import Amount, Steps, amount, error_map, map_difference
from ssa_viz.figures.palette import Palette
from ssa_viz.train.presets import checkpoint_name
from ssa_viz.ui import cache
from ssa_viz.ui.charts import chart, key_of
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.numbers.inputs import VARIANT_LABELS
from ssa_viz.ui.numbers.sides import Offer, offers
from ssa_viz.ui.robustness import measuring
from ssa_viz.ui.robustness.properties import KINDS
from ssa_viz.ui.state import State

Floats = NDArray[np.float64]
SHORT = {
    "answers": "Answers",
    "sequences": "Whole sequences",
    "points": "Every point",
    "known": "From the third on",
    "from": "From the value on",
    "at": "At the value",
    "after": "After it",
    "largest_weight": "Its row's largest weight",
}
UNITS = {"sequences": "% of sequences wrong", "largest_weight": "weight, %"}


@dataclass(frozen=True)
class Chosen:
    """A model whose map is asked for: the map is None until it has been measured."""

    name: str
    config: CheckpointConfig
    grid: Grid
    measured: Measured | None


def store() -> Store:
    """Where error maps are."""
    return usual(cache.MODELS, cache.ROOT)


def section(state: State, task: str, variant: str, palette: Palette) -> None:
    """Everything about error maps."""
    st.header("Where a model begins to fail")
    offered = offers(task)
    if not offered:
        st.info("There is no model of this task. Train one on the Train page.", icon=":material/info:")
        return
    first, second, third = st.columns(3, vertical_alignment="bottom")
    with first:
        _choose(state, "a", checkpoint_name(task, variant, "softmax"), offered)
    with second:
        _choose(state, "b", checkpoint_name(task, variant, "ssa"), offered)
    with third:
        labels = [grid.label for grid in grids(offered[state["a"]].run).values()]
        st.segmented_control(
            "What changes",
            KINDS,
            key=state.key("map"),
            format_func=dict(zip(KINDS, labels, strict=True)).__getitem__,
            required=True,
        )
    chosen = [each for which in ("a", "b") if (each := _chosen(offered[state[which]], state["map"]))]
    missing = [each for each in chosen if each.measured is None]
    measuring.offer([(each.name, each.config, each.grid) for each in missing], store())
    ready = [(each.name, each.measured) for each in chosen if each.measured is not None]
    if ready:
        _draw(state, ready, palette)


def _choose(state: State, which: str, usual_id: str, offered: Mapping[str, Offer]) -> None:
    ids = list(offered)
    if state[which] not in ids:
        state[which] = usual_id if usual_id in ids else ids[0]
    st.selectbox(
        "First model" if which == "a" else "Second model",
        ids,
        key=state.key(which),
        format_func=lambda id_: _name(offered[id_]),
    )


def _name(offer: Offer) -> str:
    return f"{offer.name} · {VARIANT_LABELS[offer.run.model.variant].lower()}"


def _chosen(offer: Offer, kind: str) -> Chosen | None:
    """A model with its map; None after saying that it cannot be read."""
    try:
        config = read_config(offer.folder)
    except CheckpointError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    grid = list(grids(config.train).values())[KINDS.index(kind)]
    return Chosen(_name(offer), config, grid, store().find(config, grid))


def _draw(state: State, ready: list[tuple[str, Measured]], palette: Palette) -> None:
    """The maps that are there, their difference, and the rivals."""
    measured = ready[0][1]
    kinds = measured.countings
    if state["by"] not in kinds:
        state["by"] = kinds[0]
    counted, relative = st.columns([3, 1], vertical_alignment="bottom")
    counted.segmented_control(
        "What is counted",
        kinds,
        key=state.key("by"),
        format_func=SHORT.__getitem__,
        required=True,
    )
    kind = state["by"]
    scaled = measured.variance is not None
    if scaled:
        relative.toggle("By the targets' variance", key=state.key("rel"))
    by_variance = scaled and state["rel"]
    share = measured.boolean or kind == "largest_weight"

    def of(each: Measured, who: str) -> Floats | None:
        values = each.found[who].get(kind)
        if values is None or not by_variance or each.variance is None:
            return values
        return values / each.variance

    maps = [(name, each.grid, values) for name, each in ready if (values := of(each, MODEL)) is not None]
    rivals = {who: values for who in measured.rivals if (values := of(measured, who)) is not None}
    quantity = UNITS.get(kind, "% wrong" if measured.boolean else "squared error")
    drawn = [*(values for _, _, values in maps), *rivals.values()]
    scale = amount(quantity + (" / variance" if by_variance else ""), drawn, share=share)
    _pictures(maps, scale, palette)
    if rivals:
        st.markdown("**Who needs no training**, on the same prompts and the same colours:")
        _rivals(rivals, measured.grid, scale, palette)
    _said(measured, kind)


def _pictures(maps: list[tuple[str, Grid, Floats]], scale: Amount, palette: Palette) -> None:
    columns = st.columns(3)
    for i, (name, grid, values) in enumerate(maps):
        with columns[i]:
            _one(f"map_{'ab'[i]}", name, values, grid, scale, palette)
    if len(maps) < 2:
        return
    (one, grid, first), (two, other, second) = maps
    with columns[2]:
        if (grid.rows, grid.columns) != (other.rows, other.columns):
            st.info("The two were measured over other axes, so there is no difference to draw.", icon=":material/info:")
            return
        rows, across = _steps(grid)
        short = (one.split(" · ")[0], two.split(" · ")[0])
        names = short if short[0] != short[1] else (one, two)
        figure = map_difference(
            first, second, rows, across, amount=scale, palette=palette, title="Difference", names=names
        )
        both = {one: first, two if two != one else f"{two} (2)": second}
        chart(figure, "map_difference", alt=f"{two} minus {one}, cell by cell", data=lambda: _csv(grid, both))


def _rivals(rivals: Mapping[str, Floats], grid: Grid, scale: Amount, palette: Palette) -> None:
    for column, (who, values) in zip(st.columns(3), rivals.items(), strict=False):
        with column:
            _one(f"map_{key_of(who)}", who[:1].upper() + who[1:], values, grid, scale, palette)


def _one(key: str, name: str, values: Floats, grid: Grid, scale: Amount, palette: Palette) -> None:
    rows, columns = _steps(grid)
    figure = error_map(values, rows, columns, amount=scale, palette=palette, title=name)
    alt = f"{name}: {scale.title} over {grid.rows.label} (down) and {grid.columns.label} (across)"
    chart(figure, key, alt=alt, data=lambda: _csv(grid, {name: values}))


def _steps(grid: Grid) -> tuple[Steps, Steps]:
    return Steps(grid.rows.label, grid.rows.values), Steps(grid.columns.label, grid.columns.values)


def _csv(grid: Grid, maps: Mapping[str, Floats]) -> bytes:
    down, across = np.meshgrid(grid.rows.values, grid.columns.values, indexing="ij")
    axes = {grid.rows.what: down.ravel(), grid.columns.what: across.ravel()}
    return export.csv({**axes, **{name: values.ravel() for name, values in maps.items()}})


def _said(measured: Measured, kind: str) -> None:
    """How it was measured, and what to beware of."""
    grid = measured.grid
    words = [
        f"Counted: {COUNTINGS[kind]}.",
        f"{grid.sequences} fresh prompts in each cell, the same for every model; no cell shares any with another.",
    ]
    if kind == "sequences":
        words.append(
            "A sequence counts as wrong if any answer from its fourth number on is, as the paper's public code counts "
            "(its comment says third): a rare mistake makes most long sequences wrong."
        )
    if "length" in (grid.rows.what, grid.columns.what):
        words.append(
            f"The models were trained on {grid.length} numbers. Longer sequences have positions that no training "
            "touched, with the random values that they start from."
        )
    if kind == "known":
        words.append("From two points on a line is known, and least squares makes no error.")
    if grid.rows.what == "value" and measured.boolean:
        words.append("A decisive injected value settles the answer: from there on a constant answer can be right.")
    st.caption(" ".join(words))
