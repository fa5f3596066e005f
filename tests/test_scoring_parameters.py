"""The parameters of every scoring function: where they start, what they refuse, which head they move."""

import inspect
import math

import pytest
import torch
from torch import Tensor

from ssa_viz.errors import InvalidInputError, UnknownNameError
from ssa_viz.scoring import SCORING, Parameter

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7

every_function = pytest.mark.parametrize("name", list(SCORING))
every_parameter = pytest.mark.parametrize(
    ("name", "parameter"), [(name, spec.name) for name in SCORING for spec in SCORING[name].parameters_spec]
)

learned_parameter = pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, spec.name) for name in SCORING for spec in SCORING[name].parameters_spec if not spec.constant],
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


@learned_parameter
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
    learned = [spec.name for spec in specs if not spec.constant]
    assert sorted(n for n, _ in learns.named_parameters()) == sorted(f"raw_{name}" for name in learned)
    assert all(parameter.shape == (HEADS,) for parameter in learns.parameters())
    assert list(fixed.parameters()) == []
    assert sorted(fixed.state_dict()) == sorted(spec.name for spec in specs)
    torch.testing.assert_close(learns(logits, visible), fixed(logits, visible), rtol=1e-5, atol=1e-7)
    for spec in specs:
        assert fixed.values()[spec.name] == pytest.approx([spec.default] * HEADS, rel=1e-7)
        assert learns.values()[spec.name] == pytest.approx([spec.default] * HEADS, rel=1e-6, abs=1e-6)


@every_parameter
@pytest.mark.parametrize("learns", [True, False])
def test_initial_value_is_where_it_starts(name: str, parameter: str, learns: bool) -> None:
    spec = next(spec for spec in SCORING[name].parameters_spec if spec.name == parameter)
    base = 0.0 if math.isinf(spec.lower) else spec.lower
    inside = [value for value in (base + 1e-3, base + 0.7, base + 50.0, spec.slider[1]) if value < spec.upper]
    assert len(inside) >= 2
    for value in inside:
        function = SCORING[name](HEADS, initial={parameter: value}, learnable={parameter: learns and not spec.constant})
        assert function.values()[parameter] == pytest.approx([value] * HEADS, rel=1e-5)


@every_parameter
def test_bounds_are_kept(name: str, parameter: str) -> None:
    spec = next(spec for spec in SCORING[name].parameters_spec if spec.name == parameter)
    for bound, outside in ((spec.lower, spec.lower - 0.1), (spec.upper, spec.upper + 0.1)):
        if math.isinf(bound):
            continue
        with pytest.raises(InvalidInputError, match=f"{parameter} must be a number from"):
            SCORING[name](HEADS, initial={parameter: outside}, learnable={parameter: False})
        if spec.inclusive:
            function = SCORING[name](HEADS, initial={parameter: bound}, learnable={parameter: False})
            assert function.values()[parameter] == [bound] * HEADS
        if not spec.constant:
            with pytest.raises(InvalidInputError, match=f"{parameter} must be a number from"):
                SCORING[name](HEADS, initial={parameter: bound}, learnable={parameter: True})
    if spec.constant:
        with pytest.raises(InvalidInputError, match="cannot learn"):
            SCORING[name](HEADS, learnable={parameter: True})


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (Parameter("p", "p", "free", 0.0, -math.inf, (-3, 3)), -2.5),
        (Parameter("p", "p", "above 1", 2.0, 1.0, (1, 3)), 1.25),
        (Parameter("p", "p", "between", 1.5, 1.0, (1, 2), upper=2.0), 1.875),
    ],
)
def test_raw_values_map_into_the_bounds_and_back(spec: Parameter, value: float) -> None:
    raw = torch.linspace(-30, 30, 61, dtype=torch.float64)
    inside = spec.constrained(raw)
    assert bool((inside.diff() >= 0).all())
    assert spec.lower <= float(inside[0])
    assert float(inside[-1]) <= spec.upper
    assert float(spec.constrained(torch.tensor(spec.unconstrained(value), dtype=torch.float64))) == pytest.approx(value)


@every_parameter
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, "many", None])
@pytest.mark.parametrize("learns", [True, False])
def test_broken_initial_value_is_refused(name: str, parameter: str, value: object, learns: bool) -> None:
    spec = next(spec for spec in SCORING[name].parameters_spec if spec.name == parameter)
    learnable = {parameter: learns and not spec.constant}
    with pytest.raises(InvalidInputError, match=f"{parameter} must be a number"):
        SCORING[name](HEADS, initial={parameter: value}, learnable=learnable)  # type: ignore[dict-item]


@every_function
@pytest.mark.parametrize("option", ["initial", "learnable"])
def test_unknown_parameter_is_refused_with_the_known_ones(name: str, option: str) -> None:
    with pytest.raises(UnknownNameError) as refusal:
        SCORING[name](HEADS, **{option: {"sharpness": 1}})
    message = str(refusal.value)
    assert "'sharpness'" in message
    known = [spec.name for spec in SCORING[name].parameters_spec]
    assert message.endswith(f"it has: {', '.join(known) or 'none'}")
