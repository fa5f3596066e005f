"""The tasks' truths by plain loops, how prompts are drawn and laid out, and what is refused."""

import math

import pytest
import torch
from torch import Tensor

from ssa_viz.errors import InvalidInputError, UnknownNameError
from ssa_viz.tasks import TASKS, Outlier, Shift, Task
from ssa_viz.tasks.base import FORMATS, numbers_within, tokens_for

BATCH, LENGTH = 13, 7
QUANTIFIERS = ("every", "some")
every_task = pytest.mark.parametrize("name", list(TASKS))
every_quantifier = pytest.mark.parametrize("name", QUANTIFIERS)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def truth(name: str, row: list[float]) -> list[float]:
    """The quantifier's answer for each prefix."""
    ask = all if name == "every" else any
    return [float(ask(x > 0 for x in row[: i + 1])) for i in range(len(row))]


def settled(name: str, row: list[float]) -> list[bool]:
    """Whether the prefix before each number fixes every later answer."""
    decisive = [x <= 0 for x in row] if name == "every" else [x > 0 for x in row]
    return [any(decisive[:i]) for i in range(len(row))]


def ask(name: str, rows: list[list[float]], prompt_format: str = "numbers") -> Tensor:
    return TASKS[name]().layout(torch.tensor(rows), torch.empty(len(rows), 0), prompt_format).answers


def test_registry_lists_the_tasks_in_order() -> None:
    assert list(TASKS)[:3] == ["every", "some", "linear"]
    assert all(issubclass(TASKS[name], Task) and TASKS[name].name == name for name in TASKS)
    assert all(TASKS[name].label and TASKS[name].question for name in TASKS)
    with pytest.raises(UnknownNameError, match="unknown task 'most'; the known ones are: every, some, linear"):
        TASKS["most"]


@every_quantifier
@pytest.mark.parametrize("sigma", [1.0, 5.0])
def test_answers_and_settled_by_loops(name: str, sigma: float) -> None:
    task = TASKS[name]()
    shift = Shift(input_std=sigma, outlier=Outlier(-70.0, 3))
    prompts = task.sample(997, LENGTH, generator(), prompt_format="numbers", shift=shift)
    rows = prompts.numbers.tolist()
    assert prompts.answers.tolist() == [truth(name, row) for row in rows]
    already = task.settled(prompts.numbers)
    assert already is not None
    assert already.tolist() == [settled(name, row) for row in rows]
    assert 0.2 < float(prompts.answers.mean()) < 0.8


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_exact_zero_is_not_positive(zero: float) -> None:
    assert ask("every", [[1.0, zero, 2.0], [zero, 1.0, 1.0]]).tolist() == [[1, 0, 0], [0, 0, 0]]
    assert ask("some", [[-1.0, zero, 2.0], [zero, zero, zero]]).tolist() == [[0, 0, 1], [0, 0, 0]]
    row = torch.tensor([[1.0, zero, 2.0]])
    assert TASKS["every"]().settled(row).tolist() == [[False, False, True]]  # type: ignore[union-attr]
    assert TASKS["some"]().settled(row).tolist() == [[False, True, True]]  # type: ignore[union-attr]


def test_smallest_positive_number_is_positive() -> None:
    tiny = 1e-45  # float32's smallest subnormal
    assert ask("every", [[tiny, -tiny]]).tolist() == [[1, 0]]
    assert ask("some", [[-tiny, tiny]]).tolist() == [[0, 1]]


def test_linear_answers_lie_on_the_line() -> None:
    prompts = TASKS["linear"]().sample(BATCH, LENGTH, generator(), prompt_format="labelled")
    numbers, function = TASKS["linear"]().draw(BATCH, LENGTH, Shift(), generator())
    assert torch.equal(prompts.numbers, numbers)
    expected = [[a * x + b for x in row] for row, (a, b) in zip(numbers.tolist(), function.tolist(), strict=True)]
    torch.testing.assert_close(prompts.answers, torch.tensor(expected))
    assert TASKS["linear"]().settled(numbers) is None


@every_quantifier
def test_first_decisive_number_is_equally_likely_anywhere_or_nowhere(name: str) -> None:
    draws, decisive = 10007, (lambda x: x <= 0) if name == "every" else (lambda x: x > 0)
    rows = TASKS[name]().draw(draws, LENGTH, Shift(), generator(1))[0].tolist()
    counts = [0] * (LENGTH + 1)
    later, later_decisive = 0, 0
    for row in rows:
        first = next((i for i, x in enumerate(row) if decisive(x)), LENGTH)
        counts[first] += 1
        later += len(row[first + 1 :])
        later_decisive += sum(map(decisive, row[first + 1 :]))
    expected = draws / (LENGTH + 1)
    chi_square = sum((count - expected) ** 2 / expected for count in counts)
    assert chi_square < 24.3  # the 99.9% point with 7 degrees of freedom
    assert later_decisive / later == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(later))


@every_task
@pytest.mark.parametrize("sigma", [0.1, 3.0, 29.0])
def test_sigma_is_the_standard_deviation_of_the_numbers(name: str, sigma: float) -> None:
    task = TASKS[name]()
    plain, function = task.draw(2003, LENGTH, Shift(), generator())
    wide, same = task.draw(2003, LENGTH, Shift(input_std=sigma), generator())
    torch.testing.assert_close(wide, sigma * plain)
    assert torch.equal(function, same)
    assert float(wide.square().mean().sqrt()) == pytest.approx(sigma, rel=0.03)


def test_function_sigma_scales_the_line_only() -> None:
    numbers, function = TASKS["linear"]().draw(2003, LENGTH, Shift(), generator())
    same, wide = TASKS["linear"]().draw(2003, LENGTH, Shift(function_std=5.0), generator())
    assert torch.equal(numbers, same)
    torch.testing.assert_close(wide, 5 * function)
    assert wide.std(dim=0).tolist() == pytest.approx([5.0, 5.0], rel=0.1)


@every_task
def test_prompts_follow_the_seed_alone(name: str) -> None:
    task = TASKS[name]()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first = task.sample(BATCH, LENGTH, generator(4), prompt_format="labelled")
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(5)
    again = task.sample(BATCH, LENGTH, generator(4), prompt_format="labelled")
    other = task.sample(BATCH, LENGTH, generator(5), prompt_format="labelled")
    for field in ("numbers", "answers", "tokens", "reads"):
        assert torch.equal(getattr(first, field), getattr(again, field))
    assert not torch.equal(first.numbers, other.numbers)


@every_task
def test_labelled_layout(name: str) -> None:
    task = TASKS[name]()
    prompts = task.sample(BATCH, LENGTH, generator(), prompt_format="labelled")
    assert prompts.tokens.shape == (BATCH, 2 * LENGTH - 1)
    for b in range(BATCH):
        expected = []
        for number, answer in zip(prompts.numbers[b].tolist(), prompts.answers[b].tolist(), strict=True):
            expected += [number, (1.0 if answer else -1.0) if task.boolean else answer]
        assert prompts.tokens[b].tolist() == expected[:-1]
    assert torch.equal(prompts.tokens[:, prompts.reads], prompts.numbers)


@every_quantifier
def test_numbers_layout_is_the_numbers(name: str) -> None:
    prompts = TASKS[name]().sample(BATCH, LENGTH, generator(), prompt_format="numbers")
    assert torch.equal(prompts.tokens, prompts.numbers)
    assert prompts.reads.tolist() == list(range(LENGTH))


def test_lengths_in_tokens() -> None:
    for prompt_format in FORMATS:
        for count in range(1, 30):
            prompts = TASKS["every"]().sample(1, count, generator(), prompt_format=prompt_format)
            assert tokens_for(count, prompt_format) == prompts.tokens.shape[1]
            fits = [n for n in range(1, 60) if tokens_for(n, prompt_format) <= count]
            assert numbers_within(count, prompt_format) == max(fits)


@pytest.mark.parametrize("insert", [False, True])
@pytest.mark.parametrize("position", range(LENGTH + 1))
def test_outlier_is_put_where_it_was_asked(position: int, insert: bool) -> None:
    numbers = torch.randn(BATCH, LENGTH, generator=generator())
    outlier = Outlier(70.0, position, insert)
    if position == LENGTH and not insert:
        with pytest.raises(InvalidInputError, match=r"position 7 does not fit 7 numbers.*last is 6"):
            outlier.apply(numbers)
        return
    rows = numbers.tolist()
    for row in rows:
        row[position : position + (0 if insert else 1)] = [70.0]
    assert outlier.apply(numbers).tolist() == rows
    assert not bool((numbers == 70).any())


def test_inserting_past_the_end_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="last is 7"):
        Outlier(70.0, LENGTH + 1, insert=True).apply(torch.zeros(2, LENGTH))


def test_outlier_is_part_of_the_truth() -> None:
    shift = Shift(outlier=Outlier(-70.0, 0, insert=True))
    prompts = TASKS["every"]().sample(BATCH, LENGTH, generator(), prompt_format="numbers", shift=shift)
    assert prompts.answers.tolist() == [[0.0] * (LENGTH + 1)] * BATCH
    shift = Shift(outlier=Outlier(70.0, 2))
    prompts = TASKS["linear"]().sample(BATCH, LENGTH, generator(), prompt_format="labelled", shift=shift)
    _, function = TASKS["linear"]().draw(BATCH, LENGTH, Shift(), generator())
    torch.testing.assert_close(prompts.tokens[:, 5], function[:, 0] * 70 + function[:, 1])


@every_quantifier
def test_quantifier_loss_and_error(name: str) -> None:
    predictions, answers = torch.tensor([[2.0, -2.0, 0.0, 2.0]]), torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    assert TASKS[name]().error(predictions, answers).tolist() == [[0, 1, 1, 1]]
    expected = [math.log1p(math.exp(-2)), math.log1p(math.exp(2)), math.log(2), math.log1p(math.exp(2))]
    assert TASKS[name]().loss(predictions, answers)[0].tolist() == pytest.approx(expected)


def test_linear_loss_and_error_are_squares() -> None:
    predictions, answers = torch.tensor([[2.0, -1.0]]), torch.tensor([[5.0, -1.5]])
    assert TASKS["linear"]().loss(predictions, answers).tolist() == [[9.0, 0.25]]
    assert TASKS["linear"]().error(predictions, answers).tolist() == [[9.0, 0.25]]


@every_task
def test_what_cannot_be_sampled_is_refused(name: str) -> None:
    task = TASKS[name]()
    with pytest.raises(InvalidInputError, match=f"no prompt format 'words'; it has: {', '.join(task.formats)}"):
        task.sample(1, 3, generator(), prompt_format="words")
    for batch, length in ((0, 3), (3, 0), (-1, 3)):
        with pytest.raises(InvalidInputError, match="batch and length must be at least 1"):
            task.sample(batch, length, generator(), prompt_format="labelled")
    with pytest.raises(InvalidInputError, match="at least one number"):
        task.layout(torch.empty(2, 0), torch.empty(2, 2), "labelled")


def test_linear_has_no_numbers_format() -> None:
    with pytest.raises(InvalidInputError, match="'linear' has no prompt format 'numbers'; it has: labelled"):
        TASKS["linear"]().sample(1, 3, generator(), prompt_format="numbers")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.1e6, -1e30])
def test_outlier_value_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(InvalidInputError, match="an outlier must be a number of size up to 1e"):
        Outlier(value, 0)


def test_negative_position_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="counts from 0, so it cannot be -1"):
        Outlier(70.0, -1)


@pytest.mark.parametrize("field", ["input_std", "function_std"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_sigma_out_of_range_is_refused(field: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=f"{field} must be a finite number above 0"):
        Shift(**{field: value})  # type: ignore[arg-type]
