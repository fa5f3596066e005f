"""All functions on all measures: what is clearly best, what cannot be compared, and what a constant answer scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssa_viz import checkpoints, cli
from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate import card
from ssa_viz.evaluate.card import CARD_SEED
from ssa_viz.evaluate.constant import constant_card
from ssa_viz.evaluate.functions import all_functions, by_width
from ssa_viz.model import ModelConfig, build
from ssa_viz.train import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
SEEDS = [0, 1, 2]


def made(error: float, weight: float = 0.5) -> dict[str, Any]:
    inside = {"at_settled": error, "from": error, "largest_weight": weight}
    return {
        "in_distribution": error,
        "wider_inputs": {"2": 2 * error, "10": error},
        "injected": {value: dict(inside) for value in ("70", "-70", "1000")},
    }


def entry(**errors: list[float]) -> dict[str, Any]:
    return {"seeds": SEEDS, "cards": {name: [made(e) for e in each] for name, each in errors.items()}}


def best(**errors: list[float]) -> str | None:
    return all_functions("every", entry(**errors)).measures[-1].best


def test_best_only_when_the_difference_exceeds_the_spread() -> None:
    # Means 2 and 10, spreads 1 and 1.
    assert best(softmax=[0.09, 0.10, 0.11], ssa=[0.01, 0.02, 0.03]) == "ssa"
    # Means 2 and 10 again, but one of them is spread by 9.5.
    assert best(softmax=[0.005, 0.10, 0.195], ssa=[0.01, 0.02, 0.03]) is None
    assert best(softmax=[0.1] * 3, ssa=[0.1] * 3) is None
    assert best(ssa=[0.01, 0.02, 0.03]) is None
    # Against the next one, not against the worst.
    assert best(softmax=[0.9] * 3, ssa=[0.01, 0.02, 0.03], relu=[0.02, 0.03, 0.04]) is None


def test_functions_without_all_seeds_are_left_out_and_the_order_is_the_registrys() -> None:
    found = all_functions("every", entry(relu=[0.1] * 3, ssa=[0.1] * 3, softmax=[0.1] * 3, sink=[0.1] * 2))
    assert found.names == ("softmax", "ssa", "relu")
    assert found.seeds == (0, 1, 2)


def test_a_largest_weight_is_not_compared_where_rows_have_any_sum() -> None:
    found = all_functions("every", entry(softmax=[0.1] * 3, relu=[0.1] * 3, sigmoid=[0.1] * 3, softpick=[0.1] * 3))
    [weight] = [measure for measure in found.measures if measure.path[-1] == "largest_weight"]
    assert {name for name, each in weight.found.items() if each is None} == {"relu", "sigmoid"}


def test_seeds_are_compared_one_by_one() -> None:
    found = all_functions("every", entry(softmax=[0.1, 0.2, 0.3], ssa=[0.1, 0.1, 0.4]))
    assert found.measures[-1].lower_than("ssa", "softmax") == (1,)
    assert found.measures[-1].lower_than("softmax", "ssa") == (2,)
    assert found.measures[-1].lower_than("softmax", "nobody") == ()


def test_by_width_starts_in_distribution() -> None:
    found = by_width(entry(ssa=[0.1, 0.2, 0.3]), "ssa")
    assert list(found) == [1.0, 2.0, 10.0]
    assert found[1.0].mean == pytest.approx(0.2)
    assert found[2.0].mean == pytest.approx(0.4)


@pytest.mark.parametrize("broken", [{}, {"seeds": [0]}, {"seeds": [0], "cards": []}, {"seeds": None, "cards": {}}])
def test_broken_entries_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        all_functions("every", broken)
    with pytest.raises(InvalidInputError):
        by_width(broken, "ssa")


@pytest.mark.parametrize("task", ["every", "some"])
def test_a_constant_answer_does_not_look_good(task: str) -> None:
    """The trap of the published evaluation, where always No makes no error. Here either answer is wrong half of the
    time, as the number that decides is equally likely at each place."""
    cards = [constant_card(task, "numbers", 40, answer=answer, sequences=4000) for answer in (True, False)]
    for each in cards:
        assert each["in_distribution"] == pytest.approx(0.5, abs=0.01)
        for error in each["wider_inputs"].values():
            assert error == pytest.approx(0.5, abs=0.01)
    assert cards[0]["in_distribution"] + cards[1]["in_distribution"] == pytest.approx(1.0)
    for value in ("70", "-70", "1000"):
        assert cards[0]["injected"][value]["from"] + cards[1]["injected"][value]["from"] == pytest.approx(1.0)
        # A positive number settles `some`, one that is not settles `every`: from there on one answer is always right.
        settles = (float(value) > 0) == (task == "some")
        assert (min(each["injected"][value]["from"] for each in cards) == 0) == settles


def test_a_constant_answer_is_measured_on_the_prompts_of_the_cards() -> None:
    """A model whose answer is forced gets the same card."""
    config = TrainConfig(model=ModelConfig(layers=1, heads=2, width=8, context=12), length=12)
    model = build(config.model, 0).eval()
    with torch.no_grad():
        model.read_out.weight.zero_()
        model.read_out.bias.fill_(1.0)
    measured = card(model, config, sequences=300)
    constant = constant_card("every", "numbers", 12, answer=True, sequences=300)
    assert measured["seed"] == CARD_SEED
    assert constant["in_distribution"] == pytest.approx(measured["in_distribution"], abs=1e-6)
    assert constant["wider_inputs"] == pytest.approx(measured["wider_inputs"], abs=1e-6)
    for value, each in constant["injected"].items():
        np.testing.assert_allclose(each["from"], measured["injected"][value]["from"], atol=1e-6)


def test_linear_has_no_constant_answer() -> None:
    with pytest.raises(InvalidInputError, match="'linear' has no constant answer"):
        constant_card("linear", "labelled", 16, answer=True)


def test_the_command_line_prints_the_pages_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["table", "--models", str(ROOT / "models"), "--task", "every"]) == 0
    lines = capsys.readouterr().out.splitlines()
    cards = json.loads((ROOT / "models" / "seeds.json").read_text())["every-attention_only"]["cards"]
    values = [100 * card["wider_inputs"]["10"] for card in cards["ssa"]]
    [row] = [line for line in lines if line.startswith("| SSA |")]
    column = [cell.strip() for cell in lines[0].split("|")].index("σ = 10")
    assert row.split("|")[column].strip() == f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}%"
    assert len(lines) == 2 + len(cards) + 2
    assert cli.main(["table", "--models", str(ROOT / "models")]) == 0
    assert "Linear: In distribution" in capsys.readouterr().out


def test_the_shipped_seeds_are_measured_again_to_the_last_digit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = TrainConfig(model=ModelConfig(layers=1, heads=2, width=8, context=9, scoring="ssa"), length=7)
    model = build(run.model, 3)
    measured = card(model, run)
    checkpoints.save(tmp_path / "every-attention_only-ssa", model, run, measured)
    entry = {"seeds": [0, 1], "shipped": {"ssa": 1}, "cards": {"ssa": [{}, measured]}}
    (tmp_path / "seeds.json").write_text(json.dumps({"every-attention_only": entry}))
    options = ["table", "--models", str(tmp_path), "--task", "every"]
    assert cli.main([*options, "--shipped"]) == 0
    kept = capsys.readouterr().out
    assert cli.main([*options, "--measure"]) == 0
    assert capsys.readouterr().out == kept
    (tmp_path / "seeds.json").write_text("{}")
    assert cli.main([*options, "--measure"]) == 1
    assert cli.main([*options, "--shipped"]) == 1
    assert "there are no numbers on every" in capsys.readouterr().err
