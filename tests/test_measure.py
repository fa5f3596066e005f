"""Measuring, with a model that answers by a known rule, against loops over the prompts it was shown."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ssa_viz.errors import InvalidInputError, UnknownNameError
from ssa_viz.evaluate import measure
from ssa_viz.evaluate.measure import Measures
from ssa_viz.model import LayerTrace, ModelConfig, Trace, build
from ssa_viz.model.decoder import Output
from ssa_viz.tasks import Outlier, Shift

LAYERS, HEADS, LENGTH = 2, 3, 7
SEQUENCES = 307  # more than one chunk, and the last one is not full


class Rule(nn.Module):
    """Answers by `answer`, (B, T) → (B, T), and keeps what it was shown and what it weighed."""

    def __init__(self, answer: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.config = ModelConfig(layers=LAYERS, heads=HEADS, width=15)
        self.answer = answer
        self.shown: list[list[float]] = []
        self.weighed: list[Tensor] = []

    def forward(self, numbers: Tensor, *, real: Tensor | None = None, trace: bool = False) -> Output:
        batch, tokens = numbers.shape
        self.shown += numbers.tolist()
        if not trace:
            return Output(self.answer(numbers), None)
        visible = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        sizes = torch.arange(1, LAYERS * HEADS + 1).view(LAYERS, 1, HEADS, 1, 1) * numbers.sin()[:, None, None]
        logits = sizes.expand(LAYERS, batch, HEADS, tokens, tokens)
        weights = logits.masked_fill(~visible, -torch.inf).softmax(dim=-1)
        self.weighed.append(weights)
        nothing = torch.zeros(1)
        layers = tuple(LayerTrace(x, w, nothing, "torch") for x, w in zip(logits, weights, strict=True))
        said = self.answer(numbers)
        return Output(said, Trace(layers, (nothing,) * (LAYERS + 1), visible, said))


def always(value: float) -> Rule:
    return Rule(lambda numbers: torch.full_like(numbers, value))


def run(model: nn.Module, task: str = "every", prompt_format: str = "numbers", **changes: Any) -> Measures:
    options = {"length": LENGTH, "sequences": SEQUENCES, "seed": 0} | changes
    return measure(model, task, prompt_format, **options)  # type: ignore[arg-type]


def errors(rows: list[list[float]], task: str, says: Callable[[float], bool]) -> list[list[float]]:
    """Right (0) or wrong (1) at each position, if the answer is what `says` makes of the last number."""
    ask = all if task == "every" else any
    return [[float(says(row[i]) != ask(x > 0 for x in row[: i + 1])) for i in range(len(row))] for row in rows]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def flat(rows: list[list[float]], start: int = 0) -> list[float]:
    return [value for row in rows for value in row[start:]]


@pytest.mark.parametrize("task", ["every", "some"])
@pytest.mark.parametrize("sigma", [1.0, 9.0])
def test_error_in_distribution_and_shifted(task: str, sigma: float) -> None:
    model = Rule(lambda numbers: numbers)  # says True where the last number is positive
    found = run(model, task, shift=Shift(input_std=sigma))
    assert len(model.shown) == SEQUENCES
    wrong = errors(model.shown, task, lambda x: x > 0)
    assert found.error == pytest.approx(mean(flat(wrong)))
    assert found.by_position.tolist() == pytest.approx([mean([row[i] for row in wrong]) for i in range(LENGTH)])
    assert 0.05 < found.error < 0.5
    for name in ("at", "at_settled", "after", "start", "largest_weight", "mass_on_outlier"):
        assert getattr(found, name) is None


@pytest.mark.parametrize("insert", [False, True])
@pytest.mark.parametrize("position", [0, 2, 5])
@pytest.mark.parametrize("task", ["every", "some"])
def test_errors_around_an_outlier(task: str, position: int, insert: bool) -> None:
    value = 70.0 if task == "every" else -70.0
    model = Rule(lambda numbers: numbers)
    found = run(model, task, shift=Shift(outlier=Outlier(value, position, insert)))
    wrong = errors(model.shown, task, lambda x: x > 0)
    assert all(row[position] == value for row in model.shown)
    assert len(found.by_position) == LENGTH + insert
    assert found.error == pytest.approx(mean(flat(wrong)))
    assert found.at == pytest.approx(mean([row[position] for row in wrong]))
    assert found.after == pytest.approx(mean(flat(wrong, position + 1)))
    assert found.start == pytest.approx(mean(flat(wrong, position)))
    decisive = (lambda x: x <= 0) if task == "every" else (lambda x: x > 0)
    before = [any(map(decisive, row[:position])) for row in model.shown]
    chosen = [row[position] for row, already in zip(wrong, before, strict=True) if already]
    if position == 0:
        assert chosen == []
        assert found.at_settled is None
    else:
        assert found.at_settled == pytest.approx(mean(chosen)) == 1.0  # the last number alone misleads


def test_outlier_at_the_end_has_nothing_after_it() -> None:
    found = run(always(-1.0), shift=Shift(outlier=Outlier(70.0, LENGTH - 1)))
    assert found.after is None
    assert found.start == found.at == found.by_position[-1]


@pytest.mark.parametrize(("prompt_format", "step"), [("numbers", 1), ("labelled", 2)])
def test_weights_at_the_outlier(prompt_format: str, step: int) -> None:
    model = always(1.0)
    found = run(model, prompt_format=prompt_format, shift=Shift(outlier=Outlier(70.0, 2)))
    weights = torch.cat(model.weighed, dim=1).double().numpy()
    assert weights.shape[1] == SEQUENCES
    token = 2 * step
    assert found.largest_weight is not None
    assert found.mass_on_outlier is not None
    for layer in range(LAYERS):
        for head in range(HEADS):
            rows = weights[layer, :, head]
            largest = mean([float(max(row[token])) for row in rows])
            later = mean([float(row[q][token]) for row in rows for q in range(token + 1, row.shape[0])])
            assert found.largest_weight[layer, head] == pytest.approx(largest, rel=1e-5)
            assert found.mass_on_outlier[layer, head] == pytest.approx(later, rel=1e-5)


def test_labelled_answers_are_read_at_the_numbers() -> None:
    model = Rule(lambda numbers: numbers)
    found = run(model, prompt_format="labelled")
    rows = [row[::2] for row in model.shown]
    assert len(rows[0]) == LENGTH
    assert found.error == pytest.approx(mean(flat(errors(rows, "every", lambda x: x > 0))))


def test_linear_error_is_the_mean_square() -> None:
    model = always(0.5)
    found = run(model, "linear", "labelled", shift=Shift(2.0, 3.0, Outlier(10.0, 3)))
    at, everything = [], []
    for row in model.shown:
        # Two points of the prompt give its line, and with it the last answer, which the prompt leaves out.
        slope = (row[3] - row[1]) / (row[2] - row[0])
        answers = [*row[1::2], row[1] + slope * (row[-1] - row[0])]
        squares = [(answer - 0.5) ** 2 for answer in answers]
        at.append(squares[3])
        everything += squares
    assert found.at == pytest.approx(mean(at), rel=1e-3)
    assert found.error == pytest.approx(mean(everything), rel=1e-3)
    assert found.at_settled is None


@pytest.mark.parametrize("task", ["every", "some"])
def test_a_constant_answer_does_not_look_good(task: str) -> None:
    """The share of True is ½ by construction: the first decisive place is uniform over 0…N."""
    for length in (5, 13, 40):
        false, true = (run(always(v), task, length=length, sequences=2003).error for v in (-1.0, 1.0))
        assert false + true == pytest.approx(1)
        assert false == pytest.approx(0.5, abs=0.04)


def test_the_same_seed_gives_the_same_numbers_and_leaves_the_global_state_alone() -> None:
    model = build(ModelConfig(layers=LAYERS, heads=HEADS, width=15, context=11), seed=0)
    options: dict[str, Any] = {"sequences": 29, "shift": Shift(outlier=Outlier(70.0, 2))}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first = run(model, **options)
    assert torch.equal(torch.get_rng_state(), state)
    again, other = run(model, **options), run(model, seed=1, **options)
    for name in ("error", "at", "at_settled", "after", "start"):
        assert getattr(first, name) == getattr(again, name)
    for name in ("by_position", "largest_weight", "mass_on_outlier"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.largest_weight, other.largest_weight)  # type: ignore[arg-type]
    assert first.largest_weight.shape == (LAYERS, HEADS)  # type: ignore[union-attr]


def test_what_cannot_be_measured_is_refused() -> None:
    model = build(ModelConfig(context=11), seed=0)
    with pytest.raises(InvalidInputError, match="1 to 11 tokens"):
        run(model, length=12)
    with pytest.raises(InvalidInputError, match="does not fit 7 numbers"):
        run(model, shift=Shift(outlier=Outlier(70.0, LENGTH)))
    with pytest.raises(UnknownNameError, match="unknown task 'most'"):
        run(model, "most")


def test_an_outlier_at_the_end_is_seen_by_no_later_row() -> None:
    found = run(Rule(lambda numbers: numbers), "every", shift=Shift(outlier=Outlier(70.0, LENGTH - 1)))
    assert found.mass_on_outlier is None
    assert found.largest_weight is not None


def test_no_sequence_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one sequence"):
        measure(build(ModelConfig(), 0), "every", "numbers", length=3, sequences=0, seed=1)
