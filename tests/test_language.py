"""Language models: their numbers are those of the formulas in float64, and a run goes on exactly."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ssa_viz import cli
from ssa_viz.checkpoints.language import load_language, load_language_state, save_language, save_language_state
from ssa_viz.checkpoints.language_shelf import discover_language
from ssa_viz.errors import CheckpointError, InvalidInputError, NonFiniteError
from ssa_viz.model.attention import Attention, rotated
from ssa_viz.model.language import LanguageConfig, LanguageModel, build_language
from ssa_viz.scoring import SCORING
from ssa_viz.text import train_tokenizer
from ssa_viz.text.prepared import prepare
from ssa_viz.train.language.config import LanguageRun
from ssa_viz.train.language.training import LanguageTraining

SMALL: dict[str, Any] = {
    "layers": 2,
    "heads": 4,
    "groups": 2,
    "width": 16,
    "hidden": 24,
    "context": 12,
    "vocabulary": 300,
}
STREAM = np.random.default_rng(0).integers(3, 300, 4000).astype(np.uint16)
Floats = NDArray[np.float64]


def config(**changes: Any) -> LanguageConfig:
    return LanguageConfig(**{**SMALL, **changes})


def run(**changes: Any) -> LanguageRun:
    model = {name: changes.pop(name) for name in ("kind", "scoring") if name in changes}
    return LanguageRun(**{"model": config(**model), "length": 8, "batch": 4, "steps": 12, "warmup": 3, **changes})


def tokens(count: int = 9) -> torch.Tensor:
    return torch.from_numpy(STREAM[: 2 * count].astype(np.int64)).view(2, count)


def shaken(model: LanguageModel) -> LanguageModel:
    """With biases and gains that are not 0 and 1, and larger weights, so that a part left out shows."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "raw_" not in name:
                parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def by_hand(model: LanguageModel, ids: list[int]) -> tuple[Floats, Floats]:
    """Predictions (T, V) and weights (L, H, T, T) from the formulas, one loop a head, float64."""
    c = model.config
    p = {name: tensor.detach().double().numpy() for name, tensor in model.state_dict().items()}
    erf = np.vectorize(math.erf)

    def linear(x: Floats, name: str) -> Floats:
        return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)

    def norm(x: Floats, name: str) -> Floats:
        if c.causal:
            return x / np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(np.float32).eps) * p[f"{name}.weight"]
        middle = x - x.mean(-1, keepdims=True)
        return middle / np.sqrt((middle**2).mean(-1, keepdims=True) + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]

    def gelu(x: Floats) -> Floats:
        return x * 0.5 * (1 + erf(x / math.sqrt(2)))

    def turned(vector: Floats, place: int) -> Floats:
        half = len(vector) // 2
        z = (vector[:half] + 1j * vector[half:]) * np.exp(1j * place * 10_000.0 ** (-np.arange(half) / half))
        return np.concatenate([z.real, z.imag])

    x = p["embedding.weight"][ids]
    if c.positions == "learned":
        x = x + p["position.weight"][: len(ids)]
    x = x if c.causal else norm(x, "embedding_norm")
    width, every = c.width // c.heads, []
    for i in range(c.layers):
        name = f"blocks.{i}"
        qkv = linear(norm(x, f"{name}.attention_norm") if c.causal else x, f"{name}.attention.qkv")
        written, layer = np.zeros((len(ids), c.width)), []
        for head in range(c.heads):
            group = head // (c.heads // c.groups)
            q = qkv[:, head * width : (head + 1) * width]
            k = qkv[:, (c.heads + group) * width : (c.heads + group + 1) * width]
            v = qkv[:, (c.heads + c.groups + group) * width : (c.heads + c.groups + group + 1) * width]
            if c.positions == "rotary":
                q = np.stack([turned(row, t) for t, row in enumerate(q)])
                k = np.stack([turned(row, t) for t, row in enumerate(k)])
            logits = q @ k.T / math.sqrt(width)
            weights = np.zeros_like(logits)
            for t in range(len(ids)):
                seen = logits[t, : t + 1] if c.causal else logits[t]
                n, b = 1.5, 1.0
                scores = np.exp(seen) if c.scoring == "softmax" else (1 + b * np.abs(seen)) ** (np.sign(seen) * n)
                weights[t, : len(seen)] = scores / scores.sum()
            layer.append(weights)
            written[:, head * width : (head + 1) * width] = weights @ v
        every.append(layer)
        x = x + linear(written, f"{name}.attention.out")
        if c.causal:
            read = linear(norm(x, f"{name}.mlp_norm"), f"{name}.read")
            x = x + linear(np.maximum(read, 0) ** 2, f"{name}.write")
        else:
            x = norm(x, f"{name}.attention_norm")
            x = norm(x + linear(gelu(linear(x, f"{name}.read")), f"{name}.write"), f"{name}.mlp_norm")
    if c.causal:
        return norm(x, "final_norm") @ p["embedding.weight"].T, np.array(every)
    x = norm(gelu(linear(x, "head.dense")), "head.norm")
    return x @ p["embedding.weight"].T + p["read_out_bias"], np.array(every)


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
@pytest.mark.parametrize("positions", ["rotary", "learned"])
@pytest.mark.parametrize("scoring", ["softmax", "ssa"])
def test_predictions_and_weights_are_those_of_the_formulas(kind: str, positions: str, scoring: str) -> None:
    model = shaken(build_language(config(kind=kind, positions=positions, scoring=scoring), 0))
    ids = tokens()
    output = model(ids, trace=True)
    assert output.trace is not None
    for b in range(2):
        predictions, weights = by_hand(model, ids[b].tolist())
        np.testing.assert_allclose(output.predictions[b].detach().numpy(), predictions, atol=1e-4)
        np.testing.assert_allclose(output.trace.weights()[:, b].detach().numpy(), weights, atol=1e-5)
    assert len(output.trace.residual) == SMALL["layers"] + 1
    output.trace.check_finite()


@pytest.mark.parametrize("scoring", list(SCORING))
def test_every_scoring_function_learns_in_both(scoring: str) -> None:
    for kind in ("decoder", "encoder"):
        model = build_language(config(kind=kind, scoring=scoring), 0)
        model(tokens()).predictions.square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_a_decoder_does_not_look_ahead_and_an_encoder_does() -> None:
    changed = tokens().clone()
    changed[:, 5] = 7
    for kind, same in (("decoder", True), ("encoder", False)):
        model = shaken(build_language(config(kind=kind), 0))
        one, two = model(tokens()).predictions, model(changed).predictions
        assert torch.equal(one[:, :5], two[:, :5]) is same
        assert not torch.equal(one[:, 5:], two[:, 5:])


def test_rotary_logits_depend_on_the_distance_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 7, generator=generator, dtype=torch.float64)
    near = (rotated(query, torch.tensor([5])) * rotated(key, torch.tensor([2]))).sum()
    far = (rotated(query, torch.tensor([105])) * rotated(key, torch.tensor([102]))).sum()
    assert near.item() == pytest.approx(far.item(), rel=1e-4)
    assert near.item() != pytest.approx((query * key).sum().item(), rel=1e-3)


def test_padding_reads_and_louder_tokens() -> None:
    model = shaken(build_language(config(kind="encoder"), 0))
    ids = tokens()
    real = torch.ones_like(ids, dtype=torch.bool)
    real[:, 6:] = False
    short = model(ids[:, :6]).predictions
    torch.testing.assert_close(model(ids, real=real).predictions[:, :6], short, rtol=1e-4, atol=1e-5)
    reads = torch.zeros_like(real)
    reads[0, 2] = reads[1, 4] = True
    torch.testing.assert_close(model(ids, reads=reads).predictions, model(ids).predictions[reads])
    louder = torch.ones(2, 9)
    louder[:, 3] = 50
    trace = model(ids, key_scale=louder, trace=True).trace
    usual = model(ids, trace=True).trace
    assert trace is not None
    assert usual is not None
    first, before = trace.layers[0].logits, usual.layers[0].logits
    torch.testing.assert_close(first[..., 3], 50 * before[..., 3], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(first[..., 2], before[..., 2])
    one = torch.ones(2, 9)
    torch.testing.assert_close(model(ids, embedding_scale=one, key_scale=one).predictions, model(ids).predictions)
    assert not torch.allclose(model(ids, embedding_scale=louder).predictions, model(ids).predictions)


def test_what_cannot_be_read_or_built_is_refused() -> None:
    model = build_language(config(), 0)
    for bad in (
        torch.zeros(2, 13, dtype=torch.long),
        torch.zeros(3, dtype=torch.long),
        torch.zeros(1, 0, dtype=torch.long),
    ):
        with pytest.raises(InvalidInputError, match="expected tokens of shape"):
            model(bad)
    for id_ in (-1, 300):
        with pytest.raises(InvalidInputError, match="outside the vocabulary"):
            model(torch.tensor([[1, id_]]))
    for changes in ({"kind": "both"}, {"groups": 3}, {"width": 15}, {"vocabulary": 0}, {"layers": True}, {"groups": 8}):
        with pytest.raises(InvalidInputError):
            config(**changes)
    with pytest.raises(InvalidInputError):
        Attention(16, SCORING["softmax"](4), groups=3)
    for changes in ({"length": 13}, {"learning_rate": 0.0}, {"precision": "half"}, {"steps": 0}, {"gap_share": 0.0}):
        with pytest.raises(InvalidInputError):
            run(**changes)


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_a_run_that_is_continued_is_the_run_that_was_not(kind: str, tmp_path: Path) -> None:
    wanted = run(kind=kind, scoring="ssa")
    whole = LanguageTraining(wanted, STREAM, STREAM[:500])
    while not whole.done:
        whole.advance()
    part = LanguageTraining(wanted, STREAM, STREAM[:500])
    for _ in range(5):
        part.advance()
    save_language_state(tmp_path / "state.safetensors", wanted, part.step, part.tensors())
    again = LanguageTraining(wanted, STREAM, STREAM[:500])
    again.restore(*load_language_state(tmp_path / "state.safetensors", wanted))
    assert again.step == 5
    while not again.done:
        again.advance()
    for (name, one), two in zip(whole.tensors().items(), again.tensors().values(), strict=True):
        assert torch.equal(one, two), name
    with pytest.raises(CheckpointError, match="other settings"):
        load_language_state(tmp_path / "state.safetensors", run(kind=kind, scoring="ssa", seed=1))
    with pytest.raises(InvalidInputError, match="not one of this run's"):
        again.restore(3, {})
    content = bytearray((tmp_path / "state.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "state.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="SHA-256"):
        load_language_state(tmp_path / "state.safetensors", wanted)


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_a_model_learns_to_copy_its_neighbours(kind: str) -> None:
    rng = np.random.default_rng(0)
    stream = np.repeat(rng.integers(3, 300, 100), 40).astype(np.uint16)  # each token many times: copy a neighbour
    training = LanguageTraining(run(kind=kind, steps=250, learning_rate=1e-2, batch=8), stream, stream[:1000])
    before = training.validation_loss()
    while not training.done:
        training.advance()
    after = training.progress()
    assert before == pytest.approx(math.log(300), rel=0.05)
    assert after.validation < before / 2
    assert training.validation_loss() == after.validation
    with torch.no_grad():
        next(iter(training.model.parameters())).fill_(float("nan"))
    with pytest.raises(NonFiniteError):
        training.tensors()


def test_the_scoring_function_changes_nothing_but_itself() -> None:
    one, two = (LanguageTraining(run(scoring=scoring), STREAM, STREAM[:500]) for scoring in ("softmax", "ssa"))
    for name, parameter in one.model.named_parameters():
        assert torch.equal(parameter, dict(two.model.named_parameters())[name])
    assert torch.equal(one.blocks.at(7), two.blocks.at(7))
    one.advance()
    two.advance()
    assert float(one.progress().loss) != float(two.progress().loss)


def saved(folder: Path) -> tuple[LanguageModel, Path]:
    tokenizer = train_tokenizer(["some words to make a few tokens from"], 300)
    wanted = LanguageRun(model=config(vocabulary=tokenizer.vocabulary, scoring="ssa"), length=8)
    model = shaken(build_language(wanted.model, 0))
    save_language(folder / "tiny", model, wanted, tokenizer, {"a": 1})
    return model, folder / "tiny"


def test_a_saved_model_comes_back_in_half_precision(tmp_path: Path) -> None:
    model, folder = saved(tmp_path)
    found = load_language(folder)
    ids = tokens() % model.config.vocabulary
    torch.testing.assert_close(found.model(ids).predictions, model(ids).predictions, rtol=2e-2, atol=2e-2)
    assert (found.metrics, found.name) == ({"a": 1}, "tiny")
    assert not found.model.training
    assert (folder / "model.safetensors").stat().st_size < 3 * sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("config.json", lambda c: c.replace(b'"heads": 4', b'"heads": 5'), "cannot be used"),
        ("config.json", lambda c: c.replace(b'"schema_version": 1', b'"schema_version": 2'), "of version 1"),
        ("config.json", lambda c: c.replace(b'"layers": 2', b'"layers": 3'), "is missing"),
        ("config.json", lambda c: c[:-3], "damaged"),
        ("model.safetensors", lambda c: c[:-1] + b"?", "SHA-256"),
        ("tokenizer.json", lambda c: c.replace(b"some", b"same"), "the model was trained with|SHA-256"),
    ],
)
def test_a_damaged_model_is_refused_in_a_sentence(tmp_path: Path, file: str, change: Any, said: str) -> None:
    _, folder = saved(tmp_path)
    content = (folder / file).read_bytes()
    changed = change(content)
    (folder / file).write_bytes(changed if changed != content else content + b" ")
    with pytest.raises(CheckpointError, match=said):
        load_language(folder)


def test_a_folders_models_are_listed_the_broken_ones_with_the_reason(tmp_path: Path) -> None:
    assert discover_language(tmp_path / "nowhere") == []
    saved(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{")
    outside = tmp_path.with_name(f"{tmp_path.name} outside")
    saved(outside)
    (tmp_path / "link").symlink_to(outside / "tiny")
    other, tiny = discover_language(tmp_path)
    assert (tiny.name, tiny.error) == ("tiny", None)
    assert tiny.run is not None
    assert tiny.run.model.scoring == "ssa"
    assert (other.name, other.run) == ("other", None)
    assert "damaged" in str(other.error)
    (found,) = discover_language(tmp_path / "tiny" / "config.json")
    assert "cannot be read" in str(found.error)


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    _, folder = saved(tmp_path)
    other = train_tokenizer(["other words"], 270)
    (folder / "tokenizer.json").write_text(other.document)
    with pytest.raises(CheckpointError, match="put the one there that came with it"):
        load_language(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        load_language(folder)


def test_the_command_line_prepares_trains_pauses_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(f"The cat number {i} sat on the mat of the dog {i * i}." for i in range(200)))
    assert cli.main(["language", "prepare", str(text), "--out", str(tmp_path / "corpus"), "--vocabulary", "300"]) == 0
    options = ["language", "train", "--corpus-folder", str(tmp_path / "corpus"), "--layers", "1", "--width", "16"]
    options += ["--heads", "2", "--groups", "2", "--hidden", "16", "--context", "16", "--length", "16", "--batch", "4"]
    options += ["--steps", "6", "--every", "3", "--kind", "encoder", "--scoring", "ssa"]
    assert cli.main([*options, "--out", str(tmp_path / "whole")]) == 0
    assert cli.main([*options, "--out", str(tmp_path / "cut"), "--minutes", "0"]) == 0
    assert "paused at step 1 of 6" in capsys.readouterr().out
    assert not (tmp_path / "cut" / "config.json").exists()
    assert cli.main([*options, "--out", str(tmp_path / "cut")]) == 0
    assert "goes on from step 1" in capsys.readouterr().out
    one, two = (load_language(tmp_path / name) for name in ("whole", "cut"))
    assert one.sha256 == two.sha256
    assert [each["step"] for each in one.metrics["curve"]] == [3, 6]
    assert json.loads((tmp_path / "cut" / "curve.json").read_text()) == two.metrics["curve"]
    assert cli.main([*options, "--out", str(tmp_path / "bad"), "--every", "0"]) == 1


def test_the_command_line_measures_saves_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, folder = saved(tmp_path)
    (tmp_path / "held.txt").write_text("Some words to make.\n\nA few tokens from.\n")
    (tmp_path / "verbs.txt").write_text("a few was .\na few were .\n")
    options = ["language", "evaluate", str(folder), "--texts", f"held={tmp_path / 'held.txt'}"]
    options += ["--pairs", f"mine={tmp_path / 'verbs.txt'}"]
    assert cli.main([*options, "--check"]) == 1
    assert cli.main(options) == 1  # our own pairs do not fit a context of 12 tokens
    assert "fits the model's context" in capsys.readouterr().err
    assert cli.main(["language", "evaluate", str(folder), "--texts", "held"]) == 1
    assert "expected NAME=PATH" in capsys.readouterr().err


def test_a_card_is_saved_and_measured_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = train_tokenizer(["The boys near the tables were very good."], 300)
    wanted = LanguageRun(model=config(vocabulary=tokenizer.vocabulary, context=70, layers=1), length=8)
    save_language(tmp_path / "tiny", build_language(wanted.model, 0), wanted, tokenizer, {"curve": []})
    (tmp_path / "held.txt").write_text("Some words to make.\n\nA few tokens from.\n")
    options = ["language", "evaluate", str(tmp_path / "tiny"), "--texts", f"held={tmp_path / 'held.txt'}"]
    assert cli.main([*options, "--save"]) == 0
    assert cli.main([*options, "--check"]) == 0
    card = load_language(tmp_path / "tiny").metrics
    assert card["curve"] == []
    assert list(card["text"]["held"]) == ["64"]
    assert card["text"]["held"]["64"]["nats_per_token"] == pytest.approx(math.log(tokenizer.vocabulary), rel=0.1)
    phenomena = card["pairs"]["own"]["phenomena"]
    assert len(phenomena) == 17
    assert card["pairs"]["own"]["macro"] == pytest.approx(sum(p["share"] for p in phenomena.values()) / 17)
    assert all(p["count"] + card["pairs"]["own"]["left_out"] >= 200 for p in phenomena.values())
    assert "same as its card" in capsys.readouterr().out


def test_prepare_refuses_too_little_text(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(InvalidInputError, match="nothing is left"):
        prepare(tmp_path / "corpus", [str(tmp_path / "text.txt")], vocabulary=300)
