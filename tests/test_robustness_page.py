"""The Robustness page without a browser: its figures and table are the shipped seeds' own numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.ipc
import pytest
from streamlit.testing.v1 import AppTest

from ssa_viz.checkpoints import read_config
from ssa_viz.evaluate import grids as g
from ssa_viz.jobs.measuring import CANCELLED, DESK
from ssa_viz.scoring import SCORING
from ssa_viz.train.presets import SHIPPED
from ssa_viz.ui import cache
from ssa_viz.ui.robustness import maps
from tests.browser import ROOT
from tests.test_lab_page import figure, numbers, ran, text

SEEDS = json.loads((ROOT / "models" / "seeds.json").read_text(encoding="utf-8"))


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.switch_page("pages/robustness.py")
    for name, value in {**address, "v": "1"}.items():
        app.query_params[name] = value
    return ran(app)


@pytest.mark.parametrize(("task", "variant"), SHIPPED)
def test_every_pair_draws_its_own_seeds(task: str, variant: str) -> None:
    app = opened(of=f"{task}-{variant}", f="softmax,ssa")
    cards: dict[str, list[dict[str, Any]]] = SEEDS[f"{task}-{variant}"]["cards"]
    scale = 100 if task != "linear" else 1
    for kind in ("wider_inputs",) if task != "linear" else ("wider_inputs", "wider_functions"):
        lines = {line["name"]: line for line in figure(app, f"robustness_{kind}")["data"]}
        for name in ("softmax", "ssa"):
            line = lines[SCORING[name].label]
            np.testing.assert_allclose(numbers(line["x"])[0], 1)
            for sigma, drawn in zip(numbers(line["x"]), numbers(line["y"]), strict=True):
                own = [c["in_distribution"] if sigma == 1 else c[kind][f"{sigma:g}"] for c in cards[name]]
                np.testing.assert_allclose(drawn, scale * np.mean(own), rtol=1e-9)
        assert ("Constant answer" in lines) == (task != "linear")


def test_the_table_holds_all_functions_and_both_constant_answers() -> None:
    app = opened()
    cards = SEEDS["every-attention_only"]["cards"]
    table = app.dataframe[0].value
    labels = [SCORING[name].label for name in SCORING if name in cards]
    assert list(table.index) == [*labels, "Always yes", "Always no"]
    for name in cards:
        np.testing.assert_allclose(
            table.loc[SCORING[name].label, "From 70 on"],
            100 * np.mean([card["injected"]["70"]["from"] for card in cards[name]]),
        )
    # What is shown is not the means that it sorts by: equal ones can have other spreads.
    display = pyarrow.ipc.open_stream(app.dataframe[0].proto.arrow_data.styler.display_values).read_all().to_pandas()
    values = [100 * card["injected"]["-70"]["from"] for card in cards["ssa"]]
    column = display["From −70 on"]
    assert column["SSA"].startswith(f"{np.mean(values):.1f} ± ")
    assert column["Softmax"] == "0 ± 0%"
    assert column["Always no"] == "0%"
    assert table.loc["Always no", "In distribution"] == pytest.approx(50, abs=2)
    assert (display["At 70"]["Always yes"], display["At 70"]["Always no"]) == ("100%", "0%")
    assert f"{len(labels)} functions, 5 seeds each" in text(app)
    if "relu" in cards:
        assert np.isnan(table.loc["ReLU", "Weight at 70"])


def test_the_traps_are_told_and_numbers_are_one_click_away() -> None:
    app = opened(f="softmax,ssa")
    assert "Whoever always answers No makes no error" in text(app)
    [link] = [each.proto for each in app.get("page_link") if "Open these in Numbers" in each.proto.label]
    assert "every-attention_only-softmax%2Cevery-attention_only-ssa" in link.query_string.replace(",", "%2C")


def test_the_address_and_no_function_chosen() -> None:
    app = opened(of="some-transformer", f="ssa")
    assert app.query_params["of"] == "some-transformer"
    app = opened(of="nothing")
    assert "The address asked for something that does not exist (of)" in text(app)


def test_without_the_seeds_file_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MODELS", tmp_path)
    app = opened()
    assert "has nothing usable on these models" in text(app)


def test_one_table_of_all_tasks_and_one_of_the_shipped_seeds() -> None:
    app = opened(all="1", seeds="shipped")
    table = app.dataframe[0].value
    for task, variant in (("every", "attention_only"), ("some", "attention_only"), ("linear", "transformer")):
        entry = SEEDS[f"{task}-{variant}"]
        for name, seed in entry["shipped"].items():
            own = entry["cards"][name][entry["seeds"].index(seed)]["in_distribution"]
            cell = table.loc[SCORING[name].label, f"{task.capitalize()}: In distribution"]
            assert cell == pytest.approx(own * (1 if task == "linear" else 100), rel=1e-9)
    assert np.isnan(table.loc["Always yes", "Linear: In distribution"])
    assert app.query_params["seeds"] == "shipped"


def kept(folder: str, index: int) -> g.Measured:
    config = read_config(cache.MODELS / folder)
    found = maps.store().find(config, list(g.grids(config.train).values())[index])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("task", "variant", "index", "kind"),
    [
        ("every", "attention_only", 0, "sequences"),
        ("some", "transformer", 1, "from"),
        ("linear", "transformer", 0, "known"),
    ],
)
def test_the_drawn_maps_are_the_shipped_ones(task: str, variant: str, index: int, kind: str) -> None:
    pair = f"{task}-{variant}"
    app = opened(of=pair, map=("first", "value")[index], by=kind, rel="1")
    found = [kept(f"{pair}-{scoring}", index) for scoring in ("softmax", "ssa")]
    scale = found[0].variance if found[0].variance is not None else 1.0
    expected = [each.found["model"][kind] / scale for each in found]
    for key, values in zip(("map_a", "map_b"), expected, strict=True):
        drawn = figure(app, key)
        np.testing.assert_allclose(numbers(drawn["data"][0]["customdata"]), values, rtol=1e-6)
        assert drawn["layout"]["meta"]["ends"] == figure(app, "map_a")["layout"]["meta"]["ends"]
    change = numbers(figure(app, "map_difference")["data"][0]["z"])
    by_hand = expected[1] - expected[0] if task != "linear" else np.log10(expected[1] / expected[0])
    np.testing.assert_allclose(change, by_hand, rtol=1e-6, atol=1e-9)
    for who in found[0].rivals:
        drawn = figure(app, f"map_{who.replace(' ', '_')}")
        np.testing.assert_allclose(
            numbers(drawn["data"][0]["customdata"]), found[0].found[who][kind] / scale, rtol=1e-6
        )
    assert "fresh prompts in each cell" in text(app)


def test_a_map_that_is_missing_is_measured_at_a_press_and_then_comes_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = g.grids
    monkeypatch.setattr(maps, "grids", lambda run: usual(run, sequences=2))
    monkeypatch.setenv("SSA_VIZ_CACHE", str(tmp_path))
    app = opened(map="value", a="every-attention_only-ssa", b="every-attention_only-ssa")
    assert "has not been measured yet" in text(app)
    [button] = [each for each in app.button if each.label == "Measure"]
    button.click()
    ran(app)
    assert [each.label for each in app.button if each.label == "Cancel"] == ["Cancel"]
    config = read_config(cache.MODELS / "every-attention_only-ssa")
    doing = DESK.find(g.key(config, usual(config.train, sequences=2)["value_position"]))
    assert doing is not None
    assert doing.future is not None
    doing.future.result(120)
    ran(app)
    assert "has not been measured yet" not in text(app)
    assert len(numbers(figure(app, "map_a")["data"][0]["customdata"])) == 12
    assert len([*tmp_path.glob("maps/*.json")]) == 1
    assert not numbers(figure(app, "map_difference")["data"][0]["z"]).any()


def test_measuring_can_be_cancelled_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = g.grids
    monkeypatch.setattr(maps, "grids", lambda run: usual(run, sequences=50_000))
    monkeypatch.setenv("SSA_VIZ_CACHE", str(tmp_path))
    app = opened(a="every-attention_only-softmax", b="every-attention_only-ssa")
    next(each for each in app.button if each.label == "Measure").click()
    ran(app)
    cancels = [each for each in app.button if each.label == "Cancel"]
    assert len(cancels) == 2
    keys = [each.key.removeprefix("cancel_") for each in cancels]
    for key in keys:
        next(each for each in app.button if each.key == f"cancel_{key}").click()
        ran(app)
    for key in keys:
        doing = DESK.find(key)
        assert doing is not None
        assert doing.state == CANCELLED
        assert doing.future is not None
        doing.future.result(60)
    assert "has not been measured yet" in text(app)
    assert not [*tmp_path.rglob("*.json")]


def test_another_pair_brings_its_own_maps() -> None:
    app = opened(of="every-attention_only", a="every-attention_only-sink")
    assert app.selectbox(key="robustness.a").value == "every-attention_only-sink"
    app.segmented_control(key="robustness.of").set_value("every-transformer")
    ran(app)
    assert app.selectbox(key="robustness.a").value == "every-transformer-softmax"
    assert app.selectbox(key="robustness.b").value == "every-transformer-ssa"
