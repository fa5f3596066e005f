"""The Robustness page in a real browser: what is drawn is what the seeds' file says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, expect

from ssa_viz.checkpoints import read_config
from ssa_viz.evaluate import grids
from tests.browser import PATIENCE, ROOT, figure_data, wait_idle
from tests.test_train_browser import without_streamlits_own

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    expect.set_options(timeout=2 * PATIENCE * 1000)
    yield
    expect.set_options(timeout=5000)


def test_curves_are_the_means_of_the_seeds_and_follow_the_choice(
    new_context: Callable[..., BrowserContext], server: str, complaints: list[str]
) -> None:
    page = new_context(viewport={"width": 1400, "height": 1200}).new_page()
    page.set_default_timeout(2 * PATIENCE * 1000)
    page.goto(f"{server}/robustness?f=softmax,ssa&v=1")
    expect(page.get_by_role("heading", name="Every measure")).to_be_visible()
    seeds = json.loads((ROOT / "models" / "seeds.json").read_text(encoding="utf-8"))

    def means(pair: str, scoring: str) -> list[float]:
        cards = seeds[pair]["cards"][scoring]
        widths = sorted(cards[0]["wider_inputs"], key=float)
        inside = [card["in_distribution"] for card in cards]
        return [100 * np.mean(inside), *(100 * np.mean([c["wider_inputs"][w] for c in cards]) for w in widths)]

    first = figure_data(page, "robustness_wider_inputs")["data"]
    assert [line["name"] for line in first] == ["Softmax", "SSA", "Constant answer"]
    for line, scoring in zip(first, ("softmax", "ssa"), strict=False):
        np.testing.assert_allclose(line["y"], means("every-attention_only", scoring), rtol=1e-6)
    page.get_by_role("radio", name="Some · attention only").or_(
        page.get_by_role("button", name="Some · attention only")
    ).first.click()
    wait_idle(page)
    expected = means("some-attention_only", "softmax")
    figure_data(
        page, "robustness_wider_inputs", until=lambda figure: np.allclose(figure["data"][0]["y"], expected, rtol=1e-6)
    )
    assert "of=some-attention_only" in page.url
    without_streamlits_own(complaints)


def test_the_drawn_maps_are_the_shipped_ones_and_follow_what_is_counted(
    new_context: Callable[..., BrowserContext], server: str, complaints: list[str]
) -> None:
    page = new_context(viewport={"width": 1400, "height": 1600}).new_page()
    page.set_default_timeout(2 * PATIENCE * 1000)
    page.goto(f"{server}/robustness?v=1")
    found = []
    for scoring in ("softmax", "ssa"):
        config = read_config(ROOT / "models" / f"every-attention_only-{scoring}")
        kept = grids.usual(ROOT / "models", ROOT).find(config, grids.grids(config.train)["width_length"])
        assert kept is not None
        found.append(kept.found)
    for kind, label in (("answers", ""), ("sequences", "Whole sequences")):
        if label:
            page.get_by_role("radio", name=label).or_(page.get_by_role("button", name=label)).first.click()
            wait_idle(page)
        for key, each, who in (("map_a", 0, "model"), ("map_b", 1, "model"), ("map_always_no", 0, "always no")):
            expected = found[each][who][kind]
            figure_data(page, key, until=lambda f, e=expected: np.allclose(f["data"][0]["z"], e, atol=1e-6))
        change = found[1]["model"][kind] - found[0]["model"][kind]
        figure_data(page, "map_difference", until=lambda f, e=change: np.allclose(f["data"][0]["z"], e, atol=1e-6))
    assert "by=sequences" in page.url
    without_streamlits_own(complaints)


def test_a_phone_does_not_scroll_sideways(
    new_context: Callable[..., BrowserContext], server: str, complaints: list[str]
) -> None:
    page = new_context(viewport={"width": 390, "height": 844}).new_page()
    page.set_default_timeout(2 * PATIENCE * 1000)
    page.goto(f"{server}/robustness")
    expect(page.get_by_role("heading", name="Every measure")).to_be_visible()
    wait_idle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    without_streamlits_own(complaints)
