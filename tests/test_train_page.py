"""The Train page without a browser: the form, what it starts, and that what is drawn is what was recorded."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from ssa_viz import checkpoints, jobs
from ssa_viz.figures.palette import LIGHT
from ssa_viz.figures.training import MOST_POINTS, Course, training
from ssa_viz.jobs import Records, estimate
from ssa_viz.jobs import folder as run_folder
from ssa_viz.jobs.status import FINISHED, PAUSED, QUEUED
from ssa_viz.train.presets import PRESETS
from ssa_viz.ui import cache
from ssa_viz.ui.train import live, measure
from tests.browser import ROOT
from tests.test_jobs import killed_after
from tests.test_lab_page import figure, numbers, press, ran, text

SMALL = {
    "steps": "30", "width": "8", "heads": "2", "layers": "1", "length": "7", "context": "9", "batch": "4",
    "warmup": "0",
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs of its own, that nobody starts, and no measuring in the background."""
    monkeypatch.setattr(cache, "RUNS", tmp_path)
    monkeypatch.setattr("ssa_viz.jobs.queue._launch", lambda folder, status: None)
    monkeypatch.setattr(measure, "ask", lambda *args, **options: estimate.Estimate(61.0, 20.0, 300.0))
    return tmp_path


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.switch_page("pages/train.py")
    for name, value in {**address, "v": "1"}.items():
        app.query_params[name] = value
    return ran(app)


def errors(app: AppTest) -> list[str]:
    return [each.value.replace("\\", "") for each in app.error]


def button(app: AppTest, key: str) -> Any:
    (found,) = [each for each in app.button if each.key == key]
    return found


def field(app: AppTest, label: str) -> Any:
    (found,) = [each for each in [*app.text_input, *app.selectbox] if each.label == label]
    return found


def trained(app: AppTest, root: Path) -> list[Path]:
    """Press Train, and do what the processes would."""
    button(app, "train_start").click()
    ran(app)
    folders = [each.folder for each in jobs.runs(root)][::-1]
    for folder in folders:
        assert jobs.work(folder).state == FINISHED
    return folders


def test_first_view_is_the_classroom_and_starts_nothing(quiet: Path) -> None:
    app = opened()
    assert field(app, "Steps").value == "800"
    assert button(app, "train_start").label == "Train 2 models"
    assert "Nothing has been trained here yet" in text(app)
    assert errors(app) == []
    assert jobs.runs(quiet) == []
    assert app.query_params == {}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("width", "63", "Width (63) must be a multiple of heads (4)"),
        ("steps", "0", "Steps must be a whole number from 1"),
        ("steps", "1e20", "This number is too large, or none at all."),
        ("steps", "12.5", "A whole number is needed."),
        ("batch", "many", "A number is needed, with a point before its decimals, not 'many'."),
        ("rate", "nan", "This number is too large, or none at all."),
        ("rate", "0", "Learning_rate must be a finite number above 0, not 0"),
        ("rate", "0,1", "A number is needed, with a point before its decimals, not '0,1'."),
        ("length", "42", "42 numbers as 'numbers' are 42 tokens, more than the context of 41"),
        ("first", "41", "First_length (41) must be at most length (40), or 0 for no curriculum"),
        ("layers", "1000", "Layers must be a whole number from 1 to"),
        ("sigma", "-1", "Input_std must be a finite number above 0"),
        ("seeds", "1 x", "Seeds are whole numbers from 0, separated by spaces."),
        ("seeds", "", "At least one seed is needed."),
        ("seeds", "0 1 2 3 4 5 6 7 8 9 10", "2 functions with 11 seeds are 22 runs, more than the 20"),
        ("threads", "0", "Threads must be from 1 to 1024, not 0"),
        ("ssa.n", "0.5", "N must be a number from 1"),
    ],
)
def test_what_cannot_be_is_refused_beside_its_field(name: str, value: str, sentence: str) -> None:
    app = opened(**{name: value})
    said = errors(app)
    assert len(said) == 1
    assert said[0].startswith(sentence)
    assert button(app, "train_start").disabled


def test_no_function_is_refused() -> None:
    app = opened(f="")
    assert errors(app) == ["Choose at least one scoring function."]


def test_a_preset_and_a_task_fill_the_form() -> None:
    app = opened()
    app.segmented_control[0].set_value("paper")
    ran(app)
    for label, value in {"Layers": "12", "Heads": "8", "Width": "256", "Steps": "500001", "First length": "11"}.items():
        assert field(app, label).value == value
    assert errors(app) == []
    app.selectbox[0].set_value("linear")
    ran(app)
    assert field(app, "Prompts").value == "labelled"
    assert errors(app) == []
    assert app.query_params["preset"] == "paper"


def test_the_estimate_is_told_for_all_runs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSA_VIZ_RUNS_AT_ONCE", "2")
    app = opened(seeds="0 1", steps="801")  # four runs of 61 seconds, two at a time
    for _ in range(100):
        if "measured just now" in text(app):
            break
        ran(app)
    assert "About 2 minutes, measured just now on this machine, and 600 MB memory." in text(app)


def test_train_queues_one_run_for_each_function_and_seed_with_the_same_data(quiet: Path) -> None:
    app = opened(**SMALL, seeds="3 4", **{"ssa.n": "2", "ssa.b.learns": "0"})
    button(app, "train_start").click()
    button(app, "train_start").click()  # a double click
    ran(app)
    runs = [each.run for each in jobs.runs(quiet)]
    assert sorted((run.train.model.scoring, run.train.seed) for run in runs if run) == [
        ("softmax", 3), ("softmax", 4), ("ssa", 3), ("ssa", 4),
    ]  # fmt: skip
    ssa = next(run.train for run in runs if run and run.train.model.scoring == "ssa")
    assert ssa.model.initial == {"n": 2.0}
    assert ssa.model.learnable == {"b": False}
    assert (ssa.steps, ssa.batch, ssa.model.width, ssa.length) == (30, 4, 8, 7)
    assert len({run.comparison for run in runs if run}) == 1
    assert html(app).count("Waiting for a run before it to end") == 8  # on the cards and on the shelf
    ran(app)
    assert len(jobs.runs(quiet)) == 4


def test_a_finished_comparison_draws_what_was_recorded(quiet: Path) -> None:
    app = opened(**SMALL)
    folders = trained(app, quiet)
    ran(app)
    records = [Records(folder) for folder in folders]
    for each in records:
        each.update()
    lines = {line["name"]: line for line in figure(app, "train_loss")["data"]}
    assert list(lines) == ["Softmax", "SSA"]
    for record, name in zip(records, lines, strict=True):
        np.testing.assert_allclose(numbers(lines[name]["x"]), [r["step"] for r in record.trained])
        np.testing.assert_allclose(numbers(lines[name]["y"]), [r["loss"] for r in record.trained])
    shares = {line["name"]: numbers(line["y"]) for line in figure(app, "train_outlier")["data"]}
    np.testing.assert_allclose(shares["SSA"], [100 * r["outlier_error"] for r in records[1].probed])
    last = records[0].probed[-1]
    assert f"Wrong from an injected 70 on: Softmax **{last['outlier_error']:.2%}**" in text(app)
    key = "".join(c if c.isalnum() else "_" for c in folders[1].name)
    drawn = numbers(figure(app, f"train_attention_{key}")["data"][0]["z"])
    picture = jobs.probe_at(folders[1], 30)
    np.testing.assert_allclose(drawn[np.tril_indices(7)], picture.weights[0, 0][np.tril_indices(7)], rtol=1e-6)


def test_the_slider_goes_back_in_time(quiet: Path) -> None:
    app = opened(**SMALL, f="ssa")
    [folder] = trained(app, quiet)
    ran(app)
    app.select_slider[0].set_value(0)
    ran(app)
    key = "".join(c if c.isalnum() else "_" for c in folder.name)
    drawn = figure(app, f"train_attention_{key}")
    assert "step 0" in json.dumps(drawn["layout"])
    before = jobs.probe_at(folder, 0).weights[0, 0][np.tril_indices(7)]
    np.testing.assert_allclose(numbers(drawn["data"][0]["z"])[np.tril_indices(7)], before, rtol=1e-6)
    assert not np.allclose(before, jobs.probe_at(folder, 30).weights[0, 0][np.tril_indices(7)], rtol=1e-3)


def test_pause_and_resume_from_the_page(quiet: Path) -> None:
    app = opened(**SMALL, f="ssa")
    button(app, "train_start").click()
    ran(app)
    [folder] = [each.folder for each in jobs.runs(quiet)]
    press(app, "Pause")
    assert jobs.read_status(folder).state == PAUSED
    assert "Paused · step 0 of 30" in text(app)
    press(app, "Resume")
    assert jobs.read_status(folder).state == QUEUED
    run_folder.write_run(folder, dataclasses.replace(jobs.read_run(folder), snapshot_seconds=0.0))
    killed_after(folder, 12)
    ran(app)
    assert "Interrupted resume it, and it goes on from its last saved state" in html(app)
    press(app, "Stop and keep")
    jobs.work(folder)
    ran(app)
    assert "Stopped what it had learned is kept" in html(app)
    assert checkpoints.load(folder).metrics["stopped_at_step"] == 12


def html(app: AppTest) -> str:
    """What the cards say."""
    return "\n".join(each.proto.body for each in app.get("html")) + text(app)


def test_a_finished_run_opens_in_numbers(quiet: Path) -> None:
    app = opened(**SMALL)
    folders = trained(app, quiet)
    ran(app)
    [link] = [each.proto for each in app.get("page_link") if "Open these in Numbers" in each.proto.label]
    ids = [f"runs/{folder.name}" for folder in folders]
    assert "inject=1" in link.query_string
    numbers_page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    for name, value in {"m": ",".join(ids), "inject": "1", "seq": "1 2 -1 3", "at": "2", "v": "1"}.items():
        numbers_page.query_params[name] = value
    ran(numbers_page)
    [chosen] = [each for each in numbers_page.multiselect if each.label == "Models"]
    assert chosen.value == ids
    assert set(ids) < set(chosen.options) | set(ids)
    assert len([c for c in numbers_page.get("plotly_chart") if "attention_" in c.proto.id]) == 2


def test_numbers_compares_up_to_four_and_says_what_does_not_fit(quiet: Path) -> None:
    trained(opened(**SMALL, f="ssa"), quiet)
    [own] = [f"runs/{each.id}" for each in jobs.runs(quiet)]
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.query_params["m"] = f"every-attention_only-ssa,every-attention_only-softmax,{own},nonsense"
    app.query_params["v"] = "1"
    ran(app)
    [chosen] = [each for each in app.multiselect if each.label == "Models"]
    assert chosen.value == ["every-attention_only-ssa", "every-attention_only-softmax", own]
    assert any("cannot stand beside the other model" in sentence for sentence in errors(app))


def test_a_finished_run_is_in_the_lab_and_among_the_models(quiet: Path) -> None:
    app = opened(**SMALL, f="ssa")
    [folder] = trained(app, quiet)
    app.switch_page("pages/models.py")
    ran(app)
    assert "Your own runs" in [each.value for each in app.header]
    assert any(f"{folder.name} · seed 0" in each.proto.body for each in app.get("html"))
    app.switch_page("pages/scoring.py")
    ran(app)
    [models] = [each for each in app.selectbox if each.key == "lab_model"]
    assert f"runs/{folder.name}" in models.options


def test_numbers_says_where_rows_have_any_sum() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    for name, value in {"m": "every-attention_only-relu,every-attention_only-ssa", "inject": "1", "v": "1"}.items():
        app.query_params[name] = value
    ran(app)
    cards = [
        each.proto.body for each in app.get("html") if "ssa-card" in each.proto.body and "row of" in each.proto.body
    ]
    assert ["Rows of this function do not sum to 1" in card for card in cards] == [True, False]
    assert "Largest weight" in cards[0]


def test_rename_duplicate_discard_and_undo(quiet: Path) -> None:
    app = opened(**SMALL, f="ssa", seeds="5", **{"ssa.n": "2.5"})
    [folder] = trained(app, quiet)
    ran(app)
    key = "".join(c if c.isalnum() else "_" for c in folder.name)
    [name] = [each for each in app.text_input if each.key == f"name_{key}"]
    name.set_value("*mine* <b>")
    ran(app)
    press(app, "Rename")
    assert jobs.listed(folder).name == "*mine* <b>"
    assert "<b>" not in "".join(each.proto.body for each in app.get("html"))
    fresh = opened()
    press(fresh, "Duplicate with changes")
    assert field(fresh, "Steps").value == "30"
    assert field(fresh, "Seeds").value == "5"
    assert field(fresh, "n starts from").value == "2.5"
    assert fresh.multiselect[0].value == ["ssa"]
    assert button(app, f"discard_{key}").disabled
    [sure] = [each for each in app.checkbox if each.key == f"sure_{key}"]
    sure.check()
    ran(app)
    button(app, f"discard_{key}").click()
    ran(app)
    assert jobs.runs(quiet) == []
    button(app, "train_undo").click()
    ran(app)
    assert [each.id for each in jobs.runs(quiet)] == [folder.name]


def test_a_folder_that_cannot_be_written_to_is_told(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(**SMALL, f="ssa")
    trained(app, quiet)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ssa_viz.jobs.control.write_status", full)
    button(app, "train_start").click()
    ran(app)
    assert any("no space left on device" in sentence for sentence in errors(app))
    monkeypatch.setenv("SSA_VIZ_RUNS_AT_ONCE", "none")
    assert "SSA_VIZ_RUNS_AT_ONCE must be a whole number above 0, not 'none'" in text(opened())


def test_a_broken_run_does_not_break_the_page(quiet: Path) -> None:
    folder = quiet / "broken"
    folder.mkdir()
    (folder / "run.json").write_text("{")
    app = opened()
    assert "is damaged" in text(app)


def test_the_address_holds_what_differs_and_bad_values_are_told() -> None:
    app = opened(steps="31", task="some", preset="gigantic", f="ssa,relu")
    assert field(app, "Steps").value == "31"
    assert "The address asked for something that does not exist (preset)" in text(app)
    assert app.query_params["steps"] == "31"
    assert app.query_params["f"] == "ssa,relu"


def test_curves_are_straight_between_records_and_thinned() -> None:
    courses = {"a": Course([0, 10], [0.0, 1.0], "#000000"), "b": Course([5], [3.0], "#111111")}
    drawn = training(courses, title="t", up="u", steps=20, palette=LIGHT)
    a, b = drawn.data
    np.testing.assert_allclose(a["x"], [0, 5, 10])
    np.testing.assert_allclose(a["y"], [0, 0.5, 1])
    assert [math.isnan(value) for value in b["y"]] == [True, False, True]
    long = Course(list(range(10_000)), [float(i) for i in range(10_000)], "#000000")
    [line] = training({"long": long}, title="t", up="u", steps=10_000, palette=LIGHT).data
    assert len(line["x"]) == MOST_POINTS
    assert line["x"][-1] == 9999
    np.testing.assert_allclose(line["x"], line["y"])


def test_only_what_is_new_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {}
    monkeypatch.setattr(live.st, "session_state", session)
    held: list[float] = []
    for count in (3, 3, 4, 9, 9, 9, 9, 9, 40):
        sent = live._new("k", Course(list(range(count)), [float(i) for i in range(count)], "#000000"))
        assert sent["from"] <= len(held)
        held[sent["from"] :] = sent["values"]
        assert held == [float(i) for i in range(count)]
    assert sent["from"] == 9
    live._send_whole()
    assert live._new("k", Course([0, 1], [0.0, 1.0], "#000000"))["from"] == 0


def test_every_preset_makes_runs_for_every_task() -> None:
    for preset in PRESETS.values():
        for task in ("every", "some", "linear"):
            for scoring in ("softmax", "ssa"):
                run = preset.recipe(task, scoring, 1)
                assert (run.task, run.model.scoring, run.seed) == (task, scoring, 1)
