"""A page's state: each property's text and back, and where a value comes from when the page is drawn."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from ssa_viz.ui.numbers.properties import EXAMPLES, first_example, numbers_state
from ssa_viz.ui.state import Property, choice, real, switch, text, whole

WHOLE = whole("at", 8, 1, 13)
REAL = real("value", 70.0, 1e6)
TEXT = text("seq", "1 2", 7)


@pytest.mark.parametrize(
    ("prop", "given_text", "value"),
    [
        (choice("how", ("replace", "insert"), "replace"), "insert", "insert"),
        (WHOLE, "1", 1),
        (WHOLE, "13", 13),
        (REAL, "-70.5", -70.5),
        (REAL, "1e6", 1e6),
        (switch("inject"), "1", True),
        (switch("inject", default=True), "0", False),
        (TEXT, "", ""),
        (TEXT, "1,5; −2", "1,5; −2"),
    ],
)
def test_text_of_the_address_becomes_a_value_and_back(prop: Property, given_text: str, value: object) -> None:
    assert prop.parse(given_text) == value
    assert type(prop.parse(given_text)) is type(value)
    assert prop.parse(prop.show(value)) == value


@pytest.mark.parametrize(
    ("prop", "given_text"),
    [
        (choice("how", ("replace", "insert"), "replace"), "Insert"),
        (choice("how", ("replace", "insert"), "replace"), ""),
        (WHOLE, "0"),
        (WHOLE, "14"),
        (WHOLE, "2.0"),
        (WHOLE, ""),
        (WHOLE, "9" * 5000),
        (REAL, "1000001"),
        (REAL, "nan"),
        (REAL, "inf"),
        (REAL, "1,5"),
        (REAL, ""),
        (switch("inject"), "true"),
        (switch("inject"), ""),
        (TEXT, "12345678"),
    ],
)
def test_what_is_no_value_is_refused(prop: Property, given_text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        prop.parse(given_text)


@given(st.floats(-1e6, 1e6))
def test_every_real_survives_the_address(value: float) -> None:
    back = REAL.parse(REAL.show(value))
    assert back == value
    assert math.copysign(1, back) == math.copysign(1, value)


PAGE = """
import streamlit as st
from ssa_viz.ui.state import State, choice, switch, text, whole

state = State("small", [text("seq", "1 2", 20), whole("at", 8, 1, 13), switch("on"), choice("how", ("a", "b"), "a")])
st.session_state["unusable"] = state.restore()
if not st.checkbox("elsewhere"):
    st.text_input("seq", key=state.key("seq"))
    st.slider("at", 1, 13, key=state.key("at"))
    st.toggle("on", key=state.key("on"))
if st.button("reset"):
    pass
st.button("defaults", on_click=state.reset)
st.session_state["seen"] = state.snapshot()
state.publish()
"""
DEFAULTS = {"seq": "1 2", "at": 8, "on": False, "how": "a"}


def small(**address: str) -> AppTest:
    at = AppTest.from_string(PAGE, default_timeout=60)
    for name, value in address.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def seen(at: AppTest) -> dict[str, object]:
    return dict(at.session_state["seen"])


def test_defaults_leave_the_address_empty() -> None:
    at = small()
    assert seen(at) == DEFAULTS
    assert at.query_params == {}
    assert at.session_state["unusable"] == []


def test_the_address_holds_what_differs_and_brings_it_back() -> None:
    at = small()
    at.text_input(key="small.seq").set_value("−3; 1,5").run()
    at.toggle(key="small.on").set_value(True).run()
    assert at.query_params == {"seq": "−3; 1,5", "on": "1", "v": "1"}
    fresh = small(**at.query_params)
    assert seen(fresh) == seen(at) == {**DEFAULTS, "seq": "−3; 1,5", "on": True}
    fresh.text_input(key="small.seq").set_value("1 2").run()
    fresh.toggle(key="small.on").set_value(False).run()
    assert fresh.query_params == {}


def test_each_bad_value_is_named_and_the_good_ones_count() -> None:
    at = small(at="99", how="c", on="1", stray="x")
    assert at.session_state["unusable"] == ["at", "how"]
    assert seen(at) == {**DEFAULTS, "on": True}
    assert at.query_params == {"on": "1", "v": "1"}
    at.run()
    assert at.session_state["unusable"] == []  # said once


def test_an_address_of_another_version_is_not_guessed_at() -> None:
    at = small(v="2", at="3")
    assert at.session_state["unusable"] == ["v"]
    assert seen(at) == DEFAULTS


def test_an_address_without_a_version_is_read() -> None:
    assert seen(small(at="3")) == {**DEFAULTS, "at": 3}


def test_what_is_not_drawn_is_not_forgotten() -> None:
    """Streamlit drops a widget's value when a run does not draw it, as on a visit to another page."""
    at = small()
    at.slider(key="small.at").set_value(5).run()
    at.text_input(key="small.seq").set_value("7 7").run()
    at.checkbox[0].check().run()
    assert not at.slider
    at.checkbox[0].uncheck().run()
    assert seen(at) == {**DEFAULTS, "seq": "7 7", "at": 5}
    assert at.slider(key="small.at").value == 5


def test_the_address_counts_on_the_first_visit_only() -> None:
    at = small(at="3")
    at.slider(key="small.at").set_value(5).run()
    at.query_params["at"] = "4"
    at.run()
    assert seen(at)["at"] == 5
    assert at.query_params["at"] == "5"


def test_reset_gives_the_defaults() -> None:
    at = small(at="3", seq="9", on="1", how="b")
    at.button[1].click().run()
    assert seen(at) == DEFAULTS
    assert at.query_params == {}


def test_sessions_do_not_share_state() -> None:
    one, two = small(), small()
    one.slider(key="small.at").set_value(2).run()
    two.run()
    assert (seen(one)["at"], seen(two)["at"]) == (2, 8)


@pytest.mark.parametrize("task", EXAMPLES)
def test_examples_fit_the_address(task: str) -> None:
    """Each is a value of the sequence's property, and the first is what a task starts with."""
    properties = {prop.name: prop for prop in numbers_state()._properties.values()}
    for example in EXAMPLES[task].values():
        assert properties["seq"].parse(example) == example
        assert re.fullmatch(r"[-0-9. ]+", example)
    assert first_example(task) == next(iter(EXAMPLES[task].values()))
    assert properties["seq"].default == first_example("every")


def test_what_a_button_replaced_comes_back() -> None:
    def page() -> None:
        import streamlit as st

        from ssa_viz.ui.state import State, text, whole
        from ssa_viz.ui.undo import Undo

        state, undo = State("undone", [text("a", "one", 9), whole("b", 1, 0, 99)]), Undo("undone")
        state.restore()
        st.button("change", on_click=lambda: undo.change(state, a=state["a"] + "!", b=1))
        st.button("same", on_click=lambda: undo.change(state, a=state["a"]))
        st.button("back", on_click=lambda: undo.back(state))
        st.text(f"{state['a']} {state['b']} {bool(undo)}")

    at = AppTest.from_function(page).run()
    assert at.text[0].value == "one 1 False"
    at.button[1].click().run()
    assert at.text[0].value == "one 1 False"
    at.button[0].click().run()
    at.button[0].click().run()
    assert at.text[0].value == "one!! 1 True"
    at.button[2].click().run()
    assert at.text[0].value == "one! 1 True"
    at.button[2].click().run()
    at.button[2].click().run()
    assert at.text[0].value == "one 1 False"
    assert not at.exception
