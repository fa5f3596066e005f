"""SSA against its power formula in float64, its closed-form gradients, its limits and known numbers."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssa_viz.errors import InvalidInputError
from ssa_viz.scoring import SCORING, ScoringFunction

Array = NDArray[np.float64]


def ssa(n: float, b: float, dtype: torch.dtype = torch.float64) -> ScoringFunction:
    """One head with fixed n and b, exact in `dtype`."""
    function = SCORING["ssa"](1, learnable={"n": False, "b": False}).to(dtype)
    function.get_buffer("n").fill_(n)
    function.get_buffer("b").fill_(b)
    return function


def weigh(function: ScoringFunction, x: Tensor) -> Tensor:
    """Weights (K,) of one row of logits (K,), all visible."""
    return function(x.view(1, 1, 1, -1), torch.ones(1, len(x), dtype=torch.bool)).flatten()


def power(x: Array, n: float, b: float) -> Array:
    """The definition, literally: s = (1 + b|x|)^(sgn(x)·n), w = s / Σ s."""
    score = (1 + b * np.abs(x)) ** (np.sign(x) * n)
    return np.asarray(score / score.sum())


def random_cases(count: int) -> list[tuple[Array, float, float]]:
    generator = np.random.default_rng(0)
    cases = []
    for _ in range(count):
        x = generator.normal(size=generator.integers(1, 14)) * 10 ** generator.uniform(-2, 2)
        x[generator.random(len(x)) < 0.1] = generator.choice([0.0, -0.0])
        cases.append((x, float(generator.uniform(1, 6)), float(10 ** generator.uniform(-1.3, 1))))
    return cases


def assert_weights(actual: Tensor, expected: Array, tolerance: float) -> None:
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_assertion_fails_on_a_wrong_value() -> None:
    assert_weights(torch.tensor([0.5, 0.5]), np.array([0.5, 0.5]), 1e-6)
    with pytest.raises(AssertionError):
        assert_weights(torch.tensor([0.5, 0.5]), np.array([0.50001, 0.49999]), 1e-6)
    with pytest.raises(AssertionError):
        assert_weights(torch.tensor([math.nan, 0.5]), np.array([0.5, 0.5]), 1e-6)


def test_power_formula_on_a_thousand_rows() -> None:
    for x, n, b in random_cases(1000):
        row = torch.from_numpy(x)
        assert_weights(weigh(ssa(n, b), row), power(x, n, b), 1e-12)
        single = row.float()
        rounded = power(single.double().numpy(), float(np.float32(n)), float(np.float32(b)))
        assert_weights(weigh(ssa(n, b, torch.float32), single), rounded, 1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 6e-4), (torch.bfloat16, 5e-3)])
def test_half_precision_errs_only_by_its_rounding(dtype: torch.dtype, tolerance: float) -> None:
    for x, n, b in random_cases(100):
        row = torch.from_numpy(x).to(dtype)
        weights = weigh(ssa(n, b, torch.float32), row)
        assert weights.dtype == dtype
        assert_weights(weights.double(), power(row.double().numpy(), n, b), tolerance)


def test_gradients_are_the_closed_forms() -> None:
    for x, n, b in random_cases(200):
        row = torch.from_numpy(x).requires_grad_()
        parameters = {name: torch.tensor([v], dtype=torch.float64).requires_grad_() for name, v in (("n", n), ("b", b))}
        factors = np.cos(np.arange(len(x)))
        mask = torch.ones(1, len(x), dtype=torch.bool)
        call = torch.func.functional_call(ssa(2.0, 1.0), parameters, (row.view(1, 1, 1, -1), mask))
        (call.flatten() * torch.from_numpy(factors)).sum().backward()
        w = power(x, n, b)
        by_z = (np.diag(w) - np.outer(w, w)) @ factors  # softmax's Jacobian
        logs = np.log(1 + b * np.abs(x))
        for tensor, expected in (
            (row, by_z * n * b / (1 + b * np.abs(x))),
            (parameters["n"], [(by_z * np.sign(x) * logs).sum()]),
            (parameters["b"], [(by_z * n * x / (1 + b * np.abs(x))).sum()]),
        ):
            assert tensor.grad is not None
            assert_weights(tensor.grad, np.asarray(expected), 1e-10)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(("n", "b"), [(1.5, 0.8), (1.0, 1.0), (6.0, 0.05), (2.3, 10.0)])
def test_slope_at_exactly_zero_is_n_times_b(zero: float, n: float, b: float) -> None:
    x = torch.tensor([zero, 1.0], dtype=torch.float64, requires_grad=True)
    weights = weigh(ssa(n, b), x)
    weights[0].backward()
    assert x.grad is not None
    w = power(np.array([0.0, 1.0]), n, b)
    assert x.grad[0].item() / (w[0] * (1 - w[0])) == pytest.approx(n * b, rel=1e-12)
    if (n, b) == (1.5, 0.8):
        assert x.grad[0].item() == pytest.approx(0.2485, abs=5e-5)


@pytest.mark.parametrize("row", [[0.3, -1.7, 2.9, 0.0, 11.0], [0.0, -0.0, 0.0, 1.0, -1.0]])
def test_gradcheck_for_logits_and_both_forms_of_the_parameters(row: list[float]) -> None:
    x = torch.tensor(row, dtype=torch.float64).view(1, 1, 1, -1).requires_grad_()
    mask = torch.tensor([True, True, True, True, False])
    raw = SCORING["ssa"](1).double()
    for function, names in ((raw, ("raw_n", "raw_b")), (ssa(1.5, 0.8), ("n", "b"))):
        values = [torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in (1.3, 0.8)]

        def call(
            logits: Tensor, n: Tensor, b: Tensor, f: ScoringFunction = function, k: tuple[str, str] = names
        ) -> Tensor:
            return torch.func.functional_call(f, dict(zip(k, (n, b), strict=True)), (logits, mask))  # type: ignore[no-any-return]

        assert torch.autograd.gradcheck(call, (x, *values))


def test_adding_a_constant_changes_the_weights() -> None:
    function = ssa(1.5, 0.8)
    row = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)
    assert_weights(weigh(function, row), np.array([0.551, 0.317, 0.131]), 1e-3)
    shifted = weigh(function, row + 100)
    assert_weights(shifted, np.array([0.338, 0.333, 0.328]), 1e-3)


@pytest.mark.parametrize(
    ("m", "error"), [(1, 0.210), (10, 0.0336), (100, 0.00356), (1000, 3.6e-4), (1_000_000, 3.6e-7)]
)
def test_n_equal_m_and_b_one_over_m_tends_to_softmax(m: int, error: float) -> None:
    x = np.array([2, 0.5, -1, -3])
    softmax = np.exp(x) / np.exp(x).sum()
    function = SCORING["ssa"](1, initial={"n": m, "b": 1 / m}, learnable={"n": False, "b": False}).double()
    found = np.abs(weigh(function, torch.from_numpy(x)).numpy() - softmax).max()
    assert found == pytest.approx(error, rel=0.01)


def test_magnified_logits_keep_sharing_the_weight() -> None:
    x = np.array([1, 0.8, 0.5, -0.2, 0])
    for n, b in ((1.0, 1.0), (1.5, 0.8), (4.0, 3.0)):
        positive = np.maximum(x, 0) ** n
        assert_weights(weigh(ssa(n, b), torch.from_numpy(1e9 * x)), positive / positive.sum(), 1e-8)
    collapsed = SCORING["softmax"](1)
    assert_weights(weigh(collapsed, torch.from_numpy(1e9 * x)), np.array([1, 0, 0, 0, 0]), 0)
    masses = [1 - float(weigh(ssa(1.5, 0.8), torch.from_numpy(s * x[:4])).max()) for s in (1, 10, 100, 1e4)]
    assert masses == pytest.approx([0.654, 0.539, 0.519, 0.517], abs=6e-4)


@pytest.mark.parametrize("n", [1.0, 1.5, 3.0])
def test_contextual_mass_of_one_growing_logit_falls_with_slope_minus_n(n: float) -> None:
    b, rest = 0.8, [0.3, -0.4, 1.1]

    def mass(t: float) -> float:
        return float(weigh(ssa(n, b), torch.tensor([t, *rest], dtype=torch.float64))[1:].sum())

    slope = (math.log(mass(1e7)) - math.log(mass(1e5))) / (math.log(1e7) - math.log(1e5))
    assert slope == pytest.approx(-n, abs=1e-3)
    others = sum((1 + b * abs(x)) ** math.copysign(n, x) for x in rest)
    assert mass(70.0) == pytest.approx(others / (others + (1 + b * 70) ** n), rel=1e-12)


def test_many_hidden_keys_leak_nothing() -> None:
    logits = torch.tensor([1.0, -0.5] + [-1e4] * 1000).view(1, 1, 1, -1)
    visible = torch.arange(1002) < 2
    weights = ssa(1.0, 0.8, torch.float32)(logits, visible).flatten()
    assert weights[2:].tolist() == [0.0] * 1000
    assert_weights(weights[:2], power(np.array([1, -0.5]), 1.0, 0.8), 1e-6)
    leaked = ssa(1.0, 0.8, torch.float32)(logits, torch.ones(1002, dtype=torch.bool)).flatten()
    assert float(leaked[2:].sum()) == pytest.approx(0.047, abs=1e-3)  # what a finite mask would have given away


def test_largest_logits_are_finite_for_every_b() -> None:
    heads = 1009
    function = SCORING["ssa"](heads, learnable={"n": False, "b": False})
    function.get_buffer("b").copy_(torch.logspace(-6, 6, heads))
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        most = torch.finfo(dtype).max
        rows = torch.tensor([most, most / 2, 0.0, -most], dtype=dtype).expand(1, heads, 1, 4)
        weights = function(rows, torch.ones(4, dtype=torch.bool))
        assert bool(torch.isfinite(weights).all())
        assert bool((weights[..., 0] >= weights[..., 1]).all())


def test_n_of_one_is_allowed_only_when_it_is_fixed() -> None:
    assert SCORING["ssa"](2, initial={"n": 1}, learnable={"n": False}).values()["n"] == [1.0, 1.0]
    with pytest.raises(InvalidInputError, match=r"n must be .*1 when it is fixed.* not 1"):
        SCORING["ssa"](2, initial={"n": 1})


@pytest.mark.parametrize("initial", [{"n": 0.99}, {"n": -2}, {"b": 0}, {"b": -0.5}, {"b": math.nan}, {"n": 1e-300}])
@pytest.mark.parametrize("learns", [True, False])
def test_values_outside_the_range_are_refused(initial: dict[str, float], learns: bool) -> None:
    with pytest.raises(InvalidInputError, match="must be a number from"):
        SCORING["ssa"](2, initial=initial, learnable=dict.fromkeys(initial, learns))


def test_learned_values_never_leave_their_range() -> None:
    function = SCORING["ssa"](5)
    with torch.no_grad():
        for parameter in function.parameters():
            parameter.copy_(torch.tensor([-80.0, -5.0, 0.0, 5.0, 80.0]))
    assert bool((function.value("n") >= 1).all())
    assert bool((function.value("b") > 0).all())
