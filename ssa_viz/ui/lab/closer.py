"""Closer looks, one at a time: only the chosen one is computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from ssa_viz.figures import bars, export
from ssa_viz.figures.curves import FLOOR, Axis, Line, curves
from ssa_viz.figures.jacobian import jacobian
from ssa_viz.inspect import lab
from ssa_viz.sequence import label
from ssa_viz.ui.charts import chart
from ssa_viz.ui.lab.functions import all_functions
from ssa_viz.ui.lab.properties import FACTORS, GROWN, POWERS, SHAPES, VIEWS
from ssa_viz.ui.lab.scene import Scene, said
from ssa_viz.ui.markdown import plain

LEFT = "left for the other keys"
ACROSS = 2  # heatmaps side by side


def closer(scene: Scene) -> None:
    """The switch and the look that it stands on."""
    st.segmented_control(
        "Look closer",
        list(VIEWS),
        key=scene.state.key("view"),
        format_func=VIEWS.__getitem__,
        required=True,
        label_visibility="collapsed",
    )
    view = scene.state["view"]
    if view == "functions":
        all_functions(scene.palette)
    elif len(scene.logits) < 2 and view in ("magnify", "grow"):
        st.info("This look needs a row of two or more keys.", icon=":material/add:")
    else:
        looks: dict[str, Callable[[Scene], None]] = {
            "magnify": _magnify, "grow": _grow, "meet": _meet, "shape": _shape, "gradient": _gradients,
        }  # fmt: skip
        looks[view](scene)


def _magnify(scene: Scene) -> None:
    st.markdown(
        "**Theorem 1.** All logits are multiplied by λ. Softmax's mass off the strongest key falls as $e^{-λΔ}$, where "
        "Δ is the distance to the next one. With two or more positive logits SSA's tends to a limit above 0, "
        r"$1 - x_{\max}^n / \sum_j \max(x_j, 0)^n$."
    )
    factor = _choose(scene, "factor", "λ", FACTORS)
    now = {chosen: lab.magnify(chosen, scene.logits, [factor]).contextual_mass[0] for chosen in scene.chosen}
    _sentence(f"At λ = {label(factor)}", now)
    _draw_curves(
        scene, {chosen: lab.magnify(chosen, scene.logits) for chosen in scene.chosen}, Axis("λ", True, (0.1, 1e4)),
        "Every logit times λ", factor, "lambda",
    )  # fmt: skip


def _grow(scene: Scene) -> None:
    st.markdown(
        "**Theorem 2.** One key's logit t grows, the others stay. Softmax's mass off it falls as $e^{-t}$, SSA's as "
        "$(1 + bt)^{-n}$: on two log axes a line of slope −n. It falls too, but far more slowly."
    )
    count = len(scene.logits)
    scene.state["key"] = min(scene.state["key"], count)
    left, right = st.columns(2)
    with left:
        st.slider("Key that grows", 1, count, key=scene.state.key("key"))
    with right:
        t = _choose(scene, "t", "t", GROWN)
    index = scene.state["key"] - 1
    now = {chosen: lab.grow(chosen, scene.logits, index, [t]).contextual_mass[0] for chosen in scene.chosen}
    _sentence(f"At t = {label(t)}", now)
    _draw_curves(
        scene, {chosen: lab.grow(chosen, scene.logits, index) for chosen in scene.chosen},
        Axis("t", True, (0.1, 1e4)), f"The logit of key {index + 1} alone", t, "t",
    )  # fmt: skip


def _draw_curves(
    scene: Scene, found: dict[lab.Chosen, lab.Curve], along: Axis, title: str, current: float, name: str
) -> None:
    log = st.toggle("Log axis of the mass", key=scene.state.key("log"))
    most = max(1.0, *(float(curve.contextual_mass.max()) for curve in found.values()))
    up = Axis(LEFT, True, (FLOOR, 2 * most)) if log else Axis(LEFT, False, (0.0, min(1.05 * most, 2.0)))
    at = next(iter(found.values())).at
    lines = {
        chosen.label: Line(curve.contextual_mass, scene.colour(chosen), curve.closed_form)
        for chosen, curve in found.items()
    }
    chart(
        curves(at, lines, along=along, up=up, palette=scene.palette, title=title, current=current),
        f"curves_{name}",
        alt=f"The weight left for all keys but the strongest over {name}, one line for each scoring function",
        data=lambda: export.csv({name: at, **_columns(found)}),
    )
    st.caption(
        "Dotted: the function's own formula for large values, drawn over what was computed. "
        + (f"Below {FLOOR:g} nothing is drawn. " if log else "")
        + "A sparse function leaves exactly 0; an exponential's 0 is a number too small to be held, below 5e-324."
    )


def _columns(found: dict[lab.Chosen, lab.Curve]) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    columns = {}
    for chosen, curve in found.items():
        columns[chosen.label] = curve.contextual_mass
        if curve.closed_form is not None:
            columns[f"{chosen.label} formula"] = curve.closed_form
    return columns


def _meet(scene: Scene) -> None:
    st.markdown(
        "SSA with n = m and b = 1/m is $(1 + |x|/m)^{\\pm m}$, which becomes $e^x$ as m grows. "
        "Softmax is the far end of SSA."
    )
    m = _choose(scene, "m", "m", POWERS)
    meeting = lab.meet(scene.logits, m)
    st.markdown(f"At m = {label(m)} the largest difference between two weights is **{meeting.difference_at:.3g}**.")
    left, right = st.columns(2)
    with left:
        chart(
            bars.row_weights(
                {
                    "Softmax": (meeting.softmax, scene.palette.softmax),
                    f"SSA, n = {label(m)}": (meeting.ssa, scene.palette.ssa),
                },
                scene.labels,
                palette=scene.palette,
                title=f"Weights, m = {label(m)}",
            ),
            "meeting",
            alt="The weights of the row with softmax and with SSA at the chosen m",
            data=lambda: export.csv({"logit": scene.logits, "softmax": meeting.softmax, "ssa": meeting.ssa}),
        )
    with right:
        chart(
            curves(
                meeting.m,
                {"largest difference": Line(meeting.difference, scene.palette.ssa)},
                along=Axis("m", True, (1, 1e6)),
                up=Axis("largest difference of a weight", True),
                palette=scene.palette,
                title="SSA's distance from softmax",
                current=m,
                height=240,
            ),
            "difference",
            alt="The largest difference between a weight of SSA and of softmax over m",
            data=lambda: export.csv({"m": meeting.m, "difference": meeting.difference}),
        )


def _shape(scene: Scene) -> None:
    st.segmented_control(
        "What", list(SHAPES), key=scene.state.key("shape"), format_func=SHAPES.__getitem__, required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    what = scene.state["shape"]
    score = what.startswith("score")
    shapes = {chosen: lab.shape(chosen) for chosen in scene.chosen}
    drawn = {chosen: getattr(shape, what) for chosen, shape in shapes.items()}
    without = [plain(chosen.label) for chosen, values in drawn.items() if values is None]
    if without:
        st.caption(
            f"Without a score of one logit alone: {', '.join(without)}. There a weight depends on the whole row; "
            "see the weight beside 7 zeros."
        )
    lines = {c.label: Line(values, scene.colour(c)) for c, values in drawn.items() if values is not None}
    if not lines:
        return
    log = st.toggle("Log axis", key=scene.state.key("log")) if score else False
    span = (1e-5, 3e4) if log else ((0.0, 20.0) if score else None)
    x = next(iter(shapes.values())).x
    chart(
        curves(
            x, lines, along=Axis("logit x", False, (-10, 10)), up=Axis(SHAPES[what].lower(), log, span),
            palette=scene.palette, title=SHAPES[what],
        ),
        "shape",
        alt=f"{SHAPES[what]} over a logit from −10 to 10, one line for each scoring function",
        data=lambda: export.csv({"x": x, **{c.label: v for c, v in drawn.items() if v is not None}}),
    )  # fmt: skip


def _gradients(scene: Scene) -> None:
    st.markdown(
        "Each cell says how a weight (down) answers to a logit (across). A column of nothing but 0 is a token that "
        "**cannot learn** here: whatever the model is told about the weights, its logit does not hear of it."
    )
    found = {chosen: lab.jacobian(chosen, scene.logits) for chosen in scene.chosen}
    limit = max(float(np.abs(matrix).max()) for matrix in found.values())
    for start in range(0, len(found), ACROSS):
        columns = st.columns(ACROSS)
        for column, (chosen, matrix) in zip(columns, list(found.items())[start : start + ACROSS], strict=False):
            with column:
                quiet = int((lab.reached(matrix) < 1e-6).sum())
                chart(
                    jacobian(matrix, scene.labels, limit=limit, palette=scene.palette, title=chosen.label),
                    f"jacobian_{chosen.scoring}",
                    alt=f"The derivative of every weight by every logit with {chosen.label}",
                    data=lambda m=matrix: export.csv(  # type: ignore[misc]
                        {"weight": scene.labels, **{f"by key {i + 1}": m[:, i] for i in range(len(m))}}
                    ),
                )
                keys = f"{quiet} of {len(matrix)} keys" if quiet else "no key"
                st.caption(f"Below a millionth, so hardly learning: {keys}.")


def _choose(scene: Scene, name: str, symbol: str, options: list[str]) -> float:
    """A slider over round numbers."""
    st.select_slider(symbol, options, key=scene.state.key(name), format_func=lambda text: label(float(text)))
    return float(scene.state[name])


def _sentence(where: str, masses: dict[lab.Chosen, float]) -> None:
    """What each function leaves, in one sentence."""
    parts = [f"{plain(chosen.label)} **{said(float(mass))}**" for chosen, mass in masses.items()]
    st.markdown(f"{where}, this is left for the other keys: {', '.join(parts)}.")
