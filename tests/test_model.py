"""The decoder against a plain numpy one that reads the same state, and what a forward pass may not do."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.model import VARIANTS, Decoder, LayerTrace, ModelConfig, Trace, build
from ssa_viz.scoring import SCORING, ScoringFunction

Array = NDArray[np.float64]
BATCH, TOKENS, LAYERS, HEADS, WIDTH, CONTEXT = 13, 7, 2, 3, 5, 11  # WIDTH: of one head

every_function = pytest.mark.parametrize("scoring", list(SCORING))
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def config(**changes: object) -> ModelConfig:
    sizes = {"layers": LAYERS, "heads": HEADS, "width": HEADS * WIDTH, "context": CONTEXT}
    return ModelConfig(**(sizes | changes))  # type: ignore[arg-type]


def decoder(**changes: object) -> Decoder:
    """A model in float64 with every parameter away from its starting value, so that none can be left out."""
    model = build(config(**changes), seed=0).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def numbers(batch: int = BATCH, tokens: int = TOKENS) -> Tensor:
    drawn = 2 * torch.randn(batch, tokens, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    drawn[0, 2] = 70.0
    return drawn


class Reference:
    """The same decoder in numpy, one sequence, one head and one query at a time."""

    def __init__(self, model: Decoder) -> None:
        self.config = model.config
        self.state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}

    def linear(self, name: str, x: Array) -> Array:
        return np.asarray(x @ self.state[f"{name}.weight"].T + self.state[f"{name}.bias"])

    def norm(self, name: str, x: Array) -> Array:
        if self.config.variant == "attention_only":
            return x
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        return np.asarray(scaled * self.state[f"{name}.weight"] + self.state[f"{name}.bias"])

    def weigh(self, layer: int, head: int, x: Array) -> Array:
        if self.config.scoring == "softmax":
            score = np.exp(x - x.max())
        else:
            raw = {p: self.state[f"blocks.{layer}.attention.scoring.raw_{p}"][head] for p in ("n", "b")}
            n, b = 1 + math.log1p(math.exp(raw["n"])), math.log1p(math.exp(raw["b"]))
            score = (1 + b * np.abs(x)) ** (np.sign(x) * n)
        return np.asarray(score / score.sum())

    def run(self, sequence: Array) -> dict[str, Array]:
        tokens = len(sequence)
        residual = self.linear("read_in", sequence[:, None])
        if self.config.positions == "learned":
            residual = residual + self.state["position.weight"][:tokens]
        kept: dict[str, list[Array]] = {
            "logits": [],
            "weights": [],
            "head_outputs": [],
            "residual": [residual],
        }
        written = residual
        for layer in range(LAYERS):
            block = f"blocks.{layer}"
            qkv = self.linear(f"{block}.attention.qkv", self.norm(f"{block}.attention_norm", residual))
            query, key, value = np.split(qkv, 3, axis=-1)
            logits, weights = np.zeros((2, HEADS, tokens, tokens))
            outputs = np.zeros((HEADS, tokens, WIDTH))
            for head in range(HEADS):
                own = slice(head * WIDTH, (head + 1) * WIDTH)
                logits[head] = query[:, own] @ key[:, own].T / math.sqrt(WIDTH)
                for q in range(tokens):
                    weights[head, q, : q + 1] = self.weigh(layer, head, logits[head, q, : q + 1])
                    outputs[head, q] = weights[head, q] @ value[:, own]
            written = self.linear(f"{block}.attention.out", np.concatenate(list(outputs), axis=-1))
            residual = residual + written
            if self.config.variant == "transformer":
                hidden = self.linear(f"{block}.mlp.1", self.norm(f"{block}.mlp.0", residual))
                gelu = hidden * 0.5 * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))
                residual = residual + self.linear(f"{block}.mlp.3", gelu)
            for name, array in zip(kept, (logits, weights, outputs, residual), strict=True):
                kept[name].append(array)
        answer = written if self.config.readout == "attention" else residual
        predictions = self.linear("read_out", self.norm("final_norm", answer))[:, 0]
        return {name: np.stack(arrays) for name, arrays in kept.items()} | {"predictions": predictions}


def assert_matches(actual: Tensor, expected: Array) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-9, atol=1e-11)


def test_assertion_fails_on_a_wrong_value() -> None:
    assert_matches(torch.ones(3, dtype=torch.float64), np.ones(3))
    for wrong in (np.full(3, 1 + 1e-6), np.ones((1, 3)), np.full(3, np.nan)):
        with pytest.raises(AssertionError):
            assert_matches(torch.ones(3, dtype=torch.float64), wrong)


@every_variant
@pytest.mark.parametrize("scoring", ["softmax", "ssa"])
@pytest.mark.parametrize(("positions", "readout"), [("learned", "residual"), ("none", "attention")])
def test_trace_matches_a_plain_computation(variant: str, scoring: str, positions: str, readout: str) -> None:
    model = decoder(variant=variant, scoring=scoring, positions=positions, readout=readout)
    predictions, trace = model(numbers(), trace=True)
    assert trace is not None
    runs = [Reference(model).run(sequence) for sequence in numbers().numpy()]
    assert_matches(predictions, np.stack([run["predictions"] for run in runs]))
    for name, tensor in (
        ("logits", trace.logits()),
        ("weights", trace.weights()),
        ("head_outputs", trace.head_outputs()),
        ("residual", trace.residual_stream()),
    ):
        assert_matches(tensor, np.stack([run[name] for run in runs], axis=1))


def test_shapes() -> None:
    predictions, trace = decoder()(numbers(), trace=True)
    assert predictions.shape == (BATCH, TOKENS)
    assert trace.logits().shape == trace.weights().shape == (LAYERS, BATCH, HEADS, TOKENS, TOKENS)
    assert trace.head_outputs().shape == (LAYERS, BATCH, HEADS, TOKENS, WIDTH)
    assert trace.residual_stream().shape == (LAYERS + 1, BATCH, TOKENS, HEADS * WIDTH)
    assert torch.equal(trace.visible, torch.ones(TOKENS, TOKENS).tril().bool())
    assert trace.check_finite() is trace


@every_function
@every_variant
def test_tracing_changes_no_bit_and_leaves_no_hook(scoring: str, variant: str) -> None:
    model = decoder(scoring=scoring, variant=variant)
    before, nothing = model(numbers())
    traced, _ = model(numbers(), trace=True)
    after, _ = model(numbers())
    assert nothing is None
    assert torch.equal(before, traced)
    assert torch.equal(before, after)
    for module in model.modules():
        assert not any(value for name, value in vars(module).items() if name.endswith("_hooks"))


@every_function
@every_variant
def test_no_prefix_sees_what_comes_later(scoring: str, variant: str) -> None:
    model = decoder(scoring=scoring, variant=variant)
    changed = numbers()
    changed[:, -1] += 1000.0
    before, first = model(numbers(), trace=True)
    after, second = model(changed, trace=True)
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.isclose(before[:, -1], after[:, -1]).any()
    assert torch.equal(first.weights()[..., :-1, :], second.weights()[..., :-1, :])
    for length in range(1, TOKENS):
        torch.testing.assert_close(model(numbers()[:, :length]).predictions, before[:, :length])


@every_function
@every_variant
def test_alternatives_are_many_sequences_that_differ_at_the_end(scoring: str, variant: str) -> None:
    model = decoder(scoring=scoring, variant=variant)
    ends = torch.tensor([0.5, -70.0, 1000.0], dtype=torch.float64)
    shared = numbers()[:1, :-1]
    together, trace = model(torch.cat([shared[0], ends])[None], alternatives=len(ends), trace=True)
    for i, end in enumerate(ends):
        alone, own = model(torch.cat([shared, end.view(1, 1)], 1), trace=True)
        torch.testing.assert_close(together[:, shared.shape[1] + i], alone[:, -1])
        row = trace.weights()[:, 0, :, shared.shape[1] + i]
        seen = [*range(shared.shape[1]), shared.shape[1] + i]
        torch.testing.assert_close(row[..., seen], own.weights()[:, 0, :, -1])
        hidden = [key for key in range(row.shape[-1]) if key not in seen]
        assert bool((row[..., hidden] == 0).all())


@pytest.mark.parametrize("alternatives", [0, TOKENS + 1])
def test_unfit_alternatives_are_refused(alternatives: int) -> None:
    with pytest.raises(InvalidInputError, match="alternatives"):
        build(config(), seed=0)(numbers().float(), alternatives=alternatives)


@every_function
@every_variant
def test_padding_changes_no_answer(scoring: str, variant: str) -> None:
    padding = torch.full((BATCH, 3), 5.0, dtype=torch.float64)
    real = torch.tensor([True] * TOKENS + [False] * 3).expand(BATCH, -1)
    model = decoder(scoring=scoring, variant=variant)
    right = model(torch.cat([numbers(), padding], 1), real=real).predictions
    torch.testing.assert_close(right[:, :TOKENS], model(numbers()).predictions)
    model = decoder(scoring=scoring, variant=variant, positions="none")  # without places, padding may also lead
    left, trace = model(torch.cat([padding, numbers()], 1), real=real.flip(1), trace=True)
    torch.testing.assert_close(left[:, 3:], model(numbers()).predictions)
    assert bool((trace.weights()[..., :3] == 0).all())
    assert bool((trace.weights()[..., :3, :] == 0).all())
    assert bool(torch.isfinite(left).all())


@pytest.mark.parametrize("scoring", [name for name in SCORING if name != "softmax"])
@every_variant
def test_differs_from_softmax(scoring: str, variant: str) -> None:
    sequence = numbers().float()
    ours, softmax = (build(config(scoring=name, variant=variant), seed=3) for name in (scoring, "softmax"))
    shared = softmax.state_dict()
    assert all(torch.equal(ours.state_dict()[name], tensor) for name, tensor in shared.items())
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            if ".scoring." in name:
                parameter += 0.5  # a function may start as softmax; it may not stay there
        left, right = ours(sequence, trace=True), softmax(sequence, trace=True)
        if SCORING[scoring].logits is ScoringFunction.logits:
            assert torch.equal(left.trace.logits()[0], right.trace.logits()[0])
        assert (left.trace.weights()[0] - right.trace.weights()[0]).abs().max() > 1e-3
        assert (left.predictions - right.predictions).abs().max() > 1e-5


@pytest.mark.parametrize("layer", range(LAYERS))
def test_check_finite_names_the_layer(layer: int) -> None:
    model = build(config(), seed=0)
    with torch.no_grad():
        model.get_parameter(f"blocks.{layer}.attention.qkv.weight").fill_(1e30)
        trace = model(numbers().float(), trace=True).trace
    with pytest.raises(NonFiniteError, match=f"layer {layer} produced"):
        trace.check_finite()


def test_check_finite_ignores_only_hidden_logits() -> None:
    visible = torch.ones(2, 2, dtype=torch.bool).tril()
    logits = torch.zeros(1, 1, 2, 2)
    logits[..., 0, 1] = math.nan
    weights, heads, residual = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 3), torch.ones(1, 2, 3)
    said = torch.ones(1, 2)
    Trace((LayerTrace(logits, weights, heads, "torch"),), (residual, residual), visible, said).check_finite()
    for changes in ({"logits": logits.mT}, {"weights": weights * math.inf}):
        layer = dataclasses.replace(LayerTrace(logits, weights, heads, "torch"), **changes)
        with pytest.raises(NonFiniteError, match="layer 0"):
            Trace((layer,), (residual, residual), visible, said).check_finite()
    with pytest.raises(NonFiniteError, match="layer 0"):
        Trace((LayerTrace(logits, weights, heads, "torch"),), (residual, residual / 0), visible, said).check_finite()
    with pytest.raises(NonFiniteError, match="the read-out"):
        Trace((LayerTrace(logits, weights, heads, "torch"),), (residual, residual), visible, said / 0).check_finite()


@pytest.mark.parametrize("shape", [(3,), (2, 3, 1), (2, 0), (2, CONTEXT + 1)])
def test_unfit_input_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match=rf"1 to {CONTEXT} tokens"):
        build(config(), seed=0)(torch.zeros(shape))
