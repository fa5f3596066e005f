"""Looking inside a model, against prompts laid out by hand and numbers recomputed in float64."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ssa_viz import inspect
from ssa_viz.errors import InvalidInputError, NonFiniteError, UnknownNameError
from ssa_viz.inspect import Problem, Reading, Sweep
from ssa_viz.model import Decoder, ModelConfig, build
from ssa_viz.tasks import Outlier

L, H, E, CONTEXT = 2, 3, 15, 13
NUMBERS = (0.7, 1.25, -0.5, 0.0, 1.5, -2.0, 0.75)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost such small tensors more than they give."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=["softmax", "ssa"])
def model(request: pytest.FixtureRequest) -> Decoder:
    """Starting weights large enough that rows are far from uniform."""
    config = ModelConfig(layers=L, heads=H, width=E, context=CONTEXT, scoring=request.param, init="torch")
    built = build(config, seed=2).eval()
    with torch.no_grad():
        for block in built.blocks:
            block.attention.qkv.weight.mul_(3)
    return built


def asked(task: str = "every", prompt_format: str = "numbers", **changes: object) -> Problem:
    base = Problem(task, prompt_format, NUMBERS, (2.0, -1.0) if task == "linear" else ())
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def direct(model: Decoder, tokens: list[float]) -> tuple[NDArray[np.float32], torch.Tensor]:
    """Weights (L, H, Q, K) and raw predictions (T,) of one sequence of tokens."""
    with torch.no_grad():
        predictions, trace = model(torch.tensor([tokens]), trace=True)
    assert trace is not None
    return np.stack([layer.weights[0].numpy() for layer in trace.layers]), predictions[0]


def quantified(task: str, numbers: list[float]) -> list[float]:
    judge = all if task == "every" else any
    return [float(judge(x > 0 for x in numbers[: i + 1])) for i in range(len(numbers))]


@pytest.mark.parametrize("task", ["every", "some"])
@pytest.mark.parametrize(
    ("outlier", "read", "at"),
    [
        (None, list(NUMBERS), None),
        (Outlier(70.0, 2), [*NUMBERS[:2], 70.0, *NUMBERS[3:]], 2),
        (Outlier(-70.0, 2, insert=True), [*NUMBERS[:2], -70.0, *NUMBERS[2:]], 2),
        (Outlier(70.0, len(NUMBERS), insert=True), [*NUMBERS, 70.0], len(NUMBERS)),
    ],
)
def test_a_quantifier_is_read(
    model: Decoder, task: str, outlier: Outlier | None, read: list[float], at: int | None
) -> None:
    reading = inspect.read(model, asked(task, outlier=outlier))
    weights, raw = direct(model, read)
    count = len(read)
    np.testing.assert_array_equal(reading.tokens, np.float32(read))
    np.testing.assert_array_equal(reading.reads, np.arange(count))
    np.testing.assert_allclose(reading.weights, weights, rtol=1e-6)
    np.testing.assert_array_equal(reading.visible, np.tri(count, dtype=bool))
    np.testing.assert_allclose(reading.predictions, [sigmoid(x) for x in raw.tolist()], rtol=1e-5)
    truth = quantified(task, read)
    np.testing.assert_array_equal(reading.truth, truth)
    wrong = [float((x > 0) != bool(y)) for x, y in zip(raw.tolist(), truth, strict=True)]
    np.testing.assert_array_equal(reading.error, wrong)
    assert reading.outlier == at
    assert reading.focus == (count - 1 if at is None else at)


def test_labels_stand_between_the_numbers_of_a_labelled_prompt(model: Decoder) -> None:
    numbers = (1.0, -1.0, 2.0)
    reading = inspect.read(model, asked("every", "labelled", numbers=numbers, outlier=Outlier(70.0, 1)))
    np.testing.assert_array_equal(reading.tokens, [1, 1, 70, 1, 2])
    np.testing.assert_array_equal(reading.reads, [0, 2, 4])
    assert reading.outlier == reading.focus == 2  # the token, not the number
    assert inspect.read(model, asked("every", "labelled", numbers=numbers)).focus == 4


def test_a_line_is_read(model: Decoder) -> None:
    numbers = (1.0, -3.0, 0.5)
    reading = inspect.read(model, asked("linear", "labelled", numbers=numbers, outlier=Outlier(70.0, 1)))
    read = [1.0, 1.0, 70.0, 139.0, 0.5]  # f(x) = 2x − 1
    weights, raw = direct(model, read)
    np.testing.assert_array_equal(reading.tokens, read)
    np.testing.assert_allclose(reading.weights, weights, rtol=1e-6)
    np.testing.assert_array_equal(reading.truth, [1, 139, 0])
    np.testing.assert_allclose(reading.predictions, raw[[0, 2, 4]], rtol=1e-6)
    np.testing.assert_allclose(reading.error, [(raw[i] - y) ** 2 for i, y in ((0, 1), (2, 139), (4, 0))], rtol=1e-5)


def test_logits_give_the_weights_by_the_formula() -> None:
    """Softmax in float64 over the visible keys; hidden ones weigh nothing."""
    model = build(ModelConfig(layers=L, heads=H, width=E, context=CONTEXT, init="torch"), seed=2).eval()
    reading = inspect.read(model, asked(outlier=Outlier(7.0, 3)))
    power = np.where(reading.visible, np.exp(reading.logits.astype(np.float64)), 0)
    np.testing.assert_allclose(reading.weights, power / power.sum(axis=-1, keepdims=True), rtol=1e-4, atol=1e-7)


def test_reading_leaves_the_random_state_and_the_model_alone(model: Decoder) -> None:
    before, state = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    inspect.read(model, asked())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"numbers": ()}, InvalidInputError, "at least one number"),
        ({"numbers": (1.0,) * 14}, InvalidInputError, "reads up to 13 numbers and was given 14"),
        (
            {"numbers": (1.0,) * 13, "outlier": Outlier(7.0, 1, insert=True)},
            InvalidInputError,
            "reads up to 13 numbers and was given 14",
        ),
        ({"outlier": Outlier(7.0, 7)}, InvalidInputError, r"position 7 does not fit 7 numbers \(the last is 6\)"),
        ({"task": "most"}, UnknownNameError, "unknown task 'most'"),
        ({"prompt_format": "words"}, InvalidInputError, "no prompt format 'words'"),
        ({"numbers": (1.0, math.nan)}, NonFiniteError, "made of finite numbers"),
        ({"numbers": (1.0, 1e300)}, NonFiniteError, "NaN or infinity"),
    ],
)
def test_what_cannot_be_read_is_refused(
    model: Decoder, changes: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        inspect.read(model, asked(**changes))  # type: ignore[arg-type]


def test_a_labelled_prompt_takes_half_as_many_numbers(model: Decoder) -> None:
    assert len(inspect.read(model, asked("every", "labelled", numbers=(1.0,) * 7)).tokens) == CONTEXT
    with pytest.raises(InvalidInputError, match="reads up to 7 numbers and was given 8"):
        inspect.read(model, asked("every", "labelled", numbers=(1.0,) * 8))


def reading_of(weights: list[list[list[float]]], outlier: int | None) -> Reading:
    """A reading whose one layer has these weights (H, Q, K); what else it holds does not matter here."""
    array = np.float32([weights])
    count = array.shape[-1]
    ones = np.ones(count, np.float32)
    visible = np.tri(count, dtype=bool)
    return Reading(ones, np.arange(count), array, array, visible, ones, ones, ones, outlier)


def test_concentration_by_hand() -> None:
    rows = [[0.125, 0.25, 0.125, 0.5], [0.0, 0.0, 1.0, 0.0], [0.25, 0.25, 0.25, 0.25]]
    before = [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.03125, 0.03125, 0.9375, 0]]
    reading = reading_of([[*before, row] for row in rows], outlier=2)
    found = inspect.concentration(reading, 3)
    np.testing.assert_array_equal(found.largest_weight, [[0.5, 1, 0.25]])
    np.testing.assert_array_equal(found.contextual_mass, [[0.5, 0, 0.75]])
    # 2 · ⅛ ln 8 + ¼ ln 4 + ½ ln 2 = 1.75 ln 2
    np.testing.assert_allclose(found.effective_tokens, [[2**1.75, 1, 4]], rtol=1e-6)
    np.testing.assert_array_equal(found.on_outlier, [[0.125, 1, 0.25]])  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.on_first, [[0.125, 0, 0.25]])
    np.testing.assert_array_equal(found.collapsed, [[False, True, False]])
    # Three visible keys are too few to call it a collapse, however much one of them gets.
    few = inspect.concentration(reading, 2)
    np.testing.assert_array_equal(few.largest_weight, [[0.9375] * 3])
    assert not few.collapsed.any()
    assert inspect.concentration(reading_of([[*before, rows[0]]], outlier=None), 3).on_outlier is None


@pytest.mark.parametrize("query", [-1, 4])
def test_no_such_query(query: int) -> None:
    with pytest.raises(InvalidInputError, match=f"query {query} is not one of the 4 tokens"):
        inspect.concentration(reading_of([[[0.25] * 4] * 4], None), query)


def test_contextual_mass_of_every_row(model: Decoder) -> None:
    reading = inspect.read(model, asked(outlier=Outlier(70.0, 4)))
    for layer in range(L):
        for head in range(H):
            rows = reading.weights[layer, head].tolist()
            mass = inspect.contextual_mass(reading, layer, head)
            np.testing.assert_allclose(mass, [1 - max(row) for row in rows], atol=1e-6)


@pytest.mark.parametrize(
    ("task", "prompt_format"), [("every", "numbers"), ("some", "labelled"), ("linear", "labelled")]
)
@pytest.mark.parametrize("insert", [False, True])
def test_a_sweep_is_one_reading_a_value(model: Decoder, task: str, prompt_format: str, insert: bool) -> None:
    at, values = 2, [1.0, 7.0, 70.0, 1000.0, 9999.0]
    problem = asked(task, prompt_format, numbers=NUMBERS[:5], outlier=Outlier(-3.0, at, insert=insert))
    swept = inspect.sweep(model, problem, values)
    assert swept.values.tolist() == values
    for i, value in enumerate(values):
        one = inspect.read(model, dataclasses.replace(problem, outlier=Outlier(value, at, insert=insert)))
        assert one.outlier is not None
        largest = one.weights[:, :, one.outlier].max(axis=-1)
        np.testing.assert_allclose(swept.largest_weight[i], largest, rtol=1e-5)
        np.testing.assert_allclose(swept.contextual_mass[i], 1 - largest, atol=1e-6)
        for name in ("predictions", "truth", "error"):
            np.testing.assert_allclose(getattr(swept, name)[i], getattr(one, name)[at], rtol=1e-4, atol=1e-6)


def test_nothing_comes_after_the_last_position(model: Decoder) -> None:
    last = asked(outlier=Outlier(70.0, len(NUMBERS) - 1))
    assert inspect.sweep(model, last, [1.0, 70.0]).values.tolist() == [1.0, 70.0]


def test_a_sweep_reaches_both_ends_of_the_sequence(model: Decoder) -> None:
    for outlier in (Outlier(1.0, 0), Outlier(1.0, len(NUMBERS), insert=True)):
        swept = inspect.sweep(model, asked(outlier=outlier), [-70.0])
        one = inspect.read(model, asked(outlier=dataclasses.replace(outlier, value=-70.0)))
        assert float(swept.predictions[0]) == pytest.approx(float(one.predictions[outlier.position]), rel=1e-5)


def test_a_sweep_needs_a_position_and_values(model: Decoder) -> None:
    with pytest.raises(InvalidInputError, match="needs a position to inject at"):
        inspect.sweep(model, asked(), [1.0])
    with pytest.raises(InvalidInputError, match="at least one value"):
        inspect.sweep(model, asked(outlier=Outlier(70.0, 3)), [])
    with pytest.raises(InvalidInputError, match="does not fit 7 numbers"):
        inspect.sweep(model, asked(outlier=Outlier(70.0, 8)), [1.0])
    full = asked(numbers=(1.0,) * CONTEXT, outlier=Outlier(70.0, 3, insert=True))
    with pytest.raises(InvalidInputError, match="up to 13 numbers and was given 14"):
        inspect.sweep(model, full, [1.0])


@pytest.mark.parametrize(
    ("values", "error", "limit", "first"),
    [
        ([1, 10, 100], [0, 0, 0], 0.5, None),
        ([1, 10, 100], [0, 1, 1], 0.5, 10.0),
        ([1, 10, 100], [1, 0, 0], 0.5, 1.0),
        ([-100, -10, -1], [1, 1, 0], 0.5, -10.0),
        ([1, 10, 100], [0.1, 0.9, 30.0], 1.0, 100.0),
        ([1, 10, 100], [0.1, 0.5, 0.6], 0.5, 100.0),  # the limit itself is not beyond it
    ],
)
def test_the_first_wrong_value(values: list[float], error: list[float], limit: float, first: float | None) -> None:
    none = np.zeros(3, np.float32)
    swept = Sweep(np.float64(values), none, none, none, none, np.float32(error))
    assert swept.first_wrong(limit) == first


def test_magnitudes_are_even_on_a_log_axis() -> None:
    found = inspect.magnitudes()
    assert len(found) == 41
    assert (found[0], found[-1]) == (1.0, 10_000.0)
    np.testing.assert_allclose(np.log10(found), np.arange(41) / 10, atol=1e-12)
    np.testing.assert_array_equal(inspect.magnitudes(-1), -found)
    assert len(inspect.magnitudes(count=5)) == 5


@pytest.mark.parametrize("outlier", [None, Outlier(70.0, 1), Outlier(70.0, 1, insert=True)])
def test_a_predicted_line_asks_after_the_whole_sequence(model: Decoder, outlier: Outlier | None) -> None:
    problem = asked("linear", "labelled", numbers=(1.0, -0.5, 0.25), outlier=outlier)
    grid = (-3.0, 0.0, 0.5, 2.0)
    line = inspect.predicted_line(model, problem, grid)
    for x, y in zip(grid, line.tolist(), strict=True):
        longer = dataclasses.replace(problem, numbers=(*problem.numbers, x))
        assert y == pytest.approx(float(inspect.read(model, longer).predictions[-1]), rel=1e-5)


def test_a_full_context_gives_up_its_last_number_for_the_question(model: Decoder) -> None:
    full = tuple(float(x) for x in range(1, 8))  # 7 numbers, labelled, are 13 tokens
    line = inspect.predicted_line(model, asked("linear", "labelled", numbers=full), (0.5,))
    shorter = inspect.read(model, asked("linear", "labelled", numbers=(*full[:-1], 0.5)))
    assert float(line[0]) == pytest.approx(float(shorter.predictions[-1]), rel=1e-5)
    with pytest.raises(InvalidInputError, match="reads up to 7 numbers and was given 8"):
        inspect.predicted_line(model, asked("linear", "labelled", numbers=(*full, 8.0)), (0.5,))


@pytest.mark.parametrize("task", ["every", "some", "linear"])
def test_random_numbers_follow_the_seed_alone(task: str) -> None:
    torch.manual_seed(17)
    state = torch.get_rng_state()
    first = inspect.random_numbers(task, 11, 3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(18)
    assert inspect.random_numbers(task, 11, 3) == first
    assert inspect.random_numbers(task, 11, 4) != first
    assert len(first) == 11
    assert all(round(x, 2) == x and math.copysign(1, x) * x >= 0 for x in first)


def test_random_numbers_are_in_distribution() -> None:
    """Standard normal for `linear`; for the quantifiers the first decisive number is as likely anywhere as nowhere."""
    drawn = [x for seed in range(60) for x in inspect.random_numbers("linear", 37, seed)]
    assert abs(np.mean(drawn)) < 0.1
    assert abs(np.std(drawn) - 1) < 0.1
    undecided = sum(all(x > 0 for x in inspect.random_numbers("every", 1, seed)) for seed in range(400))
    assert 140 < undecided < 260  # 200 ± 6 standard deviations


def test_minus_zero_is_never_drawn() -> None:
    drawn = [x for seed in range(200) for x in inspect.random_numbers("every", 41, seed)]
    zeros = [x for x in drawn if x == 0]
    assert zeros
    assert all(math.copysign(1, x) == 1 for x in zeros)


def test_no_such_task_to_draw_from() -> None:
    with pytest.raises(UnknownNameError, match="unknown task 'most'"):
        inspect.random_numbers("most", 3, 0)


@pytest.mark.parametrize(("task", "function"), [("linear", ()), ("linear", (1.0,)), ("every", (1.0, 2.0))])
def test_a_function_of_the_wrong_size_is_refused(model: Decoder, task: str, function: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="function parameters"):
        inspect.read(model, Problem(task, "labelled", (1.0, 2.0), function))


def test_a_reading_is_not_tied_to_the_model(model: Decoder) -> None:
    before = inspect.read(model, asked())
    inspect.read(model, asked()).visible[:] = False
    np.testing.assert_array_equal(inspect.read(model, asked()).weights, before.weights)
