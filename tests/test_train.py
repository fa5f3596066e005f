"""A training run: the same config gives the same bits, it learns, and it stops loudly when it breaks."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from ssa_viz.errors import InvalidInputError, NonFiniteError, UnknownNameError
from ssa_viz.model import Decoder, ModelConfig, build
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS, Prompts, Task
from ssa_viz.train import Finished, Progress, TrainConfig, train
from ssa_viz.train.training import learning_rate_factor

TINY = ModelConfig(variant="attention_only", layers=1, heads=3, width=15, context=13, scoring="ssa")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost such small tensors more than they give, and far more on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tiny(**changes: object) -> TrainConfig:
    base = TrainConfig(model=TINY, length=7, steps=5, batch=11, warmup=0, seed=0)
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def run(config: TrainConfig, every: int = 100) -> tuple[list[Progress], Decoder]:
    """All progress events, and the finished model."""
    *events, finished = train(config, every=every)
    assert isinstance(finished, Finished)
    assert all(isinstance(event, Progress) for event in events)
    return [event for event in events if isinstance(event, Progress)], finished.model


def test_equal_configs_give_equal_bits_and_leave_the_global_state_alone() -> None:
    torch.manual_seed(17)
    state = torch.get_rng_state()
    events, model = run(tiny(), every=2)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(18)
    again, same = run(tiny(), every=2)
    assert events == again
    assert [event.step for event in events] == [2, 4, 5]
    assert not model.training
    first, second = model.state_dict(), same.state_dict()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())
    _, other = run(tiny(seed=1))
    assert not torch.equal(other.state_dict()["blocks.0.attention.qkv.weight"], first["blocks.0.attention.qkv.weight"])


def test_how_often_it_reports_changes_no_bit() -> None:
    first, second = run(tiny(), every=1)[1].state_dict(), run(tiny(), every=3)[1].state_dict()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_a_change_to_the_model_does_not_change_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Prompts] = []

    def keep(self: Task, *args: Any, **options: Any) -> Prompts:
        shown.append(Task.sample(self, *args, **options))
        return shown[-1]

    monkeypatch.setattr(TASKS["every"], "sample", keep)
    for config in (tiny(), tiny(model=dataclasses.replace(TINY, width=30, scoring="softmax")), tiny(seed=1)):
        run(config)
    ours, wider, other = (torch.stack([p.tokens for p in shown[i : i + 5]]) for i in (0, 5, 10))
    assert torch.equal(ours, wider)
    assert not torch.isclose(ours, other).any()
    assert len({tuple(tokens.flatten().tolist()) for tokens in ours}) == 5  # each step draws anew


def test_progress_is_the_mean_since_the_last_one() -> None:
    single, grouped = run(tiny(steps=5), every=1)[0], run(tiny(steps=5), every=3)[0]
    for event, members in zip(grouped, (single[:3], single[3:]), strict=True):
        for name in ("loss", "error", "gradient_norm"):
            mean = sum(getattr(member, name) for member in members) / len(members)
            assert getattr(event, name) == pytest.approx(mean, rel=1e-5)


def test_first_step_reports_what_the_starting_model_gives() -> None:
    config = tiny(steps=1, seed=3)
    (event,), _ = run(config)
    model = build(config.model, config.seed)
    data = torch.Generator().manual_seed(config.seed + 2**32)
    prompts = TASKS["every"]().sample(config.batch, config.length, data, prompt_format="numbers")
    predictions = model(prompts.tokens).predictions
    rows = zip(predictions.flatten().tolist(), prompts.answers.flatten().tolist(), strict=True)
    losses = [math.log1p(math.exp(-p if answer else p)) for p, answer in rows]
    assert event.loss == pytest.approx(sum(losses) / len(losses), rel=1e-5)


@pytest.mark.parametrize("scoring", list(SCORING))
@pytest.mark.parametrize(
    ("task", "prompt_format"), [("every", "numbers"), ("some", "labelled"), ("linear", "labelled")]
)
def test_sixty_steps_lower_the_loss(scoring: str, task: str, prompt_format: str) -> None:
    model = dataclasses.replace(TINY, scoring=scoring, layers=2)
    config = tiny(model=model, task=task, prompt_format=prompt_format, steps=60, batch=32, learning_rate=5e-3, warmup=5)
    events, trained = run(config, every=12)
    assert events[-1].loss < 0.95 * events[0].loss
    start = dict(build(model, config.seed).named_parameters())
    for name, parameter in trained.named_parameters():
        assert not torch.equal(parameter, start[name]), f"{name} did not learn"


def test_a_run_that_breaks_says_at_which_step() -> None:
    with pytest.raises(NonFiniteError, match=r"NaN or infinite by step 4; try a lower learning rate"):
        run(tiny(steps=9, learning_rate=1e30, clip=1e30), every=4)


def test_stopping_early_is_not_asking_for_more() -> None:
    events = train(tiny(steps=10**9), every=2)
    assert isinstance(next(events), Progress)
    events.close()  # type: ignore[attr-defined]


def test_learning_rate_rises_linearly_then_falls_along_a_cosine_to_a_tenth() -> None:
    config = tiny(steps=110, warmup=10)
    factors = [learning_rate_factor(step, config) for step in range(111)]
    assert factors[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    for step in range(10, 111):
        expected = 0.1 + 0.9 * math.cos(math.pi / 2 * (step - 10) / 100) ** 2
        assert factors[step] == pytest.approx(expected)
    assert factors[60] == pytest.approx(0.55)
    assert factors[110] == pytest.approx(0.1)
    assert learning_rate_factor(0, tiny(warmup=0)) == 1.0
    assert learning_rate_factor(500, config) == pytest.approx(0.1)


def test_weight_decay_acts_on_matrices_only() -> None:
    """After one step at rate r, decay d alone has moved a parameter p by −r·d·p: AdamW's decoupled rule."""
    rate, decay = 1e-2, 0.5
    start = build(TINY, 0).state_dict()
    _, without = run(tiny(steps=1, learning_rate=rate, weight_decay=0.0))
    _, decayed = run(tiny(steps=1, learning_rate=rate, weight_decay=decay))
    plain = dict(without.named_parameters())
    for name, parameter in decayed.named_parameters():
        expected = -rate * decay * start[name] if parameter.ndim == 2 else torch.zeros_like(parameter)
        torch.testing.assert_close(parameter.detach() - plain[name].detach(), expected, rtol=1e-3, atol=1e-7)


def test_clipping_bounds_the_step_but_not_the_reported_norm() -> None:
    """Adam's first step hides the gradient's size, so the second one is compared."""
    loose, strict = (run(tiny(steps=2, clip=clip), every=1) for clip in (1e9, 1e-9))
    assert loose[0][0].gradient_norm == strict[0][0].gradient_norm > 1e-3
    moved = [(model.read_in.weight - build(TINY, 0).read_in.weight).abs().max().item() for _, model in (loose, strict)]
    assert moved[1] < 0.5 * moved[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt_format": "words"}, "'every' has no prompt format 'words'; it has: numbers, labelled"),
        ({"task": "linear"}, "'linear' has no prompt format 'numbers'; it has: labelled"),
        ({"length": 0}, "length must be a whole number from 1"),
        ({"steps": 0}, "steps must be a whole number from 1"),
        ({"batch": -1}, "batch must be a whole number from 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0"),
        ({"learning_rate": math.nan}, "learning_rate must be a finite number above 0, not nan"),
        ({"clip": math.inf}, "clip must be a finite number above 0"),
        ({"weight_decay": -0.1}, "weight_decay must be a finite number"),
        ({"seed": -1}, "seed must be a whole number from 0 to 2147483647, not -1"),
        ({"seed": 2**31}, "seed must be a whole number from 0"),
        ({"warmup": -1}, "warmup must be a whole number from 0"),
        ({"length": 14}, "14 numbers as 'numbers' are 14 tokens, more than the context of 13"),
        ({"length": 8, "prompt_format": "labelled"}, "8 numbers as 'labelled' are 15 tokens"),
    ],
)
def test_impossible_run_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        tiny(**changes)


def test_unknown_task_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown task 'most'"):
        tiny(task="most")
