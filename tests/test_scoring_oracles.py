"""Every scoring function against its formula in plain Python, one row at a time; entmax also against the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import entmax
import numpy as np
import pytest
import torch
from torch import Tensor

from ssa_viz.scoring import SCORING

Row = Sequence[float]
Oracle = Callable[[Row, dict[str, float]], list[float]]

CASES, KEYS = 1000, 13
SCALES = (0.01, 1.0, 4.0, 30.0)


def softmax(row: Row) -> list[float]:
    most = max(row)
    scores = [math.exp(x - most) for x in row]
    return [s / math.fsum(scores) for s in scores]


def ssa(row: Row, p: dict[str, float]) -> list[float]:
    scores = [(1 + p["b"] * abs(x)) ** math.copysign(p["n"], x) for x in row]
    return [s / math.fsum(scores) for s in scores]


def adaptive_temperature(row: Row, p: dict[str, float]) -> list[float]:
    entropy = -math.fsum(w * math.log(w + 1e-9) for w in softmax(row))
    fit = -0.037 * entropy**4 + 0.481 * entropy**3 - 2.3 * entropy**2 + 4.917 * entropy - 1.791
    beta = max(fit, 1.0) if entropy > 0.5 else 1.0
    return softmax([beta * x for x in row])


def with_sink(row: Row, sink: float) -> list[float]:
    return softmax([*row, sink])[:-1]


def softpick(row: Row, p: dict[str, float]) -> list[float]:
    most = max(0.0, *row)
    sizes = [math.exp(x - most) - math.exp(-most) if x > 1 else math.exp(-most) * math.expm1(x) for x in row]
    return [max(s, 0.0) / (math.fsum(map(abs, sizes)) + 1e-8) for s in sizes]


def bisected(row: Row, alpha: float) -> list[float]:
    """α-entmax by bisection on its threshold, as the sources write it: (α − 1)x − τ."""
    scaled = [(alpha - 1) * x for x in row]
    low, high = max(scaled) - 1, max(scaled)
    for _ in range(200):
        middle = (low + high) / 2
        total = math.fsum(max(s - middle, 0.0) ** (1 / (alpha - 1)) for s in scaled)
        low, high = (middle, high) if total >= 1 else (low, middle)
    weights = [max(s - low, 0.0) ** (1 / (alpha - 1)) for s in scaled]
    return [w / math.fsum(weights) for w in weights]


def sa_softmax(row: Row, p: dict[str, float]) -> list[float]:
    low, high = min(0.0, *row), max(0.0, *row)
    return [(x - low) / (high - low) * w for x, w in zip(row, softmax(row), strict=True)]


def cosformer(row: Row, p: dict[str, float]) -> list[float]:
    total = math.fsum(max(x, 0.0) for x in row)
    return [max(x, 0.0) / total if total else 0.0 for x in row]


ORACLES: dict[str, Oracle] = {
    "softmax": lambda row, p: softmax(row),
    "ssa": ssa,
    "temperature": lambda row, p: softmax([x / p["T"] for x in row]),
    "adaptive_temperature": adaptive_temperature,
    "ssmax": lambda row, p: softmax([p["s"] * math.log(len(row)) * x for x in row]),
    "softmax_plus_one": lambda row, p: with_sink(row, 0.0),
    "sink": lambda row, p: with_sink(row, p["c"]),
    "softpick": softpick,
    "sparsemax": lambda row, p: bisected(row, 2.0),
    "entmax15": lambda row, p: bisected(row, 1.5),
    "entmax": lambda row, p: bisected(row, p["alpha"]),
    "sa_softmax": sa_softmax,
    "sigmoid": lambda row, p: [1 / (1 + math.exp(-x - p["beta"])) for x in row],
    "relu": lambda row, p: [max(x, 0.0) / len(row) for x in row],
    "cosformer": cosformer,
}
every_function = pytest.mark.parametrize("name", list(SCORING))


def weigh(name: str, row: Row, dtype: torch.dtype = torch.float64, **initial: float) -> list[float]:
    """Weights of one row, with the given parameters fixed."""
    function = SCORING[name](1, initial=initial, learnable=dict.fromkeys(initial, False)).double()
    logits = torch.tensor([row], dtype=dtype).view(1, 1, 1, -1)
    weights: Tensor = function(logits, torch.ones_like(logits, dtype=torch.bool))
    return weights.detach().flatten().tolist()


def compare(name: str, oracle: Oracle) -> None:
    """A thousand rows of 1 to 13 visible keys, among hidden ones that hold NaN, each with its own scale."""
    generator = torch.Generator().manual_seed(5)
    scales = torch.tensor(SCALES, dtype=torch.float64).repeat(CASES // len(SCALES))
    logits = torch.randn(CASES, 1, 1, KEYS, generator=generator, dtype=torch.float64) * scales.view(-1, 1, 1, 1)
    visible = torch.rand(CASES, 1, 1, KEYS, generator=generator) < 0.7
    visible[torch.arange(CASES), 0, 0, torch.arange(CASES) % KEYS] = True
    for shift in (0.0, 0.4):  # where the parameters start, and away from there
        function = SCORING[name](1).double()
        with torch.no_grad():
            for raw in function.parameters():
                raw += shift
            weights = function(logits.masked_fill(~visible, math.nan), visible)
        parameters = {key: values[0] for key, values in function.values().items()}
        for i in range(CASES):
            seen = visible[i, 0, 0]
            right = np.array(oracle(logits[i, 0, 0, seen].tolist(), parameters))
            np.testing.assert_allclose(weights[i, 0, 0, seen].numpy(), right, rtol=1e-9, atol=1e-12, err_msg=str(i))


def test_comparison_fails_on_a_wrong_formula() -> None:
    with pytest.raises(AssertionError):
        compare("softmax_plus_one", lambda row, p: with_sink(row, 1e-3))


@every_function
def test_a_thousand_rows_equal_the_formula(name: str) -> None:
    compare(name, ORACLES[name])


@pytest.mark.parametrize(
    ("name", "row", "initial", "expected"),
    [
        ("sparsemax", (-2.0, 0.0, 0.5), {}, (0.0, 0.25, 0.75)),
        ("entmax", (1.0, 0.0), {"alpha": 1.0}, (0.7310586, 0.2689414)),
        ("softmax_plus_one", (-10.0, -10.0), {}, (4.53958e-5, 4.53958e-5)),
        ("sink", (0.0, 0.0), {"c": 0.0}, (1 / 3, 1 / 3)),
        ("softpick", (0.0, 0.0, 0.0), {}, (0.0, 0.0, 0.0)),
        ("sa_softmax", (2.0, 1.0, 0.0), {}, (0.6652410, 0.1223642, 0.0)),
        ("sa_softmax", (0.0, 0.0), {}, (0.0, 0.0)),
        ("ssmax", (2.0, 0.0), {"s": 1.0}, (0.8, 0.2)),
        ("sigmoid", (1.0, 0.0), {"beta": -math.log(3)}, (0.4753669, 0.25)),
        ("relu", (3.0, -1.0, 0.0), {}, (1.0, 0.0, 0.0)),
        ("cosformer", (3.0, -1.0, 1.0), {}, (0.75, 0.0, 0.25)),
        ("temperature", (2.0, 0.0), {"T": 2.0}, (0.7310586, 0.2689414)),
    ],
)
def test_known_values(name: str, row: Row, initial: dict[str, float], expected: Row) -> None:
    assert weigh(name, row, **initial) == pytest.approx(expected, abs=1e-6)


def test_entmax15_at_the_example_of_its_library() -> None:
    assert weigh("entmax15", (-2.0, 0.0, 0.5)) == pytest.approx([0.0, 0.3260, 0.6740], abs=5e-5)


def test_adaptive_temperature_reads_its_polynomial_from_the_highest_power() -> None:
    """A row whose entropy is 2 nats: β = 2.099; read backwards the coefficients would give 2.405."""
    function = SCORING["adaptive_temperature"](1)
    low, high = 0.0, 5.0
    for _ in range(60):
        scale = (low + high) / 2
        row = [scale * x for x in range(10)]
        entropy = -sum(w * math.log(w) for w in softmax(row))
        low, high = (scale, high) if entropy > 2 else (low, scale)
    logits = torch.tensor(row, dtype=torch.float64).view(1, 1, 1, -1)
    beta = function.sharpness(logits, torch.ones(10, dtype=torch.bool))  # type: ignore[operator]
    assert float(beta) == pytest.approx(2.099, abs=5e-4)


LIBRARY = {
    "sparsemax": (2.0, entmax.sparsemax),
    "entmax15": (1.5, entmax.entmax15),
    "entmax": (1.3, lambda x, dim: entmax.entmax_bisect(x, 1.3, dim)),
}


@pytest.mark.parametrize("name", list(LIBRARY))
def test_entmax_equals_the_library_with_its_gradient(name: str) -> None:
    alpha, library = LIBRARY[name]
    initial = {"alpha": alpha} if name == "entmax" else {}
    function = SCORING[name](1, initial=initial).double()
    logits = 2 * torch.randn(211, 1, 3, 17, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    upstream = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    weights, expected = function(ours, torch.ones(17, dtype=torch.bool)), library(theirs, dim=-1)
    torch.testing.assert_close(weights, expected, rtol=1e-7, atol=1e-9)
    (weights * upstream).sum().backward()
    (expected * upstream).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-6, atol=1e-8)


def test_entmax_gradient_of_alpha_equals_the_library_and_has_its_limit_at_one() -> None:
    logits = torch.randn(29, 1, 3, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    upstream = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    visible = torch.ones(7, dtype=torch.bool)

    def slope(value: float) -> float:
        function = SCORING["entmax"](1, initial={"alpha": value}).double()
        (function(logits, visible) * upstream).sum().backward()
        raw = function.raw_alpha
        sigmoid = torch.sigmoid(raw.detach())
        return float(raw.grad / (sigmoid * (1 - sigmoid)))  # type: ignore[operator]

    for value in (1.3, 1.7):
        alpha = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        (entmax.entmax_bisect(logits, alpha, -1) * upstream).sum().backward()
        assert slope(value) == pytest.approx(float(alpha.grad), rel=1e-5)
    p = torch.softmax(logits, -1)
    squares = p.log() ** 2
    limit = float((upstream * p * ((p * squares).sum(-1, keepdim=True) - squares) / 2).sum())
    assert slope(1.00001) == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_entmax_stays_exact_far_from_zero_in_half_precision(alpha: float) -> None:
    """A bisection in bfloat16 gives NaN here; the logits themselves are 1 apart, which bfloat16 cannot hold at 1000."""
    row = [1000.0, 992.0, 984.0]
    function = SCORING["entmax"](1, initial={"alpha": alpha}, learnable={"alpha": False})
    logits = torch.tensor(row, dtype=torch.bfloat16).view(1, 1, 1, -1)
    weights = function(logits, torch.ones(3, dtype=torch.bool)).flatten().float().tolist()
    assert weights == pytest.approx([1.0, 0.0, 0.0], abs=1e-3)


def test_cosformer_compares_as_the_quadratic_reference_does() -> None:
    """relu(q)·relu(k) from cos(a − b) = cos a cos b + sin a sin b, as the source splits it, causal."""
    batch, heads, tokens, width, m = 2, 3, 11, 5, 13.0
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, batch, heads, tokens, width, generator=generator, dtype=torch.float64)
    angle = (math.pi / 2 * torch.arange(tokens, dtype=torch.float64) / m)[:, None]
    parts = [(query.relu() * turn(angle)) @ (key.relu() * turn(angle)).mT for turn in (torch.cos, torch.sin)]
    causal = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    scores = sum(parts) * causal
    expected = scores / scores.sum(-1, keepdim=True).clamp(min=1e-6)
    function = SCORING["cosformer"](heads, initial={"m": m}).double()
    weights = function(function.logits(query, key, torch.arange(tokens)), causal)
    torch.testing.assert_close(weights, expected, rtol=1e-9, atol=1e-12)
    last = function(function.logits(query[:, :, -1:], key, torch.arange(tokens)), causal[-1:])
    torch.testing.assert_close(last, expected[:, :, -1:], rtol=1e-9, atol=1e-12)


def test_cosformer_gives_nothing_beyond_its_distance() -> None:
    ones = torch.ones(1, 1, 7, 2, dtype=torch.float64)
    function = SCORING["cosformer"](1, initial={"m": 3.0}).double()
    row = function.logits(ones[:, :, -1:], ones, torch.arange(7)).flatten()
    assert row.tolist() == pytest.approx([0, 0, 0, 0, 2 * math.cos(math.pi / 3), 2 * math.cos(math.pi / 6), 2])
