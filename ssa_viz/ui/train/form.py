"""The Train page's form: a preset, a task and functions; everything else below for those who want it."""

from __future__ import annotations

import streamlit as st

from ssa_viz import jobs
from ssa_viz.errors import SSAVizError, as_sentence
from ssa_viz.figures.palette import Palette
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.train.devices import devices
from ssa_viz.train.presets import PRESETS
from ssa_viz.ui import cache
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.state import State
from ssa_viz.ui.train.properties import (
    CHOICES,
    SETTINGS,
    Wanted,
    fill_from_preset,
    learns_of,
    parameters,
    start_of,
    wanted,
)
from ssa_viz.ui.train.words import trouble

UNUSABLE = "train:unusable"  # session key
GROUPS = {
    "Model": ("arch", "layers", "heads", "width", "context", "positions", "readout", "init"),
    "Prompts": ("format", "length", "sigma", "first", "grow", "after"),
    "Training": ("steps", "batch", "rate", "schedule", "warmup", "decay", "clip", "precision"),
}


def form(state: State, palette: Palette) -> Wanted:
    """The form; returns what it asks for."""
    st.segmented_control(
        "Size",
        list(PRESETS),
        key=state.key("preset"),
        format_func=lambda name: PRESETS[name].label,
        on_change=fill_from_preset,
        args=(state,),
        required=True,
        width="stretch",
    )
    st.caption(PRESETS[state["preset"]].text)
    st.selectbox(
        "Task",
        list(TASKS),
        key=state.key("task"),
        format_func=lambda name: f"{TASKS[name].label}: {TASKS[name].question[:1].lower()}{TASKS[name].question[1:]}",
        on_change=fill_from_preset,
        args=(state,),
    )
    st.multiselect(
        "Scoring functions",
        list(SCORING),
        key=state.key("f"),
        format_func=lambda name: SCORING[name].label,
        help="Each becomes a run with the same starting weights and the same prompts.",
    )
    asked = wanted(state)
    errors = dict(asked.errors)
    _error(errors, "f")
    with st.expander("All settings", icon=":material/tune:", expanded=any(name != "f" for name in errors)):
        _settings(state, errors, palette)
    for sentence in errors.values():  # what no field took
        st.error(plain(sentence), icon=":material/error:")
    return asked


def unusable(found: list[str]) -> list[str]:
    """What the address asked for in vain, until something is started: the page draws itself again meanwhile."""
    if found:
        st.session_state[UNUSABLE] = found
    return list(st.session_state.get(UNUSABLE, []))


def start_button(state: State, asked: Wanted) -> None:
    """Train, and nothing else to look at first."""
    count = len(asked.runs)
    label = "Train" if count == 1 else f"Train {count} models"
    st.button(
        label if count else "Train",
        type="primary",
        icon=":material/play_arrow:",
        key="train_start",
        on_click=_start,
        args=(state, asked),
        disabled=not count,
        width="stretch",
    )
    if sentence := st.session_state.pop("train:refused", None):
        st.error(plain(sentence), icon=":material/error:")


def _start(state: State, asked: Wanted) -> None:
    try:
        folders = jobs.create(cache.RUNS, asked.runs)
        run = jobs.read_run(folders[0])
    except (SSAVizError, OSError) as error:
        st.session_state["train:refused"] = trouble(error)
    else:
        state["show"] = run.comparison
        st.session_state.pop(UNUSABLE, None)


def _settings(state: State, errors: dict[str, str], palette: Palette) -> None:
    for title, names in GROUPS.items():
        st.markdown(f"**{title}**")
        columns = st.columns(2)
        for i, name in enumerate(names):
            with columns[i % 2]:
                if name in CHOICES:
                    label, _, _, options = CHOICES[name]
                    options = TASKS[state["task"]].formats if name == "format" else options
                    if state[name] not in options:
                        state[name] = options[0]
                    st.selectbox(
                        label,
                        options,
                        key=state.key(name),
                        format_func=_readable,
                    )
                else:
                    setting = SETTINGS[name]
                    st.text_input(setting.label, key=state.key(name), help=setting.help or None)
                _error(errors, name)
    for scoring in state["f"]:
        of = [parameter for name, parameter in parameters() if name == scoring]
        if not of:
            continue
        st.markdown(f':color[**{SCORING[scoring].label}**]{{foreground="{palette.scoring(scoring)}"}}')
        columns = st.columns(2)
        for i, parameter in enumerate(of):
            with columns[i % 2]:
                st.text_input(
                    f"{parameter.name} starts from",
                    key=state.key(start_of(scoring, parameter)),
                    placeholder=f"{parameter.default:.4g}",
                    help=f"{parameter.meaning.capitalize()}.",
                )
                st.toggle(f"{parameter.name} learns", key=state.key(learns_of(scoring, parameter)))
                _error(errors, start_of(scoring, parameter))
    st.markdown("**Runs**")
    columns = st.columns(2)
    with columns[0]:
        st.text_input("Seeds", key=state.key("seeds"), help="One run for each, as 0 1 2.")
        _error(errors, "seeds")
    there = devices()
    if state["device"] not in there:
        state["device"] = "cpu"
    with columns[1]:
        st.text_input("CPU threads a run", key=state.key("threads"), help="Results depend on it in the last bits.")
        _error(errors, "threads")
    st.selectbox("Device", list(there), key=state.key("device"), format_func=lambda name: there[name])
    if state["device"] != "cpu":
        st.toggle("Compile", key=state.key("compiled"), help="Faster steps after a minute for each length of prompts.")


def _readable(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _error(errors: dict[str, str], name: str) -> None:
    """The field's error, right below it."""
    if sentence := errors.pop(name, None):
        st.error(plain(as_sentence(sentence)))
