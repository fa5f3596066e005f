"""The Numbers page's inputs: what to ask, of which models, and the outlier tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st

from ssa_viz.figures.scale import Scale
from ssa_viz.inspect import Problem, random_numbers
from ssa_viz.sequence import Parsed, format_number, format_numbers, parse
from ssa_viz.tasks import TASKS, Outlier
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.numbers.properties import EXAMPLES, INSERT, REPLACE, first_example
from ssa_viz.ui.numbers.sides import MOST_SIDES, Offer
from ssa_viz.ui.state import State
from ssa_viz.ui.typed import problem_list

PRESETS = (70.0, -70.0, 1000.0)
SLIDER = 1000
MOST_SEED = 2**31 - 1
BEFORE = "numbers:before"  # session key of what Undo brings back, newest last
MOST_UNDO = 50
VARIANT_LABELS = {"attention_only": "Attention only", "transformer": "Transformer"}


def task(state: State) -> None:
    """Which task, at the top of the sidebar."""
    with st.sidebar:
        st.selectbox(
            "Task",
            list(TASKS),
            key=state.key("task"),
            format_func=lambda name: (
                f"{TASKS[name].label}: {TASKS[name].question[:1].lower()}{TASKS[name].question[1:]}"
            ),
            on_change=_task_changed,
            args=(state,),
        )


def sidebar(state: State, variants: list[str], offered: Mapping[str, Offer]) -> None:
    """Architecture, models and colour scale; `variants` are the architectures that the task has checkpoints for."""
    with st.sidebar:
        if state["arch"] not in variants:
            state["arch"] = variants[0]
        st.radio("Architecture", variants, key=state.key("arch"), format_func=lambda name: VARIANT_LABELS[name])
        if len(variants) == 1:
            st.caption(f"{TASKS[state['task']].label} has models of this architecture only.")
        fitting = [id_ for id_, offer in offered.items() if offer.run.model.variant == state["arch"]]
        state["m"] = [id_ for id_ in state["m"] if id_ in fitting][:MOST_SIDES]
        st.multiselect(
            "Models",
            fitting,
            key=state.key("m"),
            format_func=lambda id_: offered[id_].name,
            max_selections=MOST_SIDES,
            placeholder="The shipped Softmax and SSA",
            help="Up to four at once: the shipped ones, and your own from the Train page.",
        )
        st.radio(
            "Colour scale of the weights",
            [scale.value for scale in Scale],
            key=state.key("scale"),
            format_func=str.capitalize,
            help="The same scale for both models, always. Log shows weights down to a millionth.",
        )
        st.button("Start over", icon=":material/restart_alt:", type="tertiary", on_click=_start_over, args=(state,))


def sequence(state: State, most: int) -> tuple[float, ...]:
    """The sequence field with its examples; returns up to `most` numbers and points at what it could not read."""
    st.text_area(
        "Numbers",
        key=state.key("seq"),
        height=104,
        help="Separate them with spaces, commas, semicolons or new lines. A column pasted from a spreadsheet "
        "works, and so do lists from Python or MATLAB. Ctrl+Enter, or a click elsewhere, shows the result.",
    )
    picks = st.columns([4, 5, 3])
    with picks[0].popover("Examples", icon=":material/list:", width="stretch"):
        for label, example in EXAMPLES[state["task"]].items():
            st.button(label, key=f"example_{label}", on_click=_replace, args=(state, example), width="stretch")
    with picks[1].popover("Random sequence", icon=":material/casino:", width="stretch"):
        if most > 1:
            st.slider("How many numbers", 1, most, key=_clamped(state, "length", 1, most))
        else:
            state["length"] = 1
        st.number_input("Seed", 0, MOST_SEED, key=state.key("seed"), help="The same seed gives the same numbers.")
        st.button("Draw", key="draw", on_click=_draw, args=(state, 0), width="stretch", type="primary")
        st.button("Next seed", key="draw_next", on_click=_draw, args=(state, 1), width="stretch")
    picks[2].button(
        "Undo",
        icon=":material/undo:",
        width="stretch",
        disabled=not st.session_state.get(BEFORE),
        on_click=_undo,
        args=(state,),
        help="Brings back what an example, a random sequence or Start over replaced.",
    )
    parsed = parse(state["seq"], limit=most)
    _say_problems(state, parsed, most)
    return parsed.numbers


def outlier(state: State, numbers: tuple[float, ...], most: int) -> Outlier | None:
    """The outlier tool. Switching it off gives back the typed sequence exactly, since that was never changed."""
    switch, how = st.columns([5, 4], vertical_alignment="center")
    on = switch.toggle("**Inject an outlier**", key=state.key("inject"))
    if len(numbers) >= most and state["how"] == INSERT:
        state["how"] = REPLACE
    keys = _show_value(state)
    typed, presets = st.columns([5, 8], vertical_alignment="bottom")
    typed.text_input("Value", key=keys.text, disabled=not on, on_change=_value_typed, args=(state, keys))
    presets.pills(
        "Presets",
        PRESETS,
        key=keys.preset,
        format_func=format_number,
        disabled=not on,
        label_visibility="collapsed",
        on_change=_value_chosen,
        args=(state, keys.preset),
    )
    how.segmented_control(
        "How",
        (REPLACE,) if len(numbers) >= most else (REPLACE, INSERT),
        key=state.key("how"),
        format_func=str.capitalize,
        disabled=not on,
        required=True,
        label_visibility="collapsed",
    )
    if error := st.session_state.get(keys.error):
        st.error(error, icon=":material/error:")
    value, position = st.columns(2)
    value.slider(
        "Value, to drag",
        -SLIDER,
        SLIDER,
        key=keys.slider,
        disabled=not on,
        on_change=_value_chosen,
        args=(state, keys.slider),
        help="From −1000 to 1000; the field above takes any number up to a million.",
    )
    last = max(1, len(numbers) + (1 if state["how"] == INSERT else 0))
    if last > 1:
        position.slider("Position", 1, last, key=_clamped(state, "at", 1, last), disabled=not on)
    else:
        position.caption("Position 1, the only one.")
    if len(numbers) >= most:
        st.caption(f"The model reads up to {most} numbers, so there is no room to insert one.")
    if not on or not numbers:
        return None
    return Outlier(state["value"], min(state["at"], last) - 1, insert=state["how"] == INSERT)


def function(state: State) -> tuple[float, ...]:
    """The line of the `linear` task as (a, b); empty for the other tasks."""
    if state["task"] != "linear":
        return ()
    columns = st.columns(2)
    for column, name, label in ((columns[0], "a", "Slope a"), (columns[1], "b", "Intercept b")):
        state[name] = max(-5.0, min(5.0, state[name]))
        column.slider(label, -5.0, 5.0, key=state.key(name), step=0.1)
    return (state["a"], state["b"])


def problem(state: State, numbers: tuple[float, ...], most: int, prompt_format: str) -> Problem:
    """The whole question, from the outlier tool and, for `linear`, the line."""
    injected = outlier(state, numbers, most)
    return Problem(state["task"], prompt_format, numbers, function(state), injected)


def _say_problems(state: State, parsed: Parsed, most: int) -> None:
    if parsed.problems:
        kept = f"The other {len(parsed.numbers)} are kept." if parsed.numbers else "Nothing is left to show."
        st.warning(f"Could not read everything. {kept}\n\n{problem_list(parsed)}", icon=":material/warning:")
    if parsed.note:
        st.caption(plain(parsed.note))
    if parsed.left_out:
        st.warning(
            f"This model reads up to {most} numbers, and there are {len(parsed.numbers) + parsed.left_out}. "
            f"The first {most} are shown.",
            icon=":material/content_cut:",
        )
        st.button(
            f"Keep the first {most}",
            key="keep",
            on_click=_replace,
            args=(state, format_numbers(parsed.numbers)),
        )
    if not parsed.numbers and not parsed.problems:
        st.info("Type some numbers, or pick an example.", icon=":material/edit:")


def _clamped(state: State, name: str, low: int, high: int) -> str:
    """The key of a whole-number property, after bringing it into the range that its slider has now."""
    state[name] = max(low, min(high, state[name]))
    return state.key(name)


def _remember(values: dict[str, Any]) -> None:
    """Let Undo bring these properties back."""
    st.session_state[BEFORE] = [*st.session_state.get(BEFORE, []), values][-MOST_UNDO:]


def _replace(state: State, sequence: str) -> None:
    if state["seq"] != sequence:
        _remember({"seq": state["seq"], "seed": state["seed"]})
        state["seq"] = sequence


def _task_changed(state: State) -> None:
    """A task that still shows another task's first example moves on to its own."""
    examples = {example for pool in EXAMPLES.values() for example in pool.values()}
    if state["seq"] in examples:
        state["seq"] = first_example(state["task"])


def _draw(state: State, step: int) -> None:
    drawn = min(state["seed"] + step, MOST_SEED)
    _replace(state, format_numbers(random_numbers(state["task"], state["length"], drawn)))
    state["seed"] = drawn


class _ValueKeys(NamedTuple):
    """Session keys of the three widgets that show one value, and of what is wrong with the typed one."""

    text: str
    preset: str
    slider: str
    error: str


def _show_value(state: State) -> _ValueKeys:
    """Bring the three widgets in line with the value. What was typed and could not be read stays in its field."""
    keys = _ValueKeys(*(f"{state.key('value')}:{name}" for name in _ValueKeys._fields))
    value = state["value"]
    if keys.error not in st.session_state:
        st.session_state[keys.text] = format_number(value)
    st.session_state[keys.preset] = value if value in PRESETS else None
    st.session_state[keys.slider] = round(max(-SLIDER, min(SLIDER, value)))
    return keys


def _value_typed(state: State, keys: _ValueKeys) -> None:
    parsed = parse(st.session_state[keys.text])
    if len(parsed.numbers) == 1 and not parsed.problems:
        state["value"] = parsed.numbers[0]
        st.session_state.pop(keys.error, None)
    else:
        reason = parsed.problems[0].sentence if parsed.problems else "one number is needed"
        st.session_state[keys.error] = f"{plain(reason)}. The value stays {plain(format_number(state['value']))}."


def _value_chosen(state: State, key: str) -> None:
    if st.session_state[key] is not None:  # a second click on a preset takes it away, and leaves the value
        state["value"] = float(st.session_state[key])
    _forget_typed_value(state)


def _start_over(state: State) -> None:
    before = state.snapshot()
    state.reset()
    if state.snapshot() != before:
        _remember(before)
    _forget_typed_value(state)


def _undo(state: State) -> None:
    remembered = st.session_state.get(BEFORE, [])
    if remembered:  # a fast second click can come after the last one was used
        *st.session_state[BEFORE], last = remembered
        state.put(last)
    _forget_typed_value(state)


def _forget_typed_value(state: State) -> None:
    """Let the value's text field show the value again, and no longer what could not be read."""
    st.session_state.pop(f"{state.key('value')}:error", None)
