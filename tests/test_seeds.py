"""What several seeds say together, by hand-made numbers."""

from __future__ import annotations

from typing import Any

import pytest

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.seeds import Spread, compare, median_seed, spread

SEEDS = (3, 5, 7)


def cards(*errors: float | None) -> list[dict[str, Any]]:
    return [{"injected": {"70": {"at": error}}, "in_distribution": index} for index, error in enumerate(errors)]


PATH = ("injected", "70", "at")


def test_mean_and_sample_deviation() -> None:
    found = spread(cards(2.0, 4.0, 9.0), PATH)
    assert found is not None
    assert found.values == (2.0, 4.0, 9.0)
    assert found.mean == 5.0
    assert found.std == pytest.approx(13**0.5)  # (9 + 1 + 16) / (3 − 1)


def test_one_seed_has_no_spread() -> None:
    assert (Spread((7.0,)).mean, Spread((7.0,)).std) == (7.0, 0.0)


def test_a_number_that_one_card_lacks_is_none() -> None:
    assert spread(cards(2.0, None, 9.0), PATH) is None
    assert compare(cards(2.0, 4.0, 9.0), cards(1.0, None, 3.0), PATH, SEEDS) is None
    assert compare(cards(None, 4.0, 9.0), cards(1.0, 2.0, 3.0), PATH, SEEDS) is None


def test_zero_is_a_number() -> None:
    found = spread(cards(0.0, 0.0), PATH)
    assert found is not None
    assert (found.values, found.mean, found.std) == ((0.0, 0.0), 0.0, 0.0)


def test_a_path_that_no_card_has_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="71"):
        spread(cards(2.0), ("injected", "71", "at"))


def test_the_seeds_that_disagree_are_named() -> None:
    """Equal counts as not lower: seed 5 is a draw, seed 7 is worse."""
    found = compare(cards(2.0, 4.0, 9.0), cards(1.0, 4.0, 11.0), PATH, SEEDS)
    assert found is not None
    assert (found.first.values, found.second.values) == ((2.0, 4.0, 9.0), (1.0, 4.0, 11.0))
    assert found.worse == (5, 7)


def test_all_seeds_can_agree() -> None:
    found = compare(cards(2.0, 4.0, 9.0), cards(1.0, 3.0, 8.0), PATH, SEEDS)
    assert found is not None
    assert found.worse == ()


@pytest.mark.parametrize(("first", "second", "seeds"), [(3, 2, 3), (2, 3, 3), (3, 3, 2), (0, 0, 1)])
def test_a_missing_card_is_refused(first: int, second: int, seeds: int) -> None:
    with pytest.raises(InvalidInputError, match="one card of each function for every seed"):
        compare(cards(*[1.0] * first), cards(*[1.0] * second), PATH, range(seeds))


@pytest.mark.parametrize(
    ("errors", "seeds", "median"),
    [
        ((0.5, 0.1, 0.3), (3, 5, 7), 7),
        ((0.4, 0.1, 0.3, 0.2), (0, 1, 2, 3), 3),  # of the two middle ones, 0.2 and 0.3, the lower
        ((0.2, 0.2, 0.2), (9, 4, 6), 6),  # equal errors: the middle seed in the order of seeds
        ((0.2, 0.2, 0.9, 0.1, 0.2), (0, 1, 2, 3, 4), 1),
        ((0.7,), (13,), 13),
    ],
)
def test_the_median_seed(errors: tuple[float, ...], seeds: tuple[int, ...], median: int) -> None:
    assert median_seed(errors, seeds) == median


def test_an_error_without_its_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        median_seed((0.1, 0.2), (0,))
