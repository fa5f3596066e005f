"""The Numbers page without a browser: what each widget does, and that every drawn number is the model's."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element

from ssa_viz import checkpoints, inspect
from ssa_viz.inspect import Problem, Reading
from ssa_viz.model import Decoder, build
from ssa_viz.sequence import format_number
from ssa_viz.tasks import Outlier
from ssa_viz.train.presets import SCORED, SHIPPED, checkpoint_name, shipped
from ssa_viz.ui import cache
from ssa_viz.ui.numbers.properties import EXAMPLES, first_example

ROOT = Path(__file__).resolve().parents[1]
TYPED = "0.5 -1.25 2 0 0.75 3 1.5"
NUMBERS = (0.5, -1.25, 2.0, 0.0, 0.75, 3.0, 1.5)
LABELS = {"softmax": "Softmax", "ssa": "SSA"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every shipped pair, untrained: the page does the same with any weights. Rows are made far from uniform."""
    root = tmp_path_factory.mktemp("models")
    for task, variant in SHIPPED:
        for scoring in SCORED:
            run = shipped(task, variant, scoring, seed=5)
            model = build(run.model, run.seed)
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    if name.endswith("qkv.weight"):
                        parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(7))
            checkpoints.save(root / checkpoint_name(task, variant, scoring), model, run, {})
    return root


@pytest.fixture(autouse=True)
def shown_models(models: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(cache, "MODELS", models)
    yield
    torch.set_num_threads(threads)


def opened(**address: str) -> AppTest:
    """The page at an address, after its first run."""
    at = AppTest.from_file(ROOT / "app.py", default_timeout=120)
    for name, value in address.items():
        at.query_params[name] = value
    return settled(at)


def settled(at: AppTest) -> AppTest:
    at.run()
    assert not at.exception, at.exception
    return at


def typed(at: AppTest, text: str) -> AppTest:
    at.text_area(key="numbers.seq").set_value(text)
    return settled(at)


def injecting(at: AppTest, *, on: bool = True) -> AppTest:
    at.toggle(key="numbers.inject").set_value(on)
    return settled(at)


def pressed(at: AppTest, label: str) -> AppTest:
    [button] = [button for button in at.button if button.label == label]
    button.click()
    return settled(at)


def figures(at: AppTest) -> dict[str, dict[str, Any]]:
    """Every drawn figure by its key, arrays decoded."""
    drawn = at.get("plotly_chart")
    return {chart.proto.id.rsplit("-", 1)[1]: decoded(json.loads(chart.proto.spec)) for chart in drawn}


def decoded(value: Any) -> Any:
    """Plotly's packed arrays as numpy arrays, everything else as it is."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"dtype", "bdata"}:
        array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return array.reshape([int(n) for n in str(value.get("shape", len(array))).split(",")])
    return {name: decoded(item) for name, item in value.items()}


def model(task: str = "every", variant: str = "attention_only", scoring: str = "softmax") -> Decoder:
    return checkpoints.load(cache.MODELS / checkpoint_name(task, variant, scoring)).model


def expected(
    scoring: str,
    numbers: tuple[float, ...] = NUMBERS,
    outlier: Outlier | None = None,
    *,
    task: str = "every",
    variant: str = "attention_only",
    function: tuple[float, ...] = (),
) -> Reading:
    """What the page's model makes of the numbers, read without the page."""
    prompt_format = "labelled" if task == "linear" else "numbers"
    return inspect.read(model(task, variant, scoring), Problem(task, prompt_format, numbers, function, outlier))


def drawn_weights(at: AppTest, scoring: str) -> NDArray[np.float32]:
    """The exact weights (Q, K) of the drawn map, hidden ones too."""
    weights: NDArray[np.float32] = figures(at)[f"attention_{scoring}"]["data"][0]["customdata"][..., 0]
    return weights


def said(at: AppTest) -> str:
    """All sentences of warnings, errors and hints, without Markdown's escapes."""
    return "\n".join(unescaped(element) for element in [*at.warning, *at.error, *at.info, *at.caption])


def unescaped(element: Element) -> str:
    """What a visitor reads of an element's Markdown."""
    return re.sub(r"\\([\W_])", r"\1", element.value)


def cards(at: AppTest) -> list[str]:
    """The text of the cards, softmax's first."""
    bodies = [element.proto.body for element in at.get("html") if "ssa-card" in element.proto.body]
    return [html.unescape(re.sub(r"<[^>]+>", " ", body)) for body in bodies if "<style>" not in body]


# What is drawn is what the model computed


@pytest.mark.parametrize(
    ("address", "outlier", "layer", "head"),
    [
        ({}, None, 1, 0),
        ({"inject": "1", "at": "3", "layer": "0", "head": "2"}, Outlier(70.0, 2), 0, 2),
        ({"inject": "1", "at": "8", "how": "insert", "value": "-70.5"}, Outlier(-70.5, 7, insert=True), 1, 0),
    ],
)
def test_every_drawn_number_is_the_models(
    address: dict[str, str], outlier: Outlier | None, layer: int, head: int
) -> None:
    at = opened(seq=TYPED, **address)
    drawn = figures(at)
    assert set(drawn) >= {"attention_softmax", "attention_ssa", "overview_softmax", "overview_ssa", "mass", "answers"}
    rows = []
    for scoring in SCORED:
        reading = expected(scoring, outlier=outlier)
        weights, logits = reading.weights[layer, head], reading.logits[layer, head]
        cells = drawn[f"attention_{scoring}"]["data"][0]
        np.testing.assert_allclose(cells["z"], np.where(reading.visible, weights, np.nan), rtol=1e-6)
        np.testing.assert_allclose(cells["customdata"], np.stack([weights, logits], axis=-1), rtol=1e-6)
        assert drawn[f"attention_{scoring}"]["layout"]["meta"]["outlier"] == reading.outlier
        assert drawn[f"attention_{scoring}"]["layout"]["meta"]["title"] == f"{LABELS[scoring]} · L{layer} H{head}"
        centres = drawn[f"overview_{scoring}"]["data"][1]["customdata"]
        heads = [[i, j, reading.weights[i, j].max()] for i in range(2) for j in range(4)]
        np.testing.assert_allclose(centres, heads, atol=1e-4)
        rows.append(1 - weights.max(axis=-1))
    for line, mass in zip(drawn["mass"]["data"], rows, strict=True):
        np.testing.assert_allclose(line["y"], mass, atol=1e-6)
    # Two models with other functions cannot agree everywhere, or the comparison would show nothing.
    assert not np.allclose(rows[0], rows[1], atol=1e-3)


def test_answers_are_marked_against_the_truth() -> None:
    at = opened(seq=TYPED)
    truth, *traces = figures(at)["answers"]["data"]
    judged = [all(x > 0 for x in NUMBERS[: i + 1]) for i in range(len(NUMBERS))]
    assert [symbol == "circle" for symbol in truth["marker"]["symbol"]] == judged
    assert judged == [True] + [False] * 6
    for index, scoring in enumerate(SCORED):
        right, wrong = traces[2 * index : 2 * index + 2]
        chance = expected(scoring).predictions
        correct = [(p > 0.5) == true for p, true in zip(chance, judged, strict=True)]
        assert right["x"] == [i for i, ok in enumerate(correct) if ok]
        assert wrong["x"] == [i for i, ok in enumerate(correct) if not ok]
        for trace in (right, wrong):
            for i, hover in zip(trace["x"], trace["hovertext"], strict=True):
                assert f"P(True) = {chance[i]:.4g}, truth {judged[i]}" in hover


def test_the_cards_say_what_the_injected_row_does() -> None:
    at = injecting(typed(opened(at="3"), TYPED))
    for scoring, card in zip(SCORED, cards(at), strict=True):
        reading = expected(scoring, outlier=Outlier(70.0, 2))
        row = reading.weights[1, 0, 2]
        share = reading.weights[:, :, 2].max(axis=-1).mean()
        assert LABELS[scoring] in card
        assert "L1 H0, row of 70" in card
        assert f"(token {row.argmax()})" in card
        assert f"Mean over all 8 heads: {100 * share:.0f}%" in card
        # After 0.5 and −1.25, not every number is positive, so True is wrong.
        assert ("✗ wrong" if reading.predictions[2] > 0.5 else "✓ right") in card
        assert "collapsed" not in card  # three visible keys are too few


def test_a_row_can_be_chosen() -> None:
    at = opened(seq=TYPED)
    assert all("row of 1.5" in card for card in cards(at))
    at.selectbox(key="numbers.row").set_value(5)
    settled(at)
    assert all("row of 0.75" in card for card in cards(at))
    assert at.query_params["row"] == "5"
    typed(at, "1 2")
    assert at.session_state["numbers.row"] == 2


@pytest.mark.parametrize("scale", ["linear", "log", "relative to the row's maximum"])
def test_both_panels_share_the_scale_that_they_state(scale: str) -> None:
    at = opened(seq=TYPED)
    at.radio(key="numbers.scale").set_value(scale)
    drawn = figures(settled(at))
    axes = [drawn[key]["layout"]["coloraxis"] for key in drawn if key.startswith(("attention", "overview"))]
    assert len(axes) == 4
    for axis in axes:
        assert (axis["cmin"], axis["cmax"]) == ((-6, 0) if scale == "log" else (0, 1))
        assert axis["colorscale"] == axes[0]["colorscale"]
        assert axis["colorbar"]["title"]["text"] == axes[0]["colorbar"]["title"]["text"]
        assert scale in axis["colorbar"]["title"]["text"]
    for scoring in SCORED:
        reading = expected(scoring)
        weights = reading.weights[1, 0]
        places = {
            "linear": weights,
            "log": np.log10(np.maximum(weights, 1e-6)),
            "relative to the row's maximum": weights / weights.max(axis=-1, keepdims=True),
        }[scale]
        cells = drawn[f"attention_{scoring}"]["data"][0]["z"]
        np.testing.assert_allclose(cells, np.where(reading.visible, places, np.nan), rtol=1e-5, atol=1e-6)


def test_layer_and_head_are_chosen_for_both() -> None:
    at = opened(seq=TYPED)
    at.segmented_control(key="numbers.layer").set_value(0)
    at.segmented_control(key="numbers.head").set_value(3)
    settled(at)
    for scoring in SCORED:
        np.testing.assert_allclose(drawn_weights(at, scoring), expected(scoring).weights[0, 3], rtol=1e-6)
        assert figures(at)[f"overview_{scoring}"]["layout"]["meta"]["selected"] == [0, 3]
    assert at.query_params.items() >= {"layer": "0", "head": "3"}.items()


# What is typed


def test_the_unreadable_is_pointed_at_and_the_rest_kept() -> None:
    at = typed(opened(), "0.5, abc, −1.25 2; nan 0 1e999 0.75 3 1.5")
    warning = said(at)
    assert "The other 7 are kept" in warning
    assert "item 2, 'abc', is not a number" in warning
    assert "item 5, 'nan', is refused: NaN and infinity have no place in a sequence" in warning
    assert "item 7, '1e999', is too large" in warning
    np.testing.assert_allclose(drawn_weights(at, "ssa"), expected("ssa").weights[1, 0], rtol=1e-6)
    assert at.text_area(key="numbers.seq").value == "0.5, abc, −1.25 2; nan 0 1e999 0.75 3 1.5"


def test_many_problems_are_summed_up() -> None:
    at = typed(opened(), " ".join(f"x{i}" for i in range(13)) + " 7")
    assert "item 5, 'x4'" in said(at)
    assert "x5" not in said(at)
    assert "and 8 more" in said(at)


def test_markdown_and_html_in_what_was_typed_stay_text() -> None:
    at = typed(opened(), "1 <b>**x**</b> 2")
    [warning] = at.warning
    assert r"\<b\>\*\*x\*\*\</b\>" in warning.value


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "Type some numbers, or pick an example."),
        (" \n\t", "Type some numbers, or pick an example."),
        ("nan", "Nothing is left to show."),
        ("inf -inf", "Nothing is left to show."),
    ],
)
@pytest.mark.parametrize("inject", [False, True])
def test_without_a_number_there_is_a_hint_and_no_figure(text: str, hint: str, inject: bool) -> None:
    at = typed(injecting(opened(), on=inject), text)
    assert hint in said(at)
    assert figures(at) == {}
    assert figures(typed(at, TYPED))


@pytest.mark.parametrize("text", ["7", "0", "1 1 1 1 1", "0 0 0", "1e-9", "-1000000 1000000"])
@pytest.mark.parametrize("inject", [False, True])
def test_unusual_sequences_are_read(text: str, inject: bool) -> None:
    numbers = tuple(float(word) for word in text.split())
    at = typed(injecting(opened(at="1"), on=inject), text)
    assert not at.warning
    outlier = Outlier(70.0, 0) if inject else None
    for scoring in SCORED:
        weights = expected(scoring, numbers, outlier).weights[1, 0]
        np.testing.assert_allclose(drawn_weights(at, scoring), weights, rtol=1e-5, atol=1e-9)
        cells = figures(at)[f"attention_{scoring}"]
        assert len(cells["layout"]["xaxis2"]["ticktext"]) == len(numbers)  # equal numbers keep their places


def test_zero_is_not_positive() -> None:
    truth = figures(typed(opened(), "1 0 1"))["answers"]["data"][0]
    assert truth["marker"]["symbol"] == ["circle", "circle-open", "circle-open"]
    assert any("zero is not positive" in label.lower() for pool in ("every", "some") for label in EXAMPLES[pool])


def test_more_numbers_than_the_model_reads() -> None:
    many = " ".join(str(i / 8) for i in range(47))
    at = typed(opened(how="insert", inject="1"), many)
    assert "reads up to 41 numbers, and there are 47. The first 41 are shown." in said(at)
    assert "no room to insert" in said(at)
    assert at.session_state["numbers.how"] == "replace"
    assert drawn_weights(at, "ssa").shape == (41, 41)
    pressed(at, "Keep the first 41")
    assert at.text_area(key="numbers.seq").value == " ".join(format_number(i / 8) for i in range(41))
    assert "there are" not in said(at)
    pressed(at, "Undo")
    assert at.text_area(key="numbers.seq").value == many


def test_a_labelled_task_reads_fewer_numbers() -> None:
    at = opened(task="linear", arch="transformer", seq=" ".join(["1 -1"] * 13))
    assert "reads up to 16 numbers, and there are 26" in said(at)


# The outlier tool


def test_switching_off_gives_back_the_typed_sequence() -> None:
    text = "0.50,\t-1.25 ;2\n0 .75 3 1.5"
    at = typed(opened(), text)
    before = figures(at)
    injected = figures(injecting(at))
    assert injected["attention_ssa"]["layout"]["meta"]["keys"] != before["attention_ssa"]["layout"]["meta"]["keys"]
    assert at.text_area(key="numbers.seq").value == text
    injecting(at, on=False)
    assert at.text_area(key="numbers.seq").value == text
    np.testing.assert_equal(figures(at), before)


@pytest.mark.parametrize(
    ("text", "value"), [("−3", -3.0), ("1e3", 1000.0), ("+0.125", 0.125), (" 70.5 ", 70.5), ("1000000", 1e6), ("0", 0)]
)
def test_a_typed_value_counts(text: str, value: float) -> None:
    at = injecting(opened(seq=TYPED, at="3"))
    at.text_input(key="numbers.value:text").set_value(text)
    settled(at)
    assert not at.error
    assert at.text_input(key="numbers.value:text").value == format_number(value)
    assert at.slider(key="numbers.value:slider").value == round(min(value, 1000))
    weights = expected("ssa", outlier=Outlier(value, 2)).weights[1, 0]
    np.testing.assert_allclose(drawn_weights(at, "ssa"), weights, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("abc", "item 1, 'abc', is not a number"),
        ("1,5", "one number is needed"),
        ("", "one number is needed"),
        ("nan", "NaN and infinity"),
        ("1e7", "too large; the limit is 1,000,000"),
    ],
)
def test_an_unreadable_value_is_said_and_changes_nothing(text: str, reason: str) -> None:
    at = injecting(opened(seq=TYPED, at="3", value="-70"))
    before = figures(at)
    at.text_input(key="numbers.value:text").set_value(text)
    settled(at)
    assert reason in said(at)
    assert "The value stays -70." in said(at)
    assert at.text_input(key="numbers.value:text").value == text  # to be mended, not retyped
    np.testing.assert_equal(figures(at), before)
    at.text_input(key="numbers.value:text").set_value("7")
    assert "stays" not in said(settled(at))
    assert at.session_state["numbers.value"] == 7.0


def test_slider_and_presets_set_the_value() -> None:
    at = injecting(opened(seq=TYPED, at="3"))
    assert at.pills[0].value == 70.0
    at.slider(key="numbers.value:slider").set_value(-400)
    settled(at)
    assert at.session_state["numbers.value"] == -400.0
    assert at.pills[0].value is None
    assert at.text_input(key="numbers.value:text").value == "-400"
    for preset in (-70.0, 1000.0):
        at.pills[0].set_value(preset)
        settled(at)
        assert at.session_state["numbers.value"] == preset
        assert at.text_input(key="numbers.value:text").value == format_number(preset)
        assert at.slider(key="numbers.value:slider").value == preset
    weights = expected("softmax", outlier=Outlier(1000.0, 2)).weights[1, 0]
    np.testing.assert_allclose(drawn_weights(at, "softmax"), weights, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("way", ["preset again", "slider", "Start over"])
def test_a_choice_takes_back_what_could_not_be_read(way: str) -> None:
    at = injecting(opened(seq=TYPED))
    at.text_input(key="numbers.value:text").set_value("abc")
    settled(at)
    if way == "preset again":
        at.pills[0].set_value(None)
        settled(at)
    elif way == "slider":
        at.slider(key="numbers.value:slider").set_value(71)
        settled(at)
    else:
        pressed(at, way)
    assert "stays" not in said(at)
    assert at.text_input(key="numbers.value:text").value == ("71" if way == "slider" else "70")


def test_replace_and_insert() -> None:
    at = injecting(opened(seq=TYPED, at="2"))
    assert figures(at)["mass"]["layout"]["meta"]["tokens"][:3] == ["0.5", "70", "2"]
    at.segmented_control(key="numbers.how").set_value("insert")
    settled(at)
    assert figures(at)["mass"]["layout"]["meta"]["tokens"][:4] == ["0.5", "70", "−1.25", "2"]
    position = at.slider(key="numbers.at")
    assert position.max == len(NUMBERS) + 1
    position.set_value(len(NUMBERS) + 1)
    settled(at)
    assert figures(at)["mass"]["layout"]["meta"]["tokens"][-2:] == ["1.5", "70"]
    at.segmented_control(key="numbers.how").set_value("replace")
    settled(at)
    assert at.session_state["numbers.at"] == len(NUMBERS)
    assert figures(at)["mass"]["layout"]["meta"]["tokens"][-2:] == ["3", "70"]


def test_the_position_follows_a_shrinking_sequence() -> None:
    at = injecting(opened(seq=TYPED, at="7"))
    typed(at, "1 2 3")
    assert at.slider(key="numbers.at").value == 3
    assert figures(at)["mass"]["layout"]["meta"]["tokens"] == ["1", "2", "70"]
    typed(at, "1")
    assert "Position 1, the only one." in said(at)
    assert figures(at)["mass"]["layout"]["meta"]["tokens"] == ["70"]


# Tasks and examples


def test_a_task_brings_its_example_unless_something_was_typed() -> None:
    at = opened()
    task = at.selectbox(key="numbers.task")
    task.set_value("some")
    settled(at)
    assert at.text_area(key="numbers.seq").value == first_example("some")
    typed(at, TYPED)
    at.selectbox(key="numbers.task").set_value("every")
    settled(at)
    assert at.text_area(key="numbers.seq").value == TYPED
    np.testing.assert_allclose(drawn_weights(at, "ssa"), expected("ssa").weights[1, 0], rtol=1e-6)


def test_architectures_are_those_that_are_shipped() -> None:
    at = opened()
    assert at.radio(key="numbers.arch").options == ["Attention only", "Transformer"]
    at.radio(key="numbers.arch").set_value("transformer")
    at.toggle(key="numbers.inject").set_value(True)
    assert "residual stream" in said(settled(at))
    at.toggle(key="numbers.inject").set_value(False)
    settled(typed(at, TYPED))
    weights = expected("ssa", variant="transformer").weights[1, 0]
    np.testing.assert_allclose(drawn_weights(at, "ssa"), weights, rtol=1e-5)
    assert "residual stream" not in said(at)  # what SSA cannot mend is said
    at.selectbox(key="numbers.task").set_value("linear")
    settled(at)
    assert at.radio(key="numbers.arch").options == ["Transformer"]


@pytest.mark.parametrize("task", ["every", "some", "linear"])
def test_every_example_is_one_click(task: str) -> None:
    at = opened(task=task)
    for label, text in EXAMPLES[task].items():
        pressed(at, label)
        assert at.text_area(key="numbers.seq").value == text
        assert not at.warning
        assert figures(at)


def test_a_random_sequence_follows_its_seed() -> None:
    at = opened(seed="3", length="5")
    pressed(at, "Draw")
    drawn = at.text_area(key="numbers.seq").value
    assert tuple(float(word) for word in drawn.split()) == inspect.random_numbers("every", 5, 3)
    pressed(at, "Next seed")
    assert at.session_state["numbers.seed"] == 4
    assert at.text_area(key="numbers.seq").value != drawn
    at.number_input(key="numbers.seed").set_value(3)
    pressed(settled(at), "Draw")
    assert at.text_area(key="numbers.seq").value == drawn


def test_linear_has_a_line() -> None:
    at = injecting(opened(task="linear", arch="transformer", seq=TYPED, at="3"))
    at.slider(key="numbers.a").set_value(2.0)
    at.slider(key="numbers.b").set_value(-1.0)
    settled(at)
    drawn = figures(at)
    assert "answers" not in drawn
    outlier, grid = Outlier(70.0, 2), np.linspace(-3, 3, 61)
    true, first, second, *_ = drawn["line"]["data"]
    np.testing.assert_allclose(true["y"], 2 * grid - 1, atol=1e-5)
    for scoring, line, error in zip(SCORED, (first, second), drawn["errors"]["data"], strict=False):
        reading = expected(scoring, outlier=outlier, task="linear", variant="transformer", function=(2.0, -1.0))
        np.testing.assert_allclose(drawn_weights(at, scoring), reading.weights[1, 0], rtol=1e-5)
        problem = Problem("linear", "labelled", NUMBERS, (2.0, -1.0), outlier)
        answers = inspect.predicted_line(model("linear", "transformer", scoring), problem, grid)
        np.testing.assert_allclose(line["y"], answers, rtol=1e-4, atol=1e-6)
        numbers = np.array([*NUMBERS[:2], 70.0, *NUMBERS[3:]])
        squares = (reading.predictions - (2 * numbers - 1)) ** 2
        np.testing.assert_allclose(np.maximum(error["y"], 1e-6), np.maximum(squares, 1e-6), rtol=1e-3)
    others = opened(seq=TYPED)
    assert not {"numbers.a", "numbers.b"} & {slider.key for slider in others.slider}


# Looking closer


def test_the_sweep_is_the_models_answer_to_each_value() -> None:
    at = injecting(opened(seq=TYPED, at="5", layer="0", head="1", view="sweep"))
    drawn = figures(at)
    values = np.logspace(0, 4, 41)
    places = range(0, 41, 8)
    wrong: dict[str, float | None] = {}
    for index, scoring in enumerate(SCORED):
        net = model(scoring=scoring)
        readings = {
            i: inspect.read(net, Problem("every", "numbers", NUMBERS, (), Outlier(float(values[i]), 4)))
            for i in range(41)
        }
        largest, mass, answer = (
            drawn[f"sweep_{name}"]["data"][index] for name in ("largest_weight", "contextual_mass", "answer")
        )
        np.testing.assert_allclose(largest["x"], values, rtol=1e-5)
        for i in places:
            top = readings[i].weights[0, 1, 4].max()
            assert largest["y"][i] == pytest.approx(top, abs=1e-5)
            assert mass["y"][i] == pytest.approx(1 - top, abs=1e-5)
            assert answer["y"][i] == pytest.approx(readings[i].predictions[4], abs=1e-5)
        # −1.25 came before, so True is wrong whatever the injected value is.
        wrong[scoring] = next((float(values[i]) for i in range(41) if readings[i].predictions[4] > 0.5), None)
    [sentence] = [text.value for text in at.markdown if text.value.startswith("A number at position 5 grows")]
    for scoring, value in wrong.items():
        if value is None:
            assert f"**{LABELS[scoring]}** never answers wrong" in sentence
        elif value == 1:
            assert f"**{LABELS[scoring]}** answers wrong already at **1**, the smallest tried" in sentence
        else:
            rounded = f"{float(f'{value:.3g}'):,g}".replace(",", "\N{NARROW NO-BREAK SPACE}")
            assert f"**{LABELS[scoring]}** first answers wrong at **{rounded}**" in sentence


def test_a_negative_value_is_swept_downwards() -> None:
    at = injecting(opened(seq=TYPED, at="5", value="-3", view="sweep"))
    drawn = figures(at)["sweep_largest_weight"]
    assert drawn["layout"]["meta"]["negative"] is True
    np.testing.assert_allclose(drawn["data"][0]["customdata"], -np.logspace(0, 4, 41), rtol=1e-5)


def test_the_table_of_heads() -> None:
    at = injecting(opened(seq=TYPED, at="5", view="table"))
    table = at.dataframe[0].value
    assert table["head"].tolist() == [f"L{layer} H{head}" for layer in range(2) for head in range(4)]
    for scoring in SCORED:
        rows = expected(scoring, outlier=Outlier(70.0, 4)).weights[:, :, 4].reshape(8, -1).astype(np.float64)
        entropy = -np.sum(rows * np.log(np.where(rows > 0, rows, 1)), axis=-1)
        for name, column in (
            ("largest weight", rows.max(axis=-1)),
            ("contextual mass", 1 - rows.max(axis=-1)),
            ("effective tokens", np.exp(entropy)),
            ("on the injected", rows[:, 4]),
            ("on the first", rows[:, 0]),
        ):
            np.testing.assert_allclose(table[f"{LABELS[scoring]}: {name}"], column, rtol=1e-4, atol=1e-6)
    assert "SSA: on the injected" not in injecting(at, on=False).dataframe[0].value


def test_the_difference_map() -> None:
    at = opened(seq=TYPED, view="difference", layer="0", head="3")
    cells = figures(at)["difference"]["data"][0]["z"]
    softmax, ssa = (expected(scoring) for scoring in SCORED)
    change = ssa.weights[0, 3] - softmax.weights[0, 3]
    np.testing.assert_allclose(cells, np.where(ssa.visible, change, np.nan), atol=1e-6)
    assert np.nanmax(np.abs(cells)) > 0.01


def test_one_further_look_at_a_time() -> None:
    at = opened(seq=TYPED)
    assert at.dataframe
    at.segmented_control(key="numbers.view").set_value("sweep")
    assert "sweep_answer" in figures(settled(at))
    assert not at.dataframe
    at.segmented_control(key="numbers.view").set_value("difference")
    settled(at)
    assert "difference" in figures(at)
    assert not any(key.startswith("sweep") for key in figures(at))
    assert at.query_params["view"] == "difference"


# The address


def test_a_copied_address_shows_the_same() -> None:
    at = injecting(typed(opened(), "1,5; −2,5; 0; 3\n-0,25"))
    at.radio(key="numbers.scale").set_value("log")
    at.segmented_control(key="numbers.head").set_value(3)
    at.segmented_control(key="numbers.how").set_value("insert")
    at.segmented_control(key="numbers.view").set_value("difference")
    at.text_input(key="numbers.value:text").set_value("-0.1")
    at.slider(key="numbers.at").set_value(2)
    settled(at)
    fresh = opened(**at.query_params)
    assert fresh.query_params == at.query_params
    np.testing.assert_equal(figures(fresh), figures(at))
    assert figures(fresh)["mass"]["layout"]["meta"]["tokens"] == ["1.5", "−0.1", "−2.5", "0", "3", "−0.25"]
    assert fresh.text_area(key="numbers.seq").value == "1,5; −2,5; 0; 3\n-0,25"
    assert fresh.text_input(key="numbers.value:text").value == "-0.1"


def test_a_sequence_too_long_for_an_address_travels_as_the_numbers_that_are_shown() -> None:
    at = typed(opened(), "  ".join(f"{i / 8:.60f}" for i in range(97)))
    assert len(at.query_params["seq"]) <= 2000
    np.testing.assert_equal(figures(opened(**at.query_params)), figures(at))


def test_a_line_travels_in_the_address() -> None:
    at = opened(task="linear", arch="transformer", seq=TYPED)
    at.slider(key="numbers.a").set_value(0.3)
    settled(at)
    fresh = opened(**at.query_params)
    np.testing.assert_equal(figures(fresh), figures(at))
    assert fresh.slider(key="numbers.a").value == 0.3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "most"),
        ("arch", "rnn"),
        ("inject", "yes"),
        ("value", "nan"),
        ("value", "1e9"),
        ("at", "0"),
        ("how", "swap"),
        ("layer", "-1"),
        ("head", "1.5"),
        ("scale", "cubic"),
        ("row", "x"),
        ("a", "99"),
        ("seed", "-3"),
        ("view", "movie"),
        ("v", "99"),
        ("seq", "1 " * 10_001),
    ],
)
def test_a_bad_address_falls_back_and_says_so(name: str, value: str) -> None:
    default = figures(opened())
    at = opened(**{name: value})
    assert f"does not exist ({name}); the default is shown" in said(at)
    np.testing.assert_equal(figures(at), default)
    assert name not in at.query_params
    assert "does not exist" not in said(settled(at))


@pytest.mark.parametrize(("name", "value"), [("layer", "63"), ("head", "63"), ("row", "4000"), ("at", "4000")])
def test_a_place_beyond_what_is_there_becomes_the_last(name: str, value: str) -> None:
    at = opened(seq=TYPED, inject="1", **{name: value})
    assert at.session_state[f"numbers.{name}"] == {"layer": 1, "head": 3, "row": 7, "at": 7}[name]


def test_start_over_and_undo() -> None:
    at = injecting(typed(opened(), TYPED))
    at.radio(key="numbers.scale").set_value("log")
    before = figures(settled(at))
    pressed(at, "Start over")
    assert at.text_area(key="numbers.seq").value == first_example("every")
    assert at.query_params == {}
    np.testing.assert_equal(figures(at), figures(opened()))
    pressed(at, "Undo")
    assert at.text_area(key="numbers.seq").value == TYPED
    np.testing.assert_equal(figures(at), before)
    assert [button.disabled for button in at.button if button.label == "Undo"] == [True]


def test_two_visitors_do_not_meet() -> None:
    one, two = opened(seq=TYPED), opened()
    before = figures(two)
    injecting(typed(one, "9 8 7"))
    pressed(one, "Start over")
    typed(one, "4 5")
    settled(two)
    np.testing.assert_equal(figures(two), before)
    assert two.text_area(key="numbers.seq").value == first_example("every")
    assert [button.disabled for button in two.button if button.label == "Undo"] == [True]


def test_another_page_and_back() -> None:
    at = injecting(typed(opened(), TYPED))
    before = figures(at)
    at.switch_page("pages/models.py")
    settled(at)
    assert not at.text_area
    at.switch_page("app.py")
    settled(at)
    assert at.text_area(key="numbers.seq").value == TYPED
    np.testing.assert_equal(figures(at), before)


# Missing and broken checkpoints


@pytest.fixture
def own_models(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the models that a test may break; only the pair that it looks at."""
    root = tmp_path / "models"
    for scoring in SCORED:
        for variant in ("attention_only", "transformer"):
            name = checkpoint_name("every", variant, scoring)
            shutil.copytree(models / name, root / name)
    monkeypatch.setattr(cache, "MODELS", root)
    return root


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def test_a_missing_folder_is_named_and_the_other_model_is_shown(own_models: Path) -> None:
    shutil.rmtree(own_models / "every-attention_only-ssa")
    at = injecting(opened(seq=TYPED, at="3", view="sweep"))
    [error] = at.error
    assert "every-attention_only-ssa/config.json is missing" in unescaped(error)
    drawn = figures(at)
    assert {"attention_softmax", "overview_softmax", "mass", "answers", "sweep_answer"} <= set(drawn)
    assert not any("ssa" in key for key in drawn)
    weights = expected("softmax", outlier=Outlier(70.0, 2)).weights[1, 0]
    np.testing.assert_allclose(drawn_weights(at, "softmax"), weights, rtol=1e-6)
    at.segmented_control(key="numbers.view").set_value("difference")
    assert "A difference needs both models." in said(settled(at))
    at.segmented_control(key="numbers.view").set_value("table")
    assert settled(at).dataframe
    at.radio(key="numbers.arch").set_value("transformer")
    settled(at)
    assert not at.error
    assert "attention_ssa" in figures(at)


def test_a_cut_file_is_named_and_a_mended_one_found_at_once(own_models: Path) -> None:
    weights = own_models / "every-attention_only-softmax" / "model.safetensors"
    whole = weights.read_bytes()
    cut(weights)
    at = opened(seq=TYPED)
    [error] = at.error
    assert "every-attention_only-softmax/model.safetensors is 7 bytes shorter than its config says" in unescaped(error)
    assert "attention_softmax" not in figures(at)
    np.testing.assert_allclose(drawn_weights(at, "ssa"), expected("ssa").weights[1, 0], rtol=1e-6)
    weights.write_bytes(whole)
    settled(at)
    assert not at.error
    assert "attention_softmax" in figures(at)


def test_a_file_that_breaks_while_the_page_is_open_is_noticed(own_models: Path) -> None:
    at = opened(seq=TYPED)
    assert not at.error
    cut(own_models / "every-attention_only-ssa" / "model.safetensors")
    settled(at)
    [error] = at.error
    assert "model.safetensors is 7 bytes shorter" in unescaped(error)


def test_with_both_broken_the_page_still_reads_what_is_typed(own_models: Path) -> None:
    for scoring in SCORED:
        cut(own_models / f"every-attention_only-{scoring}" / "model.safetensors")
    at = injecting(opened(seq="1 abc 2"))
    assert [scoring in unescaped(error) for error, scoring in zip(at.error, SCORED, strict=True)] == [True, True]
    assert "item 2, 'abc', is not a number" in said(at)
    assert figures(at) == {}
    assert at.text_area(key="numbers.seq").value == "1 abc 2"
    at.selectbox(key="numbers.task").set_value("linear")  # whose models are missing altogether
    settled(at)
    assert sum("config.json is missing" in unescaped(error) for error in at.error) == 2
    at.selectbox(key="numbers.task").set_value("every")
    at.radio(key="numbers.arch").set_value("transformer")
    settled(at)
    assert "attention_ssa" in figures(at)


# What an attack found


def test_undo_brings_back_step_by_step_and_no_more() -> None:
    at = settled(typed(opened(), TYPED))
    pressed(at, "Draw")
    first = at.text_area(key="numbers.seq").value
    pressed(at, "Next seed")
    assert at.text_area(key="numbers.seq").value not in (first, TYPED)
    at.toggle(key="numbers.inject").set_value(True)
    settled(at)
    pressed(at, "Undo")
    assert at.text_area(key="numbers.seq").value == first
    assert at.toggle(key="numbers.inject").value  # an undone sequence leaves everything else as it is
    pressed(at, "Undo")
    assert at.text_area(key="numbers.seq").value == TYPED
    [undo] = [button for button in at.button if button.label == "Undo"]
    assert undo.disabled


def test_start_over_twice_still_brings_the_typed_sequence_back() -> None:
    at = settled(typed(opened(), TYPED))
    pressed(at, "Start over")
    pressed(at, "Start over")
    pressed(at, "Undo")
    assert at.text_area(key="numbers.seq").value == TYPED


def test_a_page_that_was_left_in_mid_run_is_restored() -> None:
    at = settled(typed(opened(), TYPED))
    # What Streamlit leaves of a page that was left while its script ran: keys that are there, and empty.
    at.session_state["numbers.view"] = None
    at.session_state["numbers.seq"] = ""
    at.session_state["state:last page"] = "guide"
    settled(at)
    assert at.text_area(key="numbers.seq").value == TYPED
    assert at.session_state["numbers.view"] == "table"


@pytest.mark.parametrize("link", ["http://evil.co", "www.evil.co", "a@evil.co", "mailto:a@evil.co"])
def test_no_address_becomes_a_link(link: str) -> None:
    at = settled(typed(opened(), f"1 2 {link}"))
    [warning] = at.warning
    assert link not in warning.value
    assert link not in unescaped(warning)
    assert "evil" in warning.value


def test_a_negative_sweep_says_so() -> None:
    at = opened(inject="1", value="-70", view="sweep", v="1")
    [sentence] = [text.value for text in at.markdown if text.value.startswith("A number at position")]
    assert "grows from −1 to −10\N{NARROW NO-BREAK SPACE}000, in 41 steps" in sentence
