"""The Robustness page's sections: error against the width of the numbers, every function on every measure, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.constant import constant_card
from ssa_viz.evaluate.functions import Functions, Measure, all_functions, by_width
from ssa_viz.evaluate.report import number_at, spread
from ssa_viz.figures import export
from ssa_viz.figures.curves import Axis, Line, curves
from ssa_viz.figures.palette import Palette
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.train.presets import SHIPPED, checkpoint_name, shipped
from ssa_viz.ui import cache
from ssa_viz.ui.charts import chart
from ssa_viz.ui.numbers.inputs import VARIANT_LABELS
from ssa_viz.ui.state import State, choice, names

CONSTANT = {True: "Always yes", False: "Always no"}
FIRST_CHOSEN = ("softmax", "ssa", "softmax_plus_one", "sparsemax")
PAIRS = [f"{task}-{variant}" for task, variant in SHIPPED]
REFERENCE = "softmax"
HEADS = {
    ("injected", "70", "largest_weight"): "Weight at 70",
    ("injected", "70", "at_settled"): "At 70",
    ("injected", "70", "at"): "At 70",
    ("injected", "70", "from"): "From 70 on",
    ("injected", "-70", "from"): "From −70 on",
    ("injected", "1000", "from"): "From 1000 on",
    ("injected", "70", "after"): "After 70",
    ("injected", "-70", "after"): "After −70",
    ("injected", "1000", "after"): "After 1000",
    ("wider_inputs", "10"): "σ = 10",
    ("wider_functions", "10"): "Lines σ = 10",
    ("in_distribution",): "In distribution",
}


def robustness_state() -> State:
    """The page's state."""
    return State("robustness", [choice("of", PAIRS, PAIRS[0]), names("f", list(SCORING), FIRST_CHOSEN)])


def pick(state: State) -> tuple[str, str]:
    """Which task and architecture."""
    st.segmented_control(
        "Models", PAIRS, key=state.key("of"), format_func=_title, required=True, label_visibility="collapsed"
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


def constants(task: str, variant: str) -> dict[bool, dict[str, Any]]:
    """The cards of both constant answers."""
    run = shipped(task, variant, REFERENCE, 0)
    return {answer: _constant(task, run.prompt_format, run.length, answer) for answer in (True, False)}


@st.cache_data(max_entries=16, show_spinner=False)
def _constant(task: str, prompt_format: str, length: int, answer: bool) -> dict[str, Any]:
    return constant_card(task, prompt_format, length, answer=answer)


def table(task: str, variant: str, found: Functions) -> None:
    """Every function on every measure, mean ± standard deviation; a click on a head sorts."""
    rows = [*(SCORING[name].label for name in found.names)]
    columns = {_headed(measure): _means(measure, found.names) for measure in found.measures}
    texts = {_headed(measure): _texts(measure, found.names) for measure in found.measures}
    if TASKS[task].boolean:
        for answer, card in constants(task, variant).items():
            rows.append(CONSTANT[answer])
            for measure in found.measures:
                value = number_at(card, measure.path)
                columns[_headed(measure)].append(np.nan if value is None else 100 * value)
                texts[_headed(measure)].append("–" if value is None else f"{100 * value:.3g}%")
    means = pd.DataFrame(columns, index=pd.Index(rows, name="Function"))
    shown = pd.DataFrame(texts, index=means.index)
    best = {
        _headed(measure): None if measure.best is None else SCORING[measure.best].label for measure in found.measures
    }

    def styles(column: pd.Series) -> list[str]:
        return ["font-weight: 700" if row == best[column.name] else "" for row in column.index]

    styler = means.style.apply(styles, axis=0)
    for name in means.columns:
        for row in means.index:  # cell by cell, as equal means can have other spreads
            words = shown.loc[row, name]
            styler = styler.format(lambda value, words=words: words, subset=pd.IndexSlice[[row], [name]])
    st.dataframe(styler, width="stretch", height=38 + 35 * len(rows), placeholder="–")
    st.download_button(
        "CSV",
        lambda: export.csv(
            {
                "function": [name for name in found.names for _ in found.seeds],
                "seed": [seed for _ in found.names for seed in found.seeds],
                **{
                    measure.name: [
                        np.nan if (s := measure.found[name]) is None else s.values[i]
                        for name in found.names
                        for i in range(len(found.seeds))
                    ]
                    for measure in found.measures
                },
            }
        ),
        f"robustness_{task}_{variant}.csv",
        "text/csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
    )
    st.caption(
        "Lower is better. Mean ± standard deviation over seeds of weights and data, on test prompts that no model was "
        "trained or chosen on; bold where the lowest mean is further from the next one than either's spread. “From 70 "
        "on”: the injected number's own position and all later ones, averaged over three places. “At 70”: its own, "
        "where an earlier number had settled the answer. Weight: the largest one in the row of the 70, left out "
        "where the rows of a function have any sum. What this does not show: that one function is better in general. "
        "The models are small, five seeds are few, and the spread is often as large as the error."
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
            "at every place, so a constant answer is wrong about half of the time: it stands in the table and in the "
            "figure.\n\n"
            "**One wrong answer, or one wrong sequence.** That code counts a sequence as wrong if any answer from the "
            "fourth number on is (its comment says third). Here each answer counts by itself."
        )


def _title(pair: str) -> str:
    task, _, variant = pair.partition("-")
    return f"{TASKS[task].label} · {VARIANT_LABELS[variant].lower()}"


def checkpoints_of(task: str, variant: str, chosen: list[str]) -> list[str]:
    """The shipped checkpoints of the chosen functions, up to four, for the Numbers page."""
    there = {listing.name for listing in cache.catalogue()}
    named = [checkpoint_name(task, variant, scoring) for scoring in chosen]
    return [name for name in named if name in there][:4]


def _headed(measure: Measure) -> str:
    """A short head for a column."""
    return HEADS.get(measure.path, measure.name)


def _means(measure: Measure, order: tuple[str, ...]) -> list[float]:
    scale = 100 if measure.share else 1
    return [np.nan if (s := measure.found[name]) is None else scale * s.mean for name in order]


def _texts(measure: Measure, order: tuple[str, ...]) -> list[str]:
    found = (measure.found[name] for name in order)
    return ["–" if s is None else spread(s.mean, s.std, measure.share) for s in found]
