"""How scoring functions behave when logits are shifted or scaled, and what they become at the ends of a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssa_viz.scoring import SCORING

quick = settings(deadline=None, derandomize=True, max_examples=40, database=None)
rows = st.lists(st.floats(-6, 6), min_size=2, max_size=7)
every_function = pytest.mark.parametrize("name", list(SCORING))

# Adding a constant to all logits of a row changes nothing.
SHIFT_INVARIANT = {
    "softmax", "temperature", "adaptive_temperature", "ssmax", "sparsemax", "entmax15", "entmax",
}  # fmt: skip
# Multiplying all logits by one factor above 0 changes nothing.
SCALE_INVARIANT = {"cosformer"}


def weigh(name: str, row: list[float], initial: Mapping[str, float] | None = None) -> Tensor:
    initial = dict(initial or {})
    function = SCORING[name](1, initial=initial, learnable=dict.fromkeys(initial, False)).double()
    logits = torch.tensor(row, dtype=torch.float64).view(1, 1, 1, -1)
    weights: Tensor = function(logits, torch.ones(len(row), dtype=torch.bool)).detach().flatten()
    return weights


def close(one: Tensor, other: Tensor, atol: float = 1e-9) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=atol)


@pytest.mark.parametrize("name", sorted(SHIFT_INVARIANT))
@given(row=rows, shift=st.floats(-50, 50))
@quick
def test_a_shift_changes_nothing_where_it_should_not(name: str, row: list[float], shift: float) -> None:
    close(weigh(name, [x + shift for x in row]), weigh(name, row))


@pytest.mark.parametrize("name", [name for name in SCORING if name not in SHIFT_INVARIANT])
def test_a_shift_changes_the_others(name: str) -> None:
    row = [2.0, 1.0, -1.0]
    assert (weigh(name, [x + 3.0 for x in row]) - weigh(name, row)).abs().max() > 1e-3


@pytest.mark.parametrize("name", sorted(SCALE_INVARIANT))
@given(row=rows, factor=st.floats(0.01, 100))
@quick
def test_a_factor_changes_nothing_where_it_should_not(name: str, row: list[float], factor: float) -> None:
    close(weigh(name, [x * factor for x in row]), weigh(name, row))


@pytest.mark.parametrize("name", [name for name in SCORING if name not in SCALE_INVARIANT])
def test_a_factor_changes_the_others(name: str) -> None:
    row = [0.6, 0.3, -0.1]
    assert (weigh(name, [x * 1.5 for x in row]) - weigh(name, row)).abs().max() > 1e-3


@given(row=rows)
@quick
def test_temperature_at_its_ends(row: list[float]) -> None:
    close(weigh("temperature", row, {"T": 1.0}), weigh("softmax", row))
    close(weigh("temperature", row, {"T": 1e6}), torch.full((len(row),), 1 / len(row), dtype=torch.float64), 1e-5)
    cold, most = weigh("temperature", row, {"T": 1e-6}), max(row)
    best = torch.tensor([x > most - 1e-12 for x in row])
    if all(x == most or x < most - 1e-4 for x in row):
        close(cold, best / best.sum().double())


@given(row=rows)
@quick
def test_entmax_runs_from_softmax_to_sparsemax(row: list[float]) -> None:
    close(weigh("entmax", row, {"alpha": 1.0}), weigh("softmax", row))
    close(weigh("entmax", row, {"alpha": 1.00001}), weigh("softmax", row), 1e-3)
    close(weigh("entmax", row, {"alpha": 1.5}), weigh("entmax15", row))
    close(weigh("entmax", row, {"alpha": 2.0}), weigh("sparsemax", row))
    supports = [int((weigh("entmax", row, {"alpha": alpha}) > 0).sum()) for alpha in (1.0, 1.25, 1.5, 1.75, 2.0)]
    assert supports == sorted(supports, reverse=True)


@given(row=rows)
@quick
def test_a_sink_that_is_far_below_is_softmax_and_one_at_zero_is_the_plus_one(row: list[float]) -> None:
    close(weigh("sink", row, {"c": -800.0}), weigh("softmax", row))
    close(weigh("sink", row, {"c": 0.0}), weigh("softmax_plus_one", row))
    assert float(weigh("sink", row, {"c": 800.0}).sum()) == 0
    assert float(weigh("sink", row, {"c": 1.0}).sum()) < float(weigh("sink", row, {"c": 0.0}).sum()) < 1


@given(row=rows)
@quick
def test_ssmax_is_softmax_where_its_factor_is_one(row: list[float]) -> None:
    # The parameter is held in float32.
    close(weigh("ssmax", row, {"s": 1 / math.log(len(row))}), weigh("softmax", row), 1e-6)
    close(weigh("ssmax", row[:1]), torch.ones(1, dtype=torch.float64))


@given(row=rows)
@quick
def test_ssa_tends_to_softmax(row: list[float]) -> None:
    far = (weigh("ssa", row, {"n": 100.0, "b": 0.01}) - weigh("softmax", row)).abs().max()
    near = (weigh("ssa", row, {"n": 1e5, "b": 1e-5}) - weigh("softmax", row)).abs().max()
    assert near <= far + 1e-12
    assert near < 1e-3


def test_adaptive_temperature_sharpens_only_what_is_spread_out() -> None:
    sharp, spread = [9.0, 0.0, -1.0], [0.4 * x for x in range(12)]
    close(weigh("adaptive_temperature", sharp), weigh("softmax", sharp))
    assert float(weigh("adaptive_temperature", spread).max()) > float(weigh("softmax", spread).max()) + 0.05


def test_functions_that_look_at_each_key_alone_ignore_the_others() -> None:
    for name in ("sigmoid", "relu"):
        one, other = weigh(name, [1.0, 0.5, -2.0]), weigh(name, [1.0, 70.0, -2.0])
        close(one[[0, 2]], other[[0, 2]])


def test_a_key_that_is_far_below_gets_exactly_nothing_from_the_sparse_functions() -> None:
    for name, distance in (("sparsemax", 1.0), ("entmax15", 2.0)):
        assert weigh(name, [0.0, -distance]).tolist() == [1.0, 0.0]
        assert float(weigh(name, [0.0, -0.99 * distance])[1]) > 0
    alpha = 1.25
    assert float(weigh("entmax", [0.0, -1.001 / (alpha - 1)], {"alpha": alpha})[1]) == 0
    assert float(weigh("entmax", [0.0, -0.9 / (alpha - 1)], {"alpha": alpha})[1]) > 0
