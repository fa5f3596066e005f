"""Where rounding could show: parameters in half precision, a sink far below, logits below the normal numbers."""

from __future__ import annotations

import math

import pytest
import torch

from ssa_viz.scoring import SCORING

HEADS, QUERIES, KEYS = 3, 5, 257  # bfloat16 has no 257

every_function = pytest.mark.parametrize("name", list(SCORING))


@every_function
@torch.no_grad()
def test_half_precision_parameters_are_worked_on_in_float32(name: str) -> None:
    """Only the weights themselves are rounded to bfloat16, by half of its 2⁻⁷ between 1 and 2 at most."""
    logits = 3 * torch.randn(2, HEADS, QUERIES, KEYS, generator=torch.Generator().manual_seed(0)).bfloat16()
    visible = torch.ones(KEYS, dtype=torch.bool)
    half = SCORING[name](HEADS).bfloat16()
    initial = {parameter: values[0] for parameter, values in half.values().items()}
    exact = SCORING[name](HEADS, initial=initial, learnable=dict.fromkeys(initial, False)).double()
    found = half(logits, visible).double()
    torch.testing.assert_close(found, exact(logits.double(), visible), rtol=2**-8 + 1e-4, atol=1e-6)


@torch.no_grad()
def test_smallest_temperature_in_float16_gives_the_largest_logit_all() -> None:
    function = SCORING["temperature"](1, initial={"T": 1e-5}).half()
    logits = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float16).view(1, 1, 1, -1)
    assert function(logits, torch.ones(4, dtype=torch.bool)).flatten().tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("c", [-10.0, -20.0, -40.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_sink_far_below_still_learns(c: float, dtype: torch.dtype) -> None:
    """dw_i/dc = −w_i·e^c / (e^c + Σ e^x), which is no less exact where e^c is lost beside the sum."""
    row, upstream = (1.0, 0.5, 2.0), (1.0, 2.0, 3.0)
    function = SCORING["sink"](1, initial={"c": c}).to(dtype)
    weights = function(torch.tensor(row, dtype=dtype).view(1, 1, 1, -1), torch.ones(3, dtype=torch.bool))
    (weights * torch.tensor(upstream, dtype=dtype)).sum().backward()
    total = math.fsum(math.exp(x) for x in (*row, c))
    mean = math.fsum(g * math.exp(x) / total for g, x in zip(upstream, row, strict=True))
    gradient = function.get_parameter("raw_c").grad
    assert gradient is not None
    assert float(gradient) == pytest.approx(-mean * math.exp(c) / total, rel=1e-5)


@every_function
@pytest.mark.parametrize("size", [1e-30, 1e-38, 1e-40, 1e-45])
def test_tiny_logits_give_finite_weights_and_gradients(name: str, size: float) -> None:
    logits = torch.tensor([size, 0.0, -size, size / 2]).view(1, 1, 1, -1).requires_grad_()
    function = SCORING[name](1)
    weights = function(logits, torch.ones(4, dtype=torch.bool))
    (weights * torch.tensor([1.0, -2.0, 3.0, 0.5])).sum().backward()
    assert logits.grad is not None
    assert bool(weights.isfinite().all())
    assert bool(logits.grad.isfinite().all())
    assert all(bool(p.grad.isfinite().all()) for p in function.parameters() if p.grad is not None)
