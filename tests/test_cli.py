"""The command line, called as a person calls it: what it prints, what it writes, how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from ssa_viz import checkpoints
from ssa_viz.cli import first_difference, main, train_config
from ssa_viz.train.presets import SHIPPED, shipped

ROOT = Path(__file__).resolve().parents[1]
TINY = [
    "--steps",
    "3",
    "--batch",
    "5",
    "--length",
    "7",
    "--layers",
    "1",
    "--heads",
    "3",
    "--width",
    "15",
    "--context",
    "13",
    "--warmup",
    "0",
]


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """`--threads` is the whole process's, so each test puts it back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint made by `train`; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("runs") / "tiny-ssa"
    assert main(["train", *TINY, "--scoring", "ssa", "--out", str(folder)]) == 0
    return folder


def copy_of(trained: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for file in trained.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence that the command fails with."""
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ssa-viz: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("ssa-viz: ").strip()


def usage_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_train_writes_a_checkpoint_and_tells_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "some-tiny"
    options = ["--task", "some", "--scoring", "ssa", "--seed", "11", "--initial", "n=2.5", "b=0.25", "--fixed", "n"]
    assert main(["train", *TINY, *options, "--out", str(folder)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{folder}\n"
    assert captured.err.splitlines()[-1].startswith("step 3/3  loss ")
    loaded = checkpoints.load(folder)
    run = loaded.config.train
    assert (run.task, run.prompt_format, run.seed, run.steps, run.batch, run.length) == ("some", "numbers", 11, 3, 5, 7)
    assert (run.model.layers, run.model.heads, run.model.width, run.model.context) == (1, 3, 15, 13)
    assert run.model.initial == {"n": 2.5, "b": 0.25}
    assert run.model.learnable == {"n": False}
    [n], [b] = loaded.config.scoring["n"], loaded.config.scoring["b"]
    assert n == pytest.approx([2.5] * 3)  # fixed
    assert b == pytest.approx([0.25] * 3, rel=0.1)
    assert b != pytest.approx([0.25] * 3, rel=1e-6)  # learned
    assert loaded.metrics["train_seconds"] >= 0
    assert 0 <= loaded.metrics["in_distribution"] <= 1


def test_the_default_folder_names_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", *TINY, "--seed", "2"]) == 0
    assert capsys.readouterr().out == f"{Path('runs/every-attention_only-softmax-2')}\n"
    assert (tmp_path / "runs/every-attention_only-softmax-2/config.json").exists()


def test_an_existing_checkpoint_is_kept_unless_forced(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy_of(trained, tmp_path / "kept")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    command = ["train", *TINY, "--seed", "7", "--out", str(folder)]
    assert failure(capsys, *command) == f"{folder} already holds a checkpoint; choose another --out, or add --force"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert main([*command, "--force"]) == 0
    assert checkpoints.load(folder).config.train.seed == 7


def test_evaluate_prints_the_card(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(trained)]) == 0
    printed = json.loads(capsys.readouterr().out)
    saved = json.loads((trained / "metrics.json").read_text(encoding="utf-8"))
    assert printed.pop("name") == "tiny-ssa"
    del saved["train_seconds"]
    assert printed == saved
    assert set(printed["injected"]) == {"70", "-70", "1000"}


def test_check_compares_with_the_saved_card(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = copy_of(trained, tmp_path / "changed")
    card = json.loads((changed / "metrics.json").read_text(encoding="utf-8"))
    card["injected"]["70"]["at"] += 1e-3
    (changed / "metrics.json").write_text(json.dumps(card), encoding="utf-8")
    assert main(["evaluate", "--check", str(trained)]) == 0
    assert capsys.readouterr().out == f"{trained}: same as its card\n"
    assert main(["evaluate", "--check", str(changed), str(trained)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{changed}: DIFFERS from its card: card.injected.70.at is ")
    assert second == f"{trained}: same as its card"
    assert main(["evaluate", "--save", str(changed)]) == 0
    assert main(["evaluate", "--check", str(changed)]) == 0
    assert "train_seconds" in json.loads((changed / "metrics.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("measured", "saved", "expected"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 * (1 + 1e-8)]}, None),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.25]}, "card.a[1] is 2.0 and was 2.25"),
        ({"a": None, "b": 3}, {"a": None, "b": 3}, None),
        ({"a": 1.0}, {"a": None}, "card.a is 1.0 and was None"),
        ({"a": 1.0}, {"b": 1.0}, "card is {'a': 1.0} and was {'b': 1.0}"),
        ([1.0], [1.0, 2.0], "card is [1.0] and was [1.0, 2.0]"),
    ],
)
def test_cards_are_compared_to_six_digits(measured: object, saved: object, expected: str | None) -> None:
    assert first_difference(measured, saved) == expected


def test_list_tells_whole_checkpoints_from_broken_ones(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_of(trained, tmp_path / "whole")
    broken = copy_of(trained, tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-3])
    (tmp_path / "no checkpoint").mkdir()
    assert main(["list", str(tmp_path)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("broken: ")
    assert "broken/model.safetensors is 3 bytes shorter than its config says" in first
    assert second == "whole: every, attention_only, ssa, seed 0"


def test_list_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(tmp_path / "absent")]) == 0
    assert capsys.readouterr().out == f"no checkpoint in {tmp_path / 'absent'}\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--initial", "n=two"], "--initial takes NAME=NUMBER, not 'n=two'"),
        (["--initial", "n"], "--initial takes NAME=NUMBER, not 'n'"),
        (["--scoring", "ssa", "--initial", "n=0.5"], "n"),
        (["--scoring", "ssa", "--initial", "m=2"], "m"),
        (["--scoring", "softmax", "--fixed", "n"], "n"),
        (["--length", "14"], "14 numbers as 'numbers' are 14 tokens, more than the context of 13"),
        (["--seed", "-1"], "seed must be a whole number from 0 to"),
        (["--steps", "0"], "steps must be a whole number from 1 to"),
        (["--learning-rate", "nan"], "learning_rate must be a finite number above 0, not nan"),
        (["--width", "16"], r"width (16) must be a multiple of heads (3)"),
        (["--task", "linear", "--prompt-format", "numbers"], "task 'linear' has no prompt format 'numbers'"),
        (["--task", "linear", "--shipped"], "no recipe is shipped for linear with attention_only"),
    ],
)
def test_an_impossible_run_is_one_sentence(
    options: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = failure(capsys, "train", *TINY, *options, "--out", str(tmp_path / "none"))
    assert sentence in said
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_name_a_checkpoint_is_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = failure(capsys, "train", "--steps", "2000000000", "--out", str(tmp_path / "my run"))
    assert "my run cannot name a checkpoint" in said


def test_a_missing_checkpoint_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "absent/config.json is missing" in failure(capsys, "evaluate", str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "command"),
        (["fly"], "invalid choice: 'fly'"),
        (["train", "--task", "most"], "invalid choice: 'most'"),
        (["train", "--steps", "many"], "invalid int value: 'many'"),
        (["evaluate"], "folder"),
        (["evaluate", "--check", "--save", "x"], "not allowed with"),
        (["--threads", "0", "list"], "--threads"),
    ],
)
def test_bad_usage_exits_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in usage_error(capsys, *arguments)


def options_of(task: str, variant: str, scoring: str, seed: int, **more: object) -> dict[str, object]:
    base = {"task": task, "variant": variant, "scoring": scoring, "seed": seed}
    return {**base, "shipped": True, "initial": [], "fixed": [], **more}


@pytest.mark.parametrize(("task", "variant"), SHIPPED)
@pytest.mark.parametrize("scoring", ["softmax", "ssa"])
def test_shipped_is_the_recipe_and_an_option_changes_one_thing(task: str, variant: str, scoring: str) -> None:
    recipe = shipped(task, variant, scoring, 3)
    assert train_config(options_of(task, variant, scoring, 3)) == recipe
    shorter = train_config(options_of(task, variant, scoring, 3, steps=17))
    assert shorter.steps == 17
    assert shorter.model == recipe.model
    assert shorter.batch == recipe.batch


def test_the_module_is_the_command(trained: Path) -> None:
    command = [sys.executable, "-m", "ssa_viz", "evaluate", str(trained / "absent")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("ssa-viz: tiny-ssa/absent/config.json is missing")
