"""How concentrated a row is, in cases where the answer is known beforehand."""

import math

import pytest
import torch

from ssa_viz import metrics

UNIFORM = [torch.full((k,), 1 / k, dtype=torch.float64) for k in (1, 2, 3, 7, 41)]


@pytest.mark.parametrize("row", UNIFORM, ids=lambda row: f"{len(row)} keys")
def test_uniform_row(row: torch.Tensor) -> None:
    keys = len(row)
    assert float(metrics.entropy(row)) == pytest.approx(math.log(keys))
    assert float(metrics.effective_tokens(row)) == pytest.approx(keys)
    assert float(metrics.largest_weight(row)) == pytest.approx(1 / keys)
    assert float(metrics.contextual_mass(row)) == pytest.approx(1 - 1 / keys)


def test_one_hot_row() -> None:
    row = torch.eye(5)
    assert metrics.entropy(row).tolist() == [0.0] * 5
    assert not any(math.copysign(1, value) < 0 for value in metrics.entropy(row).tolist())
    assert metrics.effective_tokens(row).tolist() == [1.0] * 5
    assert metrics.contextual_mass(row).tolist() == [0.0] * 5


def test_uneven_row() -> None:
    row = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64)
    assert float(metrics.entropy(row)) == pytest.approx(1.75 * math.log(2))
    assert float(metrics.effective_tokens(row)) == pytest.approx(2**1.75)
    assert float(metrics.contextual_mass(row)) == 0.5


def test_mass_on_and_off_chosen_keys() -> None:
    rows = torch.tensor([[0.5, 0.25, 0.125, 0.125], [0.0, 0.0, 1.0, 0.0]])
    keys = torch.tensor([True, False, True, False])
    assert metrics.mass_on(rows, keys).tolist() == [0.625, 1.0]
    assert metrics.mass_off(rows, keys).tolist() == [0.375, 0.0]
    assert metrics.mass_off(rows, torch.zeros(4, dtype=torch.bool)).tolist() == [1.0, 1.0]


def test_collapse_needs_a_weight_above_nine_tenths_and_four_visible_keys() -> None:
    rows = torch.tensor([[0.95, 0.05, 0.0, 0.0, 0.0], [0.9, 0.1, 0.0, 0.0, 0.0], [0.901, 0.0, 0.0, 0.0, 0.099]])
    for seen in range(1, 6):
        visible = torch.arange(5) < seen
        wanted = [seen >= 4, False, seen >= 4]
        assert metrics.collapsed(rows.expand(2, 3, 3, 5), visible).tolist() == [[wanted] * 3] * 2
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    assert metrics.collapsed(torch.eye(5), causal).tolist() == [False, False, False, True, True]


def test_only_the_last_axis_is_reduced() -> None:
    weights = torch.rand(2, 3, 5, 7, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights /= weights.sum(dim=-1, keepdim=True)
    row = weights[1, 2, 3, 4].tolist()
    expected = {
        metrics.largest_weight: max(row),
        metrics.contextual_mass: 1 - max(row),
        metrics.entropy: -sum(w * math.log(w) for w in row),
        metrics.effective_tokens: math.exp(-sum(w * math.log(w) for w in row)),
    }
    for function, value in expected.items():
        found = function(weights)
        assert found.shape == (2, 3, 5, 7)
        assert float(found[1, 2, 3, 4]) == pytest.approx(value)
