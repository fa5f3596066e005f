"""A run that is interrupted and goes on is, bit for bit, the run that was not; and what a saved state refuses."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from pathlib import Path

import pytest
import safetensors.torch
import torch

from ssa_viz.checkpoints.training_state import latest_state, load_state, save_state, states
from ssa_viz.errors import CheckpointError, InvalidInputError, NonFiniteError
from ssa_viz.model import Decoder, ModelConfig, build
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS, Shift
from ssa_viz.train import Probe, Probed, Progress, TrainConfig, Training, train
from ssa_viz.train.training import learning_rate_factor

TINY = ModelConfig(variant="transformer", layers=1, heads=2, width=8, context=13, scoring="ssa")
STEPS = 12


def tiny(**changes: object) -> TrainConfig:
    base = TrainConfig(
        model=TINY, length=7, steps=STEPS, batch=6, warmup=3, first_length=3, length_step=2, length_every=4
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def weights(model: Decoder) -> str:
    state = model.state_dict()
    return hashlib.sha256(b"".join(state[name].numpy().tobytes() for name in sorted(state))).hexdigest()


def uninterrupted(config: TrainConfig) -> tuple[str, list[Progress]]:
    run, seen = Training(config), []
    while not run.done:
        run.advance()
        if run.step % 5 == 0 or run.done:
            seen.append(run.progress())
    return weights(run.model), seen


@pytest.mark.parametrize("task", ["every", "linear"])
@pytest.mark.parametrize("scoring", list(SCORING))
def test_cut_after_every_step_and_continued_from_disk(scoring: str, task: str, tmp_path: Path) -> None:
    config = tiny(model=dataclasses.replace(TINY, scoring=scoring), task=task, prompt_format="labelled", length=6)
    expected, progress = uninterrupted(config)
    run, seen = Training(config), []
    while not run.done:
        run.advance()
        if run.step % 5 == 0 or run.done:
            seen.append(run.progress())
        save_state(tmp_path, run.state())
        torch.manual_seed(run.step)  # whatever the global state is, it plays no part
        run = Training(config, state=latest_state(tmp_path, config))
    assert weights(run.model) == expected
    assert seen == progress
    assert [path.name for path in states(tmp_path)] == [
        "state-000000012.safetensors",
        "state-000000011.safetensors",
    ]


def test_a_plain_loop_gives_the_same_weights() -> None:
    """The reference is written out here: PyTorch's AdamW and a scheduler of its own, the prompts of `Task.sample`."""
    config = tiny(first_length=0, steps=8)
    model = build(config.model, config.seed).train()
    data = torch.Generator().manual_seed(config.seed + 2**32)
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    free = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": config.weight_decay}, {"params": free, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(step, config))
    task = TASKS[config.task]()
    for _ in range(config.steps):
        prompts = task.sample(config.batch, config.length, data, prompt_format=config.prompt_format)
        loss = task.loss(model(prompts.tokens).predictions[:, prompts.reads], prompts.answers).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        schedule.step()
    assert weights(model) == uninterrupted(config)[0]


def test_a_damaged_newest_state_gives_way_to_the_one_before(tmp_path: Path) -> None:
    run = Training(tiny())
    for _ in range(3):
        run.advance()
        save_state(tmp_path, run.state())
    newest, before = states(tmp_path)
    content = bytearray(newest.read_bytes())
    content[-3] ^= 1
    newest.write_bytes(content)
    found = latest_state(tmp_path, run.config)
    assert found is not None
    assert found.step == 2
    before.write_bytes(before.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match=r"state-000000003.safetensors cannot be used"):
        latest_state(tmp_path, run.config)
    assert latest_state(tmp_path / "nowhere", run.config) is None


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    run = Training(tiny())
    run.advance()
    path = save_state(tmp_path, run.state())
    with pytest.raises(CheckpointError, match="belongs to a run with other settings"):
        load_state(path, tiny(seed=1))
    with pytest.raises(InvalidInputError, match="belongs to a run with other settings"):
        Training(tiny(seed=1), state=run.state())


@pytest.mark.parametrize("change", ["missing", "shape", "dtype", "nan", "step"])
def test_a_forged_state_is_refused(change: str, tmp_path: Path) -> None:
    run = Training(tiny())
    run.advance()
    state = run.state()
    tensors = dict(state.tensors)
    name = "exp_avg.blocks.0.attention.qkv.weight"
    if change == "missing":
        del tensors[name]
    elif change == "shape":
        tensors[name] = tensors[name][:1].contiguous()
    elif change == "dtype":
        tensors[name] = tensors[name].double()
    elif change == "nan":
        tensors[name] = tensors[name] * math.nan
    forged = dataclasses.replace(state, tensors=tensors, step=STEPS + 1 if change == "step" else 1)
    path = save_state(tmp_path, forged)
    with pytest.raises(CheckpointError, match="cannot be used"):
        load_state(path, run.config)


def test_files_that_are_no_state_are_refused(tmp_path: Path) -> None:
    for number, content in enumerate([b"", b"\x08", b"{}" * 100, safetensors.torch.save({"a": torch.ones(2)})]):
        path = tmp_path / f"state-{number:09d}.safetensors"
        path.write_bytes(content)
        with pytest.raises(CheckpointError):
            load_state(path, tiny())


def test_no_state_holds_nan() -> None:
    run = Training(tiny(learning_rate=1e30, clip=1e30, warmup=0))
    for _ in range(4):
        run.advance()
    with pytest.raises(NonFiniteError, match=r"by step 4 .* try a lower learning rate"):
        run.state()


def test_lengths_follow_the_curriculum() -> None:
    config = tiny(steps=20)
    assert [config.length_at(step) for step in (0, 3, 4, 7, 8, 19)] == [3, 3, 5, 5, 7, 7]
    assert tiny(first_length=0).length_at(0) == 7
    paper = dataclasses.replace(config, length=12, first_length=11, length_step=2, length_every=2000)
    assert [paper.length_at(step) for step in (0, 1999, 2000, 10**6)] == [11, 11, 12, 12]
    lengths = [event.length for event in train(config, every=4) if isinstance(event, Progress)]
    assert lengths == [3, 5, 7, 7, 7]
    with pytest.raises(InvalidInputError, match=r"first_length \(8\) must be at most length \(7\)"):
        tiny(first_length=8)


def test_schedules() -> None:
    linear, constant = (tiny(schedule=name, steps=103) for name in ("linear", "constant"))
    assert [learning_rate_factor(step, linear) for step in (0, 2, 3, 53, 103)] == pytest.approx(
        [1 / 3, 1.0, 1.0, 0.55, 0.1]
    )
    assert {learning_rate_factor(step, constant) for step in range(3, 103)} == {1.0}
    with pytest.raises(InvalidInputError, match="schedule must be one of cosine, linear, constant, not 'steps'"):
        tiny(schedule="steps")


def test_sigma_widens_the_training_numbers_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    sample = TASKS["every"].sample

    def keep(self: object, *args: object, **options: object) -> object:
        shown.append(sample(self, *args, **options))  # type: ignore[arg-type]
        return shown[-1]

    monkeypatch.setattr(TASKS["every"], "sample", keep)
    for std in (1.0, 3.0):
        Training(tiny(input_std=std)).advance()
    torch.testing.assert_close(3 * shown[0].numbers, shown[1].numbers)


def test_bfloat16_is_another_run_but_learns_the_same_task() -> None:
    exact, half = (
        list(train(tiny(precision=precision, steps=40, first_length=0), every=40))
        for precision in ("float32", "bfloat16")
    )
    assert isinstance(exact[0], Progress)
    assert isinstance(half[0], Progress)
    assert exact[0].loss != half[0].loss
    assert half[0].loss == pytest.approx(exact[0].loss, rel=0.02)


def test_looking_changes_nothing_and_looks_at_what_it_says() -> None:
    config = tiny(input_std=2.0)
    assert weights_after(config, probe_every=1) == weights_after(config, probe_every=0)
    probe = Probe(config)
    model = build(config.model, 5).train()
    seen = probe.look(model, 3)
    assert model.training
    assert seen.step == 3
    assert seen.numbers[seen.position] == 70.0
    # Drawn again by hand, from the seed that the class names.
    generator = torch.Generator().manual_seed(30_000)
    task = TASKS["every"]()
    plain = task.sample(64, 7, generator, prompt_format="numbers", shift=Shift(input_std=2.0))
    answers = (plain.numbers > 0).cummin(dim=1).values
    model.eval()
    said = model(plain.tokens).predictions > 0
    assert seen.error == pytest.approx((said != answers).float().mean().item())
    _, trace = model(torch.from_numpy(seen.numbers)[None], trace=True)
    assert trace is not None
    row = trace.weights()[:, 0, :, seen.position]
    assert seen.largest_weight == pytest.approx(row.amax(-1).mean().item(), rel=1e-5)
    torch.testing.assert_close(
        torch.from_numpy(seen.weights.astype("float32")), trace.weights()[:, 0], rtol=1e-3, atol=1e-3
    )
    assert seen.scoring == {"n": [pytest.approx([1.5, 1.5])], "b": [pytest.approx([1.0, 1.0])]}


def weights_after(config: TrainConfig, probe_every: int) -> str:
    *events, finished = train(config, every=4, probe_every=probe_every)
    assert sum(isinstance(event, Probed) for event in events) == (config.steps if probe_every else 0)
    assert not isinstance(finished, (Progress, Probed))
    return weights(finished.model)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_steps_learn_what_plain_ones_do() -> None:
    config = tiny(model=dataclasses.replace(TINY, scoring="entmax15"), first_length=5, steps=6)
    plain, compiled = (Training(config, compiled=compiled) for compiled in (False, True))
    for run in (plain, compiled):
        while not run.done:
            run.advance()
    assert compiled.progress().loss == pytest.approx(plain.progress().loss, rel=1e-4)
    assert set(compiled.state().tensors) == set(plain.state().tensors)


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="there is no device 'cuda:7' here; there is: cpu"):
        Training(tiny(), device="cuda:7")
    with pytest.raises(InvalidInputError, match="there is no device 'toaster' here"):
        Training(tiny(), device="toaster")
