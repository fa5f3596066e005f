"""The lab's inputs: the logits, typed, dragged or taken from a model, and the functions with their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from ssa_viz.figures.palette import Palette
from ssa_viz.inspect.lab import MOST_KEYS
from ssa_viz.scoring import SCORING
from ssa_viz.sequence import format_numbers, parse
from ssa_viz.ui.lab import real
from ssa_viz.ui.lab.drag import draggable
from ssa_viz.ui.lab.properties import PRESETS, property_of
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.state import State
from ssa_viz.ui.typed import problem_list

BEFORE = "lab:before"  # session key of what Undo brings back, newest last
MOST_UNDO = 50


def logits(state: State) -> tuple[float, ...]:
    """The text field with its presets; returns up to 64 logits and points at what could not be read."""
    st.text_area(
        "Logits of one row",
        key=state.key("x"),
        height=80,
        help="One number for each key that the query sees. Type them, drag the bars, or take a row from a model. "
        "Ctrl+Enter, or a click elsewhere, shows the result.",
    )
    picks = st.container(horizontal=True, gap="small")
    with picks.popover("Examples", width="stretch"):
        for label, example in PRESETS.items():
            st.button(label, key=f"preset_{label}", on_click=replace, args=(state, example), width="stretch")
    with picks.popover("Model's row", width="stretch"):
        real.picker(lambda values: replace(state, format_numbers(values)))
    picks.button(
        "Undo",
        icon=":material/undo:",
        width="stretch",
        disabled=not st.session_state.get(BEFORE),
        on_click=_undo,
        args=(state,),
        help="Brings back what an example, a model's row, a key more or less, or a reset replaced.",
    )
    parsed = parse(state["x"], limit=MOST_KEYS)
    if parsed.problems:
        kept = f"The other {len(parsed.numbers)} are kept." if parsed.numbers else "Nothing is left to show."
        st.warning(f"Could not read everything. {kept}\n\n{problem_list(parsed)}", icon=":material/warning:")
    if parsed.note:
        st.caption(plain(parsed.note))
    if parsed.left_out:
        st.warning(f"A row here has up to {MOST_KEYS} keys; the first {MOST_KEYS} are shown.")
    if not parsed.numbers and not parsed.problems:
        st.info("Type some numbers, or pick an example.", icon=":material/edit:")
    return parsed.numbers


def bars(state: State, values: Sequence[float], palette: Palette) -> None:
    """The logits as bars to drag, with buttons for one key more or less."""
    head = st.container(horizontal=True, vertical_alignment="center", gap="small")
    head.markdown("**Drag the logits**")
    more, fewer = [*values, 0.0], list(values[:-1])
    head.button(
        "Add key", key="add_key", on_click=replace, args=(state, format_numbers(more)), type="tertiary",
        icon=":material/add:", disabled=len(values) >= MOST_KEYS,
    )  # fmt: skip
    head.button(
        "Remove key", key="remove_key", on_click=replace, args=(state, format_numbers(fewer)), type="tertiary",
        icon=":material/remove:", disabled=len(values) < 2,
    )  # fmt: skip

    def moved(to: Mapping[int, float]) -> None:
        typed = parse(state["x"], limit=MOST_KEYS)
        if typed.problems or typed.left_out:  # they end here, so let Undo bring them back
            _remember({"x": state["x"]})
        state["x"] = format_numbers(to.get(place, x) for place, x in enumerate(typed.numbers))

    draggable(values, palette, moved)


def functions(state: State, palette: Palette) -> None:
    """Which functions are drawn, and a card with its sliders for each that has parameters."""
    st.pills(
        "Scoring functions",
        list(SCORING),
        selection_mode="multi",
        key=state.key("f"),
        format_func=lambda name: SCORING[name].label,
        wrap=True,
    )
    for name in (name for name in SCORING if name in state["f"]):
        cls = SCORING[name]
        colour = palette.scoring(name)
        for parameter in cls.parameters_spec:
            low, high = parameter.slider
            st.slider(
                f':color[{cls.label}]{{foreground="{colour}"}} · {parameter.name}',
                float(low),
                float(high),
                step=1.0 if high - low > 100 else 0.05,
                key=state.key(property_of(name, parameter)),
                help=f"{parameter.meaning.capitalize()}. Starts at {parameter.default:.4g}.",
            )


def reset(state: State) -> None:
    """Give every slider the value that training starts from, and let Undo bring back these."""
    defaults = {property_of(name, p): p.default for name, cls in SCORING.items() for p in cls.parameters_spec}
    before = {name: state[name] for name in defaults}
    if before != defaults:
        _remember(before)
        state.put(defaults)


def replace(state: State, logits: str) -> None:
    """Show other logits, and let Undo bring back these."""
    if state["x"] != logits:
        _remember({"x": state["x"]})
        state["x"] = logits


def _remember(values: dict[str, Any]) -> None:
    """Let Undo bring these properties back."""
    st.session_state[BEFORE] = [*st.session_state.get(BEFORE, []), values][-MOST_UNDO:]


def _undo(state: State) -> None:
    remembered = st.session_state.get(BEFORE, [])
    if remembered:  # a fast second click can come after the last one was used
        *st.session_state[BEFORE], last = remembered
        state.put(last)
