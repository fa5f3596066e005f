"""What every registered scoring function keeps; a new file in ssa_viz/scoring is picked up by itself."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ssa_viz.scoring import SCORING, ScoringFunction

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
HALVES = (torch.float16, torch.bfloat16)
DTYPES = (*HALVES, torch.float32, torch.float64)

every_function = pytest.mark.parametrize("name", list(SCORING))
quick = settings(deadline=None, derandomize=True, max_examples=60, database=None)


def make(name: str, heads: int = HEADS, dtype: torch.dtype = torch.float32) -> ScoringFunction:
    """The function with another parameter value in each head, away from where it starts."""
    function = SCORING[name](heads)
    with torch.no_grad():
        for parameter in function.parameters():
            parameter += torch.linspace(-0.4, 0.9, heads)
    return function.to(dtype)


def draw(seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Logits (B, H, Q, K) and a mask (B, 1, Q, K) in which each row sees at least two keys."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(BATCH, HEADS, QUERIES, KEYS, generator=generator, dtype=torch.float64)
    visible = torch.rand(BATCH, 1, QUERIES, KEYS, generator=generator) < 0.5
    visible[..., [1, 4]] = True
    return logits.to(dtype), visible


def gradients(function: ScoringFunction, logits: Tensor, visible: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Weights, and the gradients of a fixed uneven sum of them: the logits' first, then each parameter's."""
    x = logits.clone().requires_grad_()
    weights = function(x, visible)
    factors = torch.arange(1, weights.numel() + 1, dtype=weights.dtype).sin().view_as(weights)
    inputs = [x, *function.parameters()]
    return weights.detach(), list(torch.autograd.grad((weights * factors).sum(), inputs))


def assert_rows_sum_to_one(weights: Tensor) -> None:
    """Rounding each weight to its dtype moves the sum by up to eps / 2, and by more among subnormals."""
    info = torch.finfo(weights.dtype)
    error = (weights.double().sum(dim=-1) - 1).abs().max().item()
    assert error <= 4 * info.eps + weights.shape[-1] * info.smallest_normal * info.eps, error


def assert_row_sums(weights: Tensor, kind: str) -> None:
    """What a function declares of its rows, each of which sees a key."""
    sums = weights.double().sum(dim=-1)
    assert bool((weights >= 0).all())
    if kind == "one":
        assert_rows_sum_to_one(weights)
    elif kind == "one or zero":
        assert_rows_sum_to_one(weights[sums > 0])
    elif kind == "at most one":
        assert sums.max() <= 1 + 4 * torch.finfo(weights.dtype).eps
    else:
        assert kind == "any"


def assert_bitwise(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def test_assertions_fail_on_a_wrong_value() -> None:
    right = torch.tensor([[0.25, 0.75]])
    assert_rows_sum_to_one(right)
    with pytest.raises(AssertionError):
        assert_rows_sum_to_one(right + torch.tensor([[0.0, 1e-6]]))
    with pytest.raises(AssertionError):
        assert_rows_sum_to_one(torch.tensor([[0.25, math.nan]]))
    for kind, wrong in (
        ("one or zero", [0.5, 0.3]),
        ("at most one", [0.7, 0.5]),
        ("any", [-0.1, 0.5]),
        ("some", [1.0]),
    ):
        with pytest.raises(AssertionError):
            assert_row_sums(torch.tensor([wrong]), kind)
    assert_bitwise(right, right.clone())
    with pytest.raises(AssertionError):
        assert_bitwise(right, torch.nextafter(right, torch.ones(1, 2)))


@every_function
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_sum_to_what_is_declared_and_columns_do_not_to_one(name: str, dtype: torch.dtype) -> None:
    logits, visible = draw(dtype=dtype)
    weights = make(name)(logits, visible)
    assert weights.dtype == dtype
    assert weights.shape == logits.shape
    assert (weights.double().sum(dim=-2) - 1).abs().max() > 0.1
    assert_row_sums(weights, SCORING[name].row_sum)


@every_function
def test_mask_broadcasts_in_any_shape(name: str) -> None:
    logits, visible = draw()
    kept = logits.clone()
    function = make(name)
    lower = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril()
    assert_bitwise(function(logits, lower), function(logits, lower.expand(BATCH, HEADS, QUERIES, KEYS)))
    assert_bitwise(function(logits, visible), function(logits, visible.expand(BATCH, HEADS, QUERIES, KEYS)))
    assert_bitwise(logits, kept)


@every_function
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, -1e30, -1e4, 7.0])
def test_hidden_keys_have_no_weight_and_no_influence(name: str, value: float) -> None:
    logits, visible = draw()
    function = make(name).double()
    expected, expected_gradients = gradients(function, logits.masked_fill(~visible, 0.0), visible)
    changed = logits.masked_fill(~visible, value)
    weights, found = gradients(function, changed, visible)
    hidden = ~visible.expand_as(weights)
    assert int(hidden.sum()) > 20
    assert bool((weights[hidden] == 0).all())
    assert bool((found[0][hidden] == 0).all())
    assert_bitwise(weights, expected)
    for gradient, wanted in zip(found, expected_gradients, strict=True):
        assert bool(torch.isfinite(gradient).all())
        assert_bitwise(gradient, wanted)


@every_function
@pytest.mark.parametrize("value", [0.0, math.nan, -math.inf, 1e30])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_row_without_a_visible_key_is_zeros(name: str, value: float, dtype: torch.dtype) -> None:
    logits, visible = draw(dtype=dtype)
    visible[1, 0, 2] = False
    logits[1, :, 2] = value
    weights, (by_logit, *by_parameter) = gradients(make(name), logits, visible)
    assert bool((weights[1, :, 2] == 0).all())
    assert bool((by_logit[1, :, 2] == 0).all())
    assert all(bool(torch.isfinite(gradient).all()) for gradient in (by_logit, *by_parameter))
    empty, by_nothing = gradients(make(name), logits, torch.zeros_like(visible))
    assert all(bool((tensor == 0).all()) for tensor in (empty, *by_nothing))


@every_function
@given(row=st.lists(st.floats(-1e30, 1e30), min_size=2, max_size=11))
@quick
def test_higher_logit_never_has_less_weight(name: str, row: list[float]) -> None:
    logits = torch.tensor(row, dtype=torch.float64).view(1, 1, 1, -1)
    weights = make(name, heads=1)(logits, torch.ones_like(logits, dtype=torch.bool)).flatten()
    assert bool((weights[logits.flatten().argsort()].diff() >= -1e-15).all())


@every_function
@given(row=st.lists(st.floats(-20, 20), min_size=2, max_size=11), data=st.data())
@quick
def test_permuting_keys_permutes_weights(name: str, row: list[float], data: st.DataObject) -> None:
    order = torch.tensor(data.draw(st.permutations(range(len(row)))))
    logits = torch.tensor(row, dtype=torch.float64).view(1, 1, 1, -1)
    visible = torch.tensor(data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row))))
    function = make(name, heads=1)
    permuted = function(logits[..., order], visible[order])
    torch.testing.assert_close(permuted, function(logits, visible)[..., order], rtol=1e-12, atol=1e-15)


@every_function
def test_masked_row_equals_the_shorter_row(name: str) -> None:
    logits, visible = draw()
    weights = make(name)(logits, visible)
    for b, h, q in itertools.product(range(BATCH), range(HEADS), range(QUERIES)):
        seen = visible[b, 0, q]
        rows = logits[b, h, q, seen].expand(1, HEADS, 1, -1)
        shorter = make(name)(rows, torch.ones_like(rows, dtype=torch.bool))[0, h, 0]
        torch.testing.assert_close(weights[b, h, q, seen], shorter, rtol=1e-12, atol=1e-15)


@every_function
def test_padding_and_batch_mates_change_nothing(name: str) -> None:
    logits, visible = draw()
    function = make(name)
    weights = function(logits, visible)
    padding = torch.full((BATCH, HEADS, QUERIES, 13), 5.0, dtype=logits.dtype)
    unseen = torch.zeros(BATCH, 1, QUERIES, 13, dtype=torch.bool)
    for parts in (0, 1):
        order = slice(None, None, -1 if parts else 1)  # padding on the right, then on the left
        padded = function(torch.cat([logits, padding][order], -1), torch.cat([visible, unseen][order], -1))
        kept = padded[..., -KEYS:] if parts else padded[..., :KEYS]
        torch.testing.assert_close(kept, weights, rtol=1e-12, atol=1e-15)
    for b in range(BATCH):
        alone = function(logits[b : b + 1], visible[b : b + 1])
        torch.testing.assert_close(alone, weights[b : b + 1], rtol=1e-12, atol=1e-15)


@every_function
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("module_dtype", [torch.float32, None])
def test_largest_logits_of_a_dtype(name: str, dtype: torch.dtype, module_dtype: torch.dtype | None) -> None:
    most = torch.finfo(dtype).max
    rows = [
        [most, most / 2, 1.0, 0.0, -1.0, -most / 2, -most],
        [most] * KEYS,
        [-most] * KEYS,
        [0.0] * (KEYS - 1) + [most],
        [-most] * (KEYS - 1) + [0.0],
    ]
    logits = torch.tensor(rows, dtype=dtype).expand(BATCH, HEADS, QUERIES, KEYS)
    visible = torch.ones(KEYS, dtype=torch.bool)
    function = make(name, dtype=module_dtype or dtype)
    weights, found = gradients(function, logits, visible)
    assert weights.dtype == dtype
    assert bool(torch.isfinite(weights).all())
    assert bool((weights[..., 0, :].diff() <= 0).all())
    assert all(bool(torch.isfinite(gradient).all()) for gradient in found)
    assert [g.dtype for g in found] == [dtype, *(p.dtype for p in function.parameters())]
    assert_row_sums(weights, SCORING[name].row_sum)
    if SCORING[name].row_sum == "one":
        equal = torch.full_like(weights[..., 1:3, :], 1 / KEYS)
        torch.testing.assert_close(weights[..., 1:3, :], equal)


@every_function
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_visible_nan_or_infinity_makes_its_row_nan(name: str, value: float, dtype: torch.dtype) -> None:
    logits, visible = draw(dtype=dtype)
    clean = make(name)(logits, visible)
    logits[1, 2, 3, 4] = value
    weights = make(name)(logits, visible)
    seen = visible[1, 0, 3]
    assert bool(weights[1, 2, 3, seen].isnan().all())
    assert bool((weights[1, 2, 3, ~seen] == 0).all())
    weights[1, 2, 3] = clean[1, 2, 3]
    assert_bitwise(weights, clean)


@every_function
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_visible_minus_infinity_counts_as_hidden(name: str, dtype: torch.dtype) -> None:
    logits, visible = draw(dtype=dtype)
    at = torch.zeros_like(logits, dtype=torch.bool)
    at[0, 1, 2, 4] = True
    at[1, 0, 3] = True
    weights, found = gradients(make(name), logits.masked_fill(at, -math.inf), visible)
    expected, expected_gradients = gradients(make(name), logits, visible & ~at)
    assert bool((weights[at] == 0).all())
    assert_bitwise(weights, expected)
    for gradient, wanted in zip(found, expected_gradients, strict=True):
        assert_bitwise(gradient, wanted)


@every_function
@pytest.mark.parametrize("zeros", [False, True], ids=["away from 0", "at 0"])
def test_gradients(name: str, zeros: bool) -> None:
    logits, visible = (tensor[:1, :, :2] for tensor in draw(seed=3))
    visible[0, 0, 1] = False
    logits = torch.where(logits.abs() < 0.1, 0.5, logits)
    if zeros:
        logits[..., ::2] = 0.0
    function = make(name).double()
    names, values = zip(*function.named_parameters(), strict=True) if list(function.parameters()) else ((), ())

    def weigh(x: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(function, named, (x, visible))  # type: ignore[no-any-return]

    inputs = (logits.requires_grad_(), *values)
    if zeros and not SCORING[name].smooth:  # a kink may lie at 0: there is no derivative to compare with
        found = torch.autograd.grad(weigh(*inputs).sin().sum(), inputs)
        assert all(bool(torch.isfinite(gradient).all()) for gradient in found)
        return
    assert torch.autograd.gradcheck(weigh, inputs)


@every_function
def test_scores_divided_by_their_sum_are_the_weights(name: str) -> None:
    logits, visible = draw()
    function = make(name).double()
    scores = function.score(logits)
    if scores is None:
        # Then the weight of one key over that of another must depend on a third one, or on how many there are.
        rows = torch.tensor([[0.2, 0.5, -3.0], [0.2, 0.5, 0.4]], dtype=torch.float64).expand(1, HEADS, 2, 3)
        weights = function(rows, torch.ones(3, dtype=torch.bool))
        shorter = function(rows[..., :2], torch.ones(2, dtype=torch.bool))
        ratios = torch.cat([w[..., 0] / w[..., 1] for w in (weights, shorter)], -1)
        assert (ratios - ratios[..., :1]).abs().max() > 1e-3
        return
    assert scores.shape == logits.shape
    assert bool((scores >= 0).all())
    if SCORING[name].row_sum == "one":
        scores = scores * visible
        torch.testing.assert_close(function(logits, visible), scores / scores.sum(-1, keepdim=True))


CLOSED_FORM_ROWS = ((1.0, 0.8, 0.5, -0.2), (2.0, -1.0, -0.5), (0.0, -1.0, -2.0), (3.0, 0.0, 0.0, -4.0), (-1.0, -3.0),
                    (0.7, 0.7, 0.7), (2.0, 2.0, -1.0))  # fmt: skip


@every_function
@pytest.mark.parametrize("row", CLOSED_FORM_ROWS, ids=str)
@torch.no_grad()
def test_magnified_rows_tend_to_their_closed_form(name: str, row: tuple[float, ...]) -> None:
    function = SCORING[name](1).double()
    logits = torch.tensor(row, dtype=torch.float64)
    factors = torch.tensor([30.0, 300.0, 3e5, 3e6], dtype=torch.float64)
    expected = function.magnified(logits, factors)
    if expected is None:
        return
    rows = (factors[:, None] * logits).view(1, 1, len(factors), -1)
    weights = function(rows, torch.ones(len(row), dtype=torch.bool))[0, 0].sort(-1).values
    left = weights[:, :-1].sum(-1)
    assert expected.shape == factors.shape
    torch.testing.assert_close(left[-2:], expected[-2:], rtol=1e-4, atol=1e-300)
    assert ((left[0] - expected[0]).abs() >= (left[1] - expected[1]).abs() - 1e-12).all()


@every_function
@torch.no_grad()
def test_one_growing_logit_leaves_what_its_closed_form_says(name: str) -> None:
    function = SCORING[name](1).double()
    others = torch.tensor([1.0, 0.5, 0.0, -0.5], dtype=torch.float64)
    largest = torch.tensor([12.0, 24.0, 96.0, 3e6], dtype=torch.float64)
    expected = function.grown(others, largest)
    if expected is None:
        return
    rows = torch.cat([others.expand(len(largest), -1), largest[:, None]], -1).view(1, 1, len(largest), -1)
    left = function(rows, torch.ones(5, dtype=torch.bool))[0, 0, :, :-1].sum(-1)
    assert expected.shape == largest.shape
    torch.testing.assert_close(left[-1:], expected[-1:], rtol=1e-4, atol=1e-300)
    errors = ((left - expected).abs() / expected.clamp(min=1e-300))[:3]
    assert bool((errors.diff() <= 1e-9).all()) or float(errors.max()) < 1e-9
