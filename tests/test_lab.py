"""The lab's computation against closed forms in numpy and finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError, NonFiniteError, SSAVizError, UnknownNameError
from ssa_viz.inspect import lab
from ssa_viz.inspect.reading import Problem, read
from ssa_viz.model import ModelConfig, build
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import Outlier

ROW = (1.0, 0.8, 0.5, -0.2)
every_function = pytest.mark.parametrize("name", list(SCORING))


def softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=-1, keepdims=True))


def ssa(x: NDArray[np.float64], n: float = 1.5, b: float = 1.0) -> NDArray[np.float64]:
    scores = (1 + b * np.abs(x)) ** (np.sign(x) * n)
    return np.asarray(scores / scores.sum(axis=-1, keepdims=True))


def test_row_holds_what_a_student_would_compute() -> None:
    row = lab.row(lab.Chosen("ssa"), ROW)
    weights = ssa(np.array(ROW))
    np.testing.assert_allclose(row.weights, weights, rtol=1e-12)
    assert row.strongest == 0
    assert row.largest_weight == pytest.approx(weights.max())
    assert row.contextual_mass == pytest.approx(1 - weights.max())
    assert row.entropy == pytest.approx(-(weights * np.log(weights)).sum())
    assert row.effective_tokens == pytest.approx(math.exp(row.entropy))
    assert row.total == pytest.approx(1)
    assert row.nowhere == 0


def test_row_reports_what_goes_to_no_token_and_normalises_before_the_entropy() -> None:
    row = lab.row(lab.Chosen("sink", (("c", 2.0),)), ROW)
    scores = np.exp(np.array([*ROW, 2.0]))
    weights = scores[:-1] / scores.sum()
    share = weights / weights.sum()
    assert row.nowhere == pytest.approx(scores[-1] / scores.sum())
    assert row.contextual_mass == pytest.approx(weights.sum() - weights.max())
    assert row.entropy == pytest.approx(-(share * np.log(share)).sum())
    empty = lab.row(lab.Chosen("softpick"), (-1.0, -2.0))
    assert (empty.strongest, empty.total, empty.effective_tokens, empty.nowhere) == (None, 0, 0, 1)


@every_function
def test_mass_is_exact_where_one_minus_the_largest_would_round(name: str) -> None:
    row = lab.row(lab.Chosen(name), (40.0, 0.5, 0.0))
    order = np.sort(row.weights)[:-1]
    assert row.contextual_mass == pytest.approx(order.sum(), rel=1e-12, abs=0)
    softmax_row = lab.row(lab.Chosen("softmax"), (100.0, 0.5, 0.0))
    assert softmax_row.contextual_mass == pytest.approx(math.exp(-100) * (math.exp(0.5) + 1), rel=1e-9)


def test_magnifying_follows_the_formulas() -> None:
    factors = (0.1, 1.0, 10.0, 50.0, 100.0, 700.0)
    rows = np.array(factors)[:, None] * np.array(ROW)
    for name, formula in (("softmax", softmax), ("ssa", ssa)):
        curve = lab.magnify(lab.Chosen(name), ROW, factors)
        others = np.sort(formula(rows), axis=-1)[:, :-1].sum(axis=-1)
        np.testing.assert_allclose(curve.contextual_mass, others, rtol=1e-9)
    assert curve.closed_form is not None
    powers = np.array(ROW[:3]) ** 1.5
    np.testing.assert_allclose(curve.closed_form, 1 - powers.max() / powers.sum(), rtol=1e-9)


def test_published_numbers_of_the_magnified_row() -> None:
    """The mass outside the largest at λ = 1, 10, 100, 10⁴, for SSA with n = 1.5 and b = 0.8, and for softmax."""
    at = (1.0, 10.0, 100.0, 1e4)
    slow = lab.magnify(lab.Chosen("ssa", (("b", 0.8),)), ROW, at).contextual_mass
    fast = lab.magnify(lab.Chosen("softmax"), ROW, at).contextual_mass
    assert slow.tolist() == pytest.approx([0.654, 0.539, 0.519, 0.517], abs=6e-4)
    assert fast[:3].tolist() == pytest.approx([0.633, 0.124, 2e-9], rel=0.05)
    assert fast[3] == 0


def test_one_growing_logit_falls_with_slope_minus_n() -> None:
    for n in (1.0, 1.5, 3.0):
        curve = lab.grow(lab.Chosen("ssa", (("n", n),)), (0.0, *ROW), 0, (1e3, 1e4))
        slope = np.diff(np.log(curve.contextual_mass)) / np.diff(np.log(curve.at))
        assert slope[0] == pytest.approx(-n, abs=0.02)
        assert curve.closed_form is not None
        np.testing.assert_allclose(curve.contextual_mass, curve.closed_form, rtol=0.05)
    rows = lab.grow(lab.Chosen("softmax"), (0.0, *ROW), 0, (-1.0, 0.5, 5.0, 30.0))
    assert np.isnan(rows.closed_form[:2]).all()  # type: ignore[index]
    assert rows.closed_form[3] == pytest.approx(np.exp(ROW).sum() * math.exp(-30))  # type: ignore[index]
    assert rows.contextual_mass[3] == pytest.approx(np.exp(ROW).sum() * math.exp(-30), rel=1e-9)


@every_function
def test_curves_meet_their_closed_forms(name: str) -> None:
    chosen = lab.Chosen(name)
    for curve in (lab.magnify(chosen, ROW, (1e3, 1e4)), lab.grow(chosen, ROW, 2, (1e3, 1e4))):
        if curve.closed_form is not None:
            np.testing.assert_allclose(curve.contextual_mass[-1], curve.closed_form[-1], rtol=0.02, atol=1e-300)


def test_ssa_meets_softmax_like_one_over_m() -> None:
    logits = (2.0, 0.5, -1.0, -3.0)
    meeting = lab.meet(logits, 10.0)
    differences = [np.abs(ssa(np.array(logits), m, 1 / m) - softmax(np.array(logits))).max() for m in meeting.m[:31]]
    np.testing.assert_allclose(meeting.difference[:31], differences, rtol=1e-6)
    np.testing.assert_allclose(meeting.softmax, softmax(np.array(logits)), rtol=1e-12)
    assert meeting.difference_at == pytest.approx(0.0336, abs=1e-4)
    assert lab.meet(logits, 1.0).difference_at == pytest.approx(0.210, abs=1e-3)
    assert lab.meet(logits, 1000.0).difference_at == pytest.approx(3.6e-4, abs=1e-5)
    assert meeting.difference[-1] < 1e-6
    assert bool((np.diff(meeting.difference) < 0).all())


@every_function
def test_slopes_are_the_differences_of_what_is_drawn(name: str) -> None:
    xs = np.linspace(-6.03, 6.05, 35)
    step = 1e-5
    found, above, below = (lab.shape(lab.Chosen(name), tuple(xs + d), (0.3, -0.4)) for d in (0, step, -step))
    for values, slope in (("weight", "weight_slope"), ("score", "score_slope")):
        if getattr(found, values) is None:
            assert getattr(found, slope) is None
            continue
        expected = (getattr(above, values) - getattr(below, values)) / (2 * step)
        np.testing.assert_allclose(getattr(found, slope), expected, rtol=1e-4, atol=1e-6)
    assert found.x.tolist() == xs.tolist()


@every_function
def test_jacobian_by_finite_differences(name: str) -> None:
    logits = np.array([1.3, 0.9, -0.35, 0.21])
    found = lab.jacobian(lab.Chosen(name), logits.tolist())
    step = 1e-6
    for j in range(4):
        moved = [logits + sign * step * np.eye(4)[j] for sign in (1, -1)]
        up, down = (lab.row(lab.Chosen(name), each.tolist()).weights for each in moved)
        np.testing.assert_allclose(found[:, j], (up - down) / (2 * step), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(lab.reached(found), np.abs(found).sum(axis=0))


def test_softmax_stops_learning_where_one_token_shouts_and_ssa_does_not() -> None:
    logits = (70.0, 1.0, 0.5)
    quiet, alive = (lab.reached(lab.jacobian(lab.Chosen(name), logits)) for name in ("softmax", "ssa"))
    assert quiet.max() < 1e-25
    assert alive[1:].min() > 1e-4


def test_cosformer_weakens_with_distance_from_the_last_key() -> None:
    row = lab.row(lab.Chosen("cosformer", (("m", 10.0),)), (1.0, 1.0, 1.0))
    nearness = np.cos(np.pi / 2 * np.array([2, 1, 0]) / 10)
    np.testing.assert_allclose(row.weights, nearness / nearness.sum(), rtol=1e-9)


def test_a_real_row_is_the_models_own() -> None:
    model = build(ModelConfig(layers=2, heads=3, width=15, context=7, init="torch"), 0)
    reading = read(model, Problem("every", "numbers", (0.5, -1.0, 2.0, 0.3), outlier=Outlier(70.0, 2)))
    logits = lab.from_reading(reading, 1, 2, 2)
    assert logits == reading.logits[1, 2, 2, :3].tolist()
    np.testing.assert_allclose(lab.row(lab.Chosen("softmax"), logits).weights, reading.weights[1, 2, 2, :3], atol=1e-6)
    for layer, head, query in ((2, 0, 0), (0, 3, 0), (0, 0, 4), (-1, 0, 0)):
        with pytest.raises(InvalidInputError, match="must be from 0 to"):
            lab.from_reading(reading, layer, head, query)


def test_labels_name_what_differs() -> None:
    assert lab.Chosen("ssa").label == "SSA"
    assert lab.Chosen("ssa", (("b", 0.5), ("n", 3.0))).label == "SSA, b = 0.5, n = 3"
    function = lab.Chosen("ssa", (("n", 1.1),)).build()
    assert function.value("n").dtype == torch.float64
    assert float(function.value("n")) == 1.1


def test_what_computes_the_same_is_equal() -> None:
    assert lab.Chosen("ssa", (("n", 1.5), ("b", 1.0))) == lab.Chosen("ssa")
    one, other = lab.Chosen("ssa", (("n", 3.0), ("b", 0.5))), lab.Chosen("ssa", (("b", 0.5), ("n", 3.0)))
    assert one == other
    assert hash(one) == hash(other)
    assert one.parameters == (("b", 0.5), ("n", 3.0))


@every_function
def test_defaults_are_held_in_float64_too(name: str) -> None:
    function = lab.Chosen(name).build()
    for parameter in SCORING[name].parameters_spec:
        assert function.value(parameter.name).tolist() == [parameter.default]


@every_function
@pytest.mark.parametrize("logits", [(1e30, -1e30, 0.0, 1.0), (-1e30, -1e29, -5.0), (0.0, 0.0), (1e-300, -1e-300)])
def test_extreme_rows_give_numbers_all_through(name: str, logits: tuple[float, ...]) -> None:
    chosen = lab.Chosen(name)
    row, derivatives = lab.row(chosen, logits), lab.jacobian(chosen, logits)
    assert np.isfinite([*row.weights, row.contextual_mass, row.entropy, row.nowhere]).all()
    assert np.isfinite(derivatives).all()
    assert row.effective_tokens <= len(logits) * (1 + 1e-9)
    for curve in (lab.magnify(chosen, logits, (0.1, 1e4, 1e30)), lab.grow(chosen, logits, 0, (-1e30, 0.0, 1e30))):
        assert np.isfinite(curve.contextual_mass).all()
        assert (curve.contextual_mass >= 0).all()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: lab.row(lab.Chosen("softmax"), ()), InvalidInputError, "1 to 64 logits, not 0"),
        (lambda: lab.row(lab.Chosen("softmax"), (1.0,) * 65), InvalidInputError, "not 65"),
        (lambda: lab.row(lab.Chosen("softmax"), (math.nan,)), NonFiniteError, "finite"),
        (lambda: lab.row(lab.Chosen("softmax"), (2e30,)), InvalidInputError, "1e\\+30"),
        (lambda: lab.Chosen("hardmax"), UnknownNameError, "softmax"),
        (lambda: lab.Chosen("ssa", (("n", 0.5),)), InvalidInputError, "n must be"),
        (lambda: lab.Chosen("ssa", (("T", 1.0),)), UnknownNameError, "no parameter 'T'"),
        (lambda: lab.magnify(lab.Chosen("softmax"), (1.0,)), InvalidInputError, "2 to 64"),
        (lambda: lab.magnify(lab.Chosen("softmax"), ROW, (0.0,)), InvalidInputError, "above 0"),
        (lambda: lab.magnify(lab.Chosen("softmax"), ROW, ()), NonFiniteError, "one or more"),
        (lambda: lab.grow(lab.Chosen("softmax"), ROW, 4), InvalidInputError, "from 0 to 3"),
        (lambda: lab.grow(lab.Chosen("softmax"), ROW, 0, (math.inf,)), NonFiniteError, "finite"),
        (lambda: lab.magnify(lab.Chosen("ssa"), ROW, (1e300,)), InvalidInputError, "1e\\+30"),
        (lambda: lab.grow(lab.Chosen("ssa"), ROW, 0, (-2e30,)), InvalidInputError, "1e\\+30"),
        (lambda: lab.shape(lab.Chosen("ssa"), (0.0, math.nan)), NonFiniteError, "finite"),
        (lambda: lab.shape(lab.Chosen("ssa"), ()), NonFiniteError, "one or more"),
        (lambda: lab.shape(lab.Chosen("ssa"), (1e300,)), InvalidInputError, "1e\\+30"),
        (lambda: lab.shape(lab.Chosen("ssa"), (0.0,), ()), InvalidInputError, "1 to 64"),
        (lambda: lab.meet(ROW, 0.5), InvalidInputError, "m must be"),
        (lambda: lab.meet(ROW, math.nan), InvalidInputError, "m must be"),
        (lambda: lab.jacobian(lab.Chosen("softmax"), ()), InvalidInputError, "1 to 64"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call: Callable[[], object], error: type[SSAVizError], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_mass_on_others_by_hand() -> None:
    weights = torch.tensor([[0.5, 0.2, 0.3], [0.4, 0.4, 0.2], [0.0, 0.0, 0.0]])
    assert metrics.mass_on_others(weights).tolist() == pytest.approx([0.5, 0.6, 0.0])
