"""The parameters of every scoring function: where they start, what they refuse, which head they move."""

import inspect
import math

import pytest
import torch
from torch import Tensor

from ssa_viz.errors import InvalidInputError, UnknownNameError
from ssa_viz.scoring import SCORING

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7

every_function = pytest.mark.parametrize("name", list(SCORING))
every_parameter = pytest.mark.parametrize(
    ("name", "parameter"), [(name, spec.name) for name in SCORING for spec in SCORING[name].parameters_spec]
)


def draw() -> tuple[Tensor, Tensor]:
    """Logits (B, H, Q, K), and a mask (Q, K) with a hidden triangle."""
    logits = 3 * torch.randn(BATCH, HEADS, QUERIES, KEYS, generator=torch.Generator().manual_seed(0))
    return logits, torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(diagonal=2)


@every_function
def test_describes_itself(name: str) -> None:
    cls = SCORING[name]
    assert cls.name == name
    assert cls.label
    assert cls.formula
    assert inspect.getdoc(cls)
    assert cls.source.startswith("https://")
    for spec in cls.parameters_spec:
        low, high = spec.slider
        assert low <= spec.default <= high
        assert spec.symbol
        assert spec.meaning
        for value in spec.slider:
            assert spec.validate(value, learnable=False) == value


@every_parameter
@pytest.mark.parametrize("head", range(HEADS))
def test_a_parameter_acts_on_its_own_head_only(name: str, parameter: str, head: int) -> None:
    logits, visible = draw()
    function = SCORING[name](HEADS)
    before = function(logits, visible)
    with torch.no_grad():
        getattr(function, f"raw_{parameter}")[head] += 1.0
    moved = (function(logits, visible) - before).abs().amax(dim=(0, 2, 3))
    assert [bool(m > 1e-3) for m in moved] == [h == head for h in range(HEADS)]


@every_function
def test_learnable_and_fixed_give_the_same_weights(name: str) -> None:
    logits, visible = draw()
    specs = SCORING[name].parameters_spec
    learns = SCORING[name](HEADS)
    fixed = SCORING[name](HEADS, learnable={spec.name: False for spec in specs})
    assert sorted(n for n, _ in learns.named_parameters()) == sorted(f"raw_{spec.name}" for spec in specs)
    assert all(parameter.shape == (HEADS,) for parameter in learns.parameters())
    assert list(fixed.parameters()) == []
    assert sorted(fixed.state_dict()) == sorted(spec.name for spec in specs)
    torch.testing.assert_close(learns(logits, visible), fixed(logits, visible), rtol=1e-5, atol=1e-7)
    for spec in specs:
        assert fixed.values()[spec.name] == [spec.default] * HEADS
        assert learns.values()[spec.name] == pytest.approx([spec.default] * HEADS, rel=1e-6)


@every_parameter
@pytest.mark.parametrize("learns", [True, False])
def test_initial_value_is_where_it_starts(name: str, parameter: str, learns: bool) -> None:
    spec = next(spec for spec in SCORING[name].parameters_spec if spec.name == parameter)
    for value in (spec.lower + 1e-3, spec.lower + 0.7, spec.lower + 50.0, spec.slider[1]):
        function = SCORING[name](HEADS, initial={parameter: value}, learnable={parameter: learns})
        assert function.values()[parameter] == pytest.approx([value] * HEADS, rel=1e-6)


@every_parameter
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, "many", None])
@pytest.mark.parametrize("learns", [True, False])
def test_broken_initial_value_is_refused(name: str, parameter: str, value: object, learns: bool) -> None:
    with pytest.raises(InvalidInputError, match=f"{parameter} must be a number"):
        SCORING[name](HEADS, initial={parameter: value}, learnable={parameter: learns})  # type: ignore[dict-item]


@every_function
@pytest.mark.parametrize("option", ["initial", "learnable"])
def test_unknown_parameter_is_refused_with_the_known_ones(name: str, option: str) -> None:
    with pytest.raises(UnknownNameError) as refusal:
        SCORING[name](HEADS, **{option: {"sharpness": 1}})
    message = str(refusal.value)
    assert "'sharpness'" in message
    known = [spec.name for spec in SCORING[name].parameters_spec]
    assert message.endswith(f"it has: {', '.join(known) or 'none'}")
