"""The Scoring lab without a browser: what each widget does, and that what is drawn is what the functions say."""

from __future__ import annotations

import base64
import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import streamlit as st
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from ssa_viz import checkpoints, inspect
from ssa_viz.inspect import Problem
from ssa_viz.scoring import SCORING
from ssa_viz.ui import cache
from ssa_viz.ui.lab import drag, properties, scene
from ssa_viz.ui.lab.real import SEQUENCE
from tests.browser import ROOT

ROW = "4 1 0.8 0.5 -0.2"
LOGITS = np.array([4.0, 1.0, 0.8, 0.5, -0.2])


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.switch_page("pages/scoring.py")
    for name, value in {**address, "v": "1"}.items():
        app.query_params[name] = value
    return ran(app)


def ran(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception, [each.value for each in app.exception]
    return app


def figure(app: AppTest, key: str) -> dict[str, Any]:
    (found,) = [each for each in app.get("plotly_chart") if key in each.proto.id.split("-")]
    return json.loads(found.proto.spec)  # type: ignore[no-any-return]


def numbers(packed: Any) -> NDArray[np.float64]:
    if isinstance(packed, dict):
        values = np.frombuffer(base64.b64decode(packed["bdata"]), dtype=packed["dtype"])
        return values.reshape([int(n) for n in packed["shape"].split(",")]) if "shape" in packed else values
    return np.array([math.nan if value is None else value for value in packed], dtype=np.float64)


def softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def ssa(x: NDArray[np.float64], n: float = 1.5, b: float = 1.0) -> NDArray[np.float64]:
    scores = (1 + b * np.abs(x)) ** (np.sign(x) * n)
    return np.asarray(scores / scores.sum())


def press(app: AppTest, label: str) -> None:
    app.button[[b.label for b in app.button].index(label)].click()
    ran(app)


def text(app: AppTest) -> str:
    """Everything that is said, without the escapes of Markdown."""
    said = (each.value for each in [*app.markdown, *app.caption, *app.info, *app.warning])
    return "\n".join(said).replace("\\", "")


def drawn(app: AppTest) -> dict[str, NDArray[np.float64]]:
    return {bar["name"]: numbers(bar["y"]) for bar in figure(app, "panels")["data"]}


def test_first_view_draws_four_functions_as_their_formulas_say() -> None:
    app = opened()
    bars = drawn(app)
    assert list(bars) == ["Softmax", "SSA", "Softmax plus one", "Sparsemax"]
    np.testing.assert_allclose(bars["Softmax"], softmax(LOGITS), rtol=1e-9)
    np.testing.assert_allclose(bars["SSA"], ssa(LOGITS), rtol=1e-9)
    np.testing.assert_allclose(bars["Softmax plus one"], np.exp(LOGITS) / (1 + np.exp(LOGITS).sum()), rtol=1e-9)
    np.testing.assert_allclose(bars["Sparsemax"], [1, 0, 0, 0, 0])
    left = 1 - ssa(LOGITS).max()
    assert f"Sparsemax leaves **0** for all keys but the strongest, SSA leaves **{left:.1%}**" in text(app)
    assert app.query_params == {}


def test_a_parameters_slider_moves_its_function_only() -> None:
    app = opened()
    before = drawn(app)
    app.slider(key="lab.ssa.n").set_value(3.0)
    ran(app)
    bars = drawn(app)
    np.testing.assert_allclose(bars["SSA, n = 3"], ssa(LOGITS, n=3.0), rtol=1e-9)
    np.testing.assert_array_equal(bars["Softmax"], before["Softmax"])
    assert str(app.query_params["ssa.n"]).strip("[']") == "3"
    press(app, "Reset parameters")
    np.testing.assert_array_equal(drawn(app)["SSA"], before["SSA"])
    press(app, "Undo")
    np.testing.assert_array_equal(drawn(app)["SSA, n = 3"], bars["SSA, n = 3"])


def test_all_functions_can_be_drawn_together_from_an_address_alone() -> None:
    app = opened(f=",".join(SCORING), view="shape")
    assert list(drawn(app)) == [cls.label for cls in SCORING.values()]
    names = [line["name"] for line in figure(app, "shape")["data"]]
    assert "SSA" in names
    assert "Sparsemax" not in names
    assert "Without a score of one logit alone" in text(app)
    for shape in ("score_slope", "weight", "weight_slope"):
        app.session_state["lab.shape"] = shape
        ran(app)
    assert len(figure(app, "shape")["data"]) == len(SCORING)
    for view in ("magnify", "grow", "gradient", "functions"):
        app.session_state["lab.view"] = view
        ran(app)


def test_magnifying_says_and_draws_what_the_closed_forms_say() -> None:
    app = opened(x="1 0.8 0.5 -0.2", **{"ssa.b": "0.8"})
    rows = 50 * np.array([1, 0.8, 0.5, -0.2])
    fast, slow = 1 - softmax(rows).max(), 1 - ssa(rows, b=0.8).max()
    assert f"At λ = 50, this is left for the other keys: Softmax **{fast:.1g}**, SSA, b = 0.8 **{slow:.1%}**" in text(
        app
    )
    lines = {line["name"]: line for line in figure(app, "curves_lambda")["data"]}
    at, mass = numbers(lines["Softmax"]["x"]), numbers(lines["Softmax"]["y"])
    expected = [np.exp(-f * np.array([0.2, 0.5, 1.2])).sum() for f in at]
    held = ~np.isnan(mass)
    np.testing.assert_allclose(mass[held], (np.array(expected) / (1 + np.array(expected)))[held], rtol=1e-7)
    limit = 1 - 1 / (1 + 0.8**1.5 + 0.5**1.5)
    np.testing.assert_allclose(numbers(lines["SSA, b = 0.8: formula"]["y"]), limit, rtol=1e-9)


def test_one_key_grows() -> None:
    app = opened(view="grow", key="2", t="20")
    rows = np.array([4.0, 20.0, 0.8, 0.5, -0.2])
    assert f"At t = 20, this is left for the other keys: Softmax **{1 - softmax(rows).max():.1g}**" in text(app)
    app.select_slider(key="lab.t").set_value("100")
    app.slider(key="lab.key").set_value(1)
    ran(app)
    rows = np.array([100.0, 1.0, 0.8, 0.5, -0.2])
    assert f"SSA **{1 - ssa(rows).max():.1%}**" in text(app)
    assert str(app.query_params["t"]).strip("[']") == "100"


def test_ssa_meets_softmax() -> None:
    app = opened(view="meet", m="100")
    difference = np.abs(ssa(LOGITS, 100, 0.01) - softmax(LOGITS)).max()
    assert f"At m = 100 the largest difference between two weights is **{difference:.3g}**" in text(app)
    line = figure(app, "difference")["data"][0]
    assert numbers(line["y"])[-1] < 1e-5


def test_gradients_are_softmaxs_jacobian_on_one_scale_for_all() -> None:
    app = opened(view="gradient", x="2 1 0", f="softmax,ssa")
    w = softmax(np.array([2.0, 1.0, 0.0]))
    matrix = numbers(figure(app, "jacobian_softmax")["data"][0]["z"])
    np.testing.assert_allclose(matrix, np.diag(w) - np.outer(w, w), rtol=1e-9)
    ends = [figure(app, f"jacobian_{name}")["layout"]["coloraxis"]["cmax"] for name in ("softmax", "ssa")]
    assert ends[0] == ends[1]
    shouting = opened(view="gradient", x="70 1 0.5", f="softmax,ssa")
    assert "Below a millionth, so hardly learning: 3 of 3 keys" in text(shouting)
    assert "Below a millionth, so hardly learning: no key" in text(shouting)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Type some numbers"),
        ("NaN", "Nothing is left to show"),
        ("1 2 1e999", "Could not read everything"),
        (" ".join(["1"] * 500), "A row here has up to 64 keys"),
        ("1,5; 2,5", "1.5"),
    ],
)
def test_bad_input_is_explained(typed: str, said: str) -> None:
    app = opened()
    app.text_area(key="lab.x").set_value(typed)
    ran(app)
    assert said in text(app) or said in str(figure(app, "panels")["layout"]["meta"]["keys"])


def test_one_key_and_no_function_are_explained() -> None:
    app = opened(x="3")
    assert "One key alone leaves nothing to compare" in text(app)
    assert "two or more keys" in text(app)
    for view in ("meet", "shape", "gradient"):
        app.session_state["lab.view"] = view
        ran(app)
    assert "Choose a scoring function" in text(opened(f=""))
    assert "Every row here is empty" in text(opened(f="softpick", x="-1 -2"))


def test_an_address_that_cannot_be_is_told_and_the_default_shown() -> None:
    app = opened(f="hardmax", view="nowhere", **{"ssa.n": "0.2"})
    assert "does not exist (f, view, ssa.n)" in text(app)
    assert len(drawn(app)) == 4


def test_examples_and_added_keys_can_be_undone() -> None:
    app = opened()
    app.button(key="preset_One shouts").click()
    ran(app)
    assert app.text_area(key="lab.x").value.startswith("70")
    app.button(key="add_key").click()
    ran(app)
    assert len(drawn(app)["Softmax"]) == 6
    app.button(key="remove_key").click()
    ran(app)
    for _ in range(3):
        press(app, "Undo")
    assert app.text_area(key="lab.x").value == ROW
    assert app.button[[b.label for b in app.button].index("Undo")].disabled


def test_a_models_row_is_the_models_own_logits() -> None:
    app = opened()
    app.selectbox(key="lab_model").select("every-attention_only-softmax")
    ran(app)
    app.button(key="lab_take").click()
    ran(app)
    loaded = checkpoints.load(cache.MODELS / "every-attention_only-softmax")
    numbers_read = tuple(float(x) for x in SEQUENCE.split())
    reading = inspect.read(loaded.model, Problem("every", "numbers", numbers_read))
    np.testing.assert_allclose(drawn(app)["Softmax"], reading.weights[1, 0, 7, :8], rtol=5e-3, atol=1e-6)
    app.selectbox(key="lab_model").select("linear-transformer-ssa")
    ran(app)
    assert "on the line with slope 1.5 and intercept −0.5" in text(app)


@pytest.mark.parametrize(
    ("typed", "query", "said"),
    [
        ("0.7 nothing 1", 2, "'nothing', is not a number"),
        ("", 1, "not 0"),
        (" ".join(["1"] * 100), 1, "not 100"),
        ("1 2 3", 4, "query 4 is beyond the last of 3 numbers"),
    ],
)
def test_a_row_that_no_model_gives_is_refused(typed: str, query: int, said: str) -> None:
    app = opened()
    app.text_input(key="lab_sequence").set_value(typed)
    app.number_input(key="lab_query").set_value(query)
    app.button(key="lab_take").click()
    ran(app)
    assert said in app.error[0].value.replace("\\", "")
    assert app.text_area(key="lab.x").value == ROW


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1.0, 2.0), (-5.0, 10.0)), ((70.0,), (-5.0, 80.0)), ((-7.0, 3.0), (-8.0, 10.0)), ((1e6,), (-5.0, 1e6))],
)
def test_the_bars_axis_holds_every_logit(values: tuple[float, ...], expected: tuple[float, float]) -> None:
    assert drag._span(values) == expected


@pytest.mark.parametrize(
    "moved",
    [None, [], {}, 3, {"0": math.nan}, {"0": "1"}, {"0": None}, {"-1": 1}, {"64": 1}, {"x": 1}, {"0": 1, "²": 2}],
)
def test_what_a_browser_sends_is_checked(monkeypatch: pytest.MonkeyPatch, moved: object) -> None:
    taken: list[dict[int, float]] = []
    for sent in (moved, {"moved": moved}, {"moved": moved, "turn": 3}):
        monkeypatch.setattr(st, "session_state", {drag.KEY: SimpleNamespace(get=lambda name, sent=sent: sent)})
        drag._moved(taken.append)
    assert taken == []
    monkeypatch.setattr(st, "session_state", {drag.KEY: {"logits": {"moved": {"0": 1, "12": 2.5}, "turn": 7.0}}})
    drag._moved(taken.append)
    assert taken == [{0: 1.0, 12: 2.5}]


@pytest.mark.parametrize(
    ("mass", "said"),
    [(0.0, "0"), (3e-30, "3e-30"), (0.0004, "0.0004"), (0.413, "41.3%"), (0.9999, "100%"), (2.5, "250.0%")],
)
def test_shares_are_said_in_words(mass: float, said: str) -> None:
    assert scene.said(mass) == said


def test_every_parameter_of_every_function_has_its_place_in_the_address() -> None:
    state_names = {prop.name for prop in properties.lab_state()._properties.values()}
    wanted = {f"{name}.{p.name}" for name, cls in SCORING.items() for p in cls.parameters_spec}
    assert wanted <= state_names
