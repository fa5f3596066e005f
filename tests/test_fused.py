"""The fused passes give what the scoring functions' definitions give, computed in float64 by PyTorch."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ssa_viz.kernels import fused, launch
from ssa_viz.model import ModelConfig, build
from ssa_viz.scoring import SCORING, ScoringFunction

BATCH, HEADS, QUERIES, KEYS = 3, 5, 7, 11
ROOT = Path(__file__).resolve().parents[1]

each = pytest.mark.parametrize("name", ["softmax", "ssa"])


@pytest.fixture(autouse=True)
def _small_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "LEAST_SIZE", 1)
    assert launch.installed()


def pair(name: str, heads: int = HEADS) -> tuple[ScoringFunction, ScoringFunction]:
    """The function with other parameters in each head, in float32, which is fused, and in float64, which is not."""
    function, exact = SCORING[name](heads), SCORING[name](heads)
    with torch.no_grad():
        for parameter in function.parameters():
            parameter += torch.linspace(-0.5, 2.0, heads)
    exact.load_state_dict(function.state_dict())
    return function, exact.double()


def draw(scale: float = 3.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(BATCH, HEADS, QUERIES, KEYS, generator=generator)
    return logits, torch.rand(BATCH, 1, QUERIES, KEYS, generator=generator) < 0.6


def results(function: ScoringFunction, logits: Tensor, visible: Tensor) -> list[Tensor]:
    """Weights, then the gradients of an uneven sum of them: by the logits, by each raw parameter."""
    x = logits.clone().requires_grad_()
    weights = function(x, visible)
    assert weights.dtype == logits.dtype
    factors = torch.arange(weights.numel(), dtype=weights.dtype).sin().view_as(weights)
    found = torch.autograd.grad((weights * factors).sum(), [x, *function.parameters()])
    return [weights.detach(), *found]


def compare(name: str, logits: Tensor, visible: Tensor, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    function, exact = pair(name, logits.shape[1])
    wanted = results(exact, logits.double(), visible)
    for found, right in zip(results(function, logits, visible), wanted, strict=True):
        torch.testing.assert_close(found, right.float(), rtol=rtol, atol=atol, equal_nan=True)


def test_comparison_fails_on_a_wrong_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "softmax", lambda logits, visible: torch.full_like(logits, 1 / KEYS))
    with pytest.raises(AssertionError):
        compare("softmax", *draw())


@each
@pytest.mark.parametrize("scale", [1e-30, 0.01, 3.0, 50.0, 3e3, 1e6, 1e30, 3e37])
def test_weights_and_gradients_at_any_size(name: str, scale: float) -> None:
    # Where n·log₂ is above 100, its rounding alone moves a weight by 1e-5.
    compare(name, *draw(scale), rtol=2e-5 if scale < 1e20 else 1e-3)


@each
@pytest.mark.parametrize(
    "shape",
    [(QUERIES, KEYS), (1, 1, QUERIES, KEYS), (BATCH, 1, 1, KEYS), (BATCH, HEADS, QUERIES, KEYS), (1, HEADS, 1, KEYS),
     (QUERIES, 1), (), (BATCH, 1, QUERIES, 1)],
    ids=str,
)  # fmt: skip
def test_masks_of_any_shape(name: str, shape: tuple[int, ...]) -> None:
    logits, _ = draw()
    compare(name, logits, torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.7)


@each
@pytest.mark.parametrize("hidden", [math.nan, math.inf, -math.inf, 3e38])
def test_hidden_logits_have_no_influence(name: str, hidden: float) -> None:
    logits, visible = draw()
    clean = results(pair(name)[0], logits.masked_fill(~visible, 0.0), visible)
    found = results(pair(name)[0], logits.masked_fill(~visible, hidden), visible)
    for one, other in zip(found, clean, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@each
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_visible_nan_or_infinity_makes_its_row_nan_and_no_other(name: str, value: float) -> None:
    logits, visible = draw()
    visible[1, 0, 3, 4] = True
    clean = pair(name)[0](logits, visible).detach()
    logits[1, 2, 3, 4] = value
    weights = pair(name)[0](logits, visible).detach()
    assert bool(weights[1, 2, 3, visible[1, 0, 3]].isnan().all())
    assert bool((weights[1, 2, 3, ~visible[1, 0, 3]] == 0).all())
    weights[1, 2, 3] = clean[1, 2, 3]
    torch.testing.assert_close(weights, clean, rtol=1e-6, atol=1e-7)


@each
def test_minus_infinity_and_empty_rows(name: str) -> None:
    logits, visible = draw()
    visible[0, 0, 2] = False
    logits[1, 1, 3, ::2] = -math.inf
    logits[2, 4, 5] = -math.inf
    compare(name, logits, visible)
    weights = pair(name)[0](logits, visible)
    assert bool((weights[0, :, 2] == 0).all())
    assert bool((weights[2, 4, 5] == 0).all())


@each
def test_logits_that_are_not_contiguous_and_no_rows_at_all(name: str) -> None:
    logits, visible = draw()
    compare(name, logits.transpose(0, 1).contiguous().transpose(0, 1), visible)
    function, _ = pair(name)
    assert function(logits[:0], visible[:0]).shape == (0, HEADS, QUERIES, KEYS)


@each
def test_rows_sum_to_one_to_float32(name: str) -> None:
    logits, _ = draw(10.0)
    sums = pair(name)[0](logits, torch.ones(KEYS, dtype=torch.bool)).detach().double().sum(-1)
    assert float((sums - 1).abs().max()) < 5e-7


@each
def test_a_decoder_says_how_it_was_computed_and_agrees_with_float64(name: str) -> None:
    config = ModelConfig(layers=2, heads=HEADS, width=HEADS * 6, context=KEYS, scoring=name, init="torch")
    numbers = 3 * torch.randn(BATCH, KEYS, generator=torch.Generator().manual_seed(1))
    single, double = (build(config, seed=0).to(dtype) for dtype in (torch.float32, torch.float64))
    found, wanted = single(numbers, trace=True), double(numbers.double(), trace=True)
    assert [layer.implementation for layer in found.trace.layers] == ["fused", "fused"]
    assert [layer.implementation for layer in wanted.trace.layers] == ["torch", "torch"]
    torch.testing.assert_close(found.predictions, wanted.predictions.float(), rtol=1e-4, atol=1e-5)


def test_powers_beyond_what_the_loop_rounds_well_are_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Tensor) -> Tensor:
        raise AssertionError("fused")

    monkeypatch.setattr(fused, "ssa", refuse)
    logits, visible = draw()
    SCORING["ssa"](HEADS, initial={"n": fused.MOST_N + 1})(logits, visible)
    with pytest.raises(AssertionError, match="fused"):
        SCORING["ssa"](HEADS, initial={"n": fused.MOST_N - 1})(logits, visible)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: x.double(), "float64"),
        (lambda x: x.half(), "half"),
        (lambda x: x.to("meta"), "another device"),
        (lambda x: x[0], "three axes"),
    ],
)
def test_what_is_not_fused(change: object, reason: str) -> None:
    logits, _ = draw()
    assert launch.usable(logits)
    assert not launch.usable(change(logits)), reason  # type: ignore[operator]


def test_the_environment_switches_the_kernels_off(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, _ = draw()
    for value, on in (("0", False), ("1", True)):
        monkeypatch.setenv(launch.SWITCH, value)
        assert launch.usable(logits) == on


def test_small_rows_are_not_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, _ = draw()
    monkeypatch.setattr(launch, "LEAST_SIZE", logits.numel() + 1)
    assert not launch.usable(logits)


@each
def test_results_do_not_depend_on_the_number_of_threads(name: str) -> None:
    logits, visible = draw()
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.append(results(pair(name)[0], logits, visible))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=0)


WITHOUT = """
import sys
sys.modules["numba"] = None
import torch
from ssa_viz.kernels import launch
from ssa_viz.scoring import SCORING
launch.LEAST_SIZE = 1
x = torch.randn(2, 3, 5, 7, requires_grad=True)
for name in ("softmax", "ssa"):
    SCORING[name](3)(x, torch.ones(7, dtype=torch.bool)).sum().backward()
print("fine")
"""
LAZY = """
import sys
import torch
from ssa_viz.scoring import SCORING
SCORING["ssa"](3)(torch.randn(2, 3, 5, 7), torch.ones(7, dtype=torch.bool))
print("numba" in sys.modules)
"""


@pytest.mark.parametrize(("script", "said"), [(WITHOUT, "fine"), (LAZY, "False")], ids=["without numba", "lazily"])
def test_numba_is_optional_and_imported_late(script: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env={**os.environ}, timeout=120
    )
    assert done.stdout.strip() == said, done.stderr
