"""The Train page in a real browser: start, watch, leave, come back, pause, resume, finish, open in Numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from ssa_viz import checkpoints, inspect, jobs
from ssa_viz.inspect import Problem
from ssa_viz.jobs import Records
from ssa_viz.tasks import Outlier
from tests.browser import PATIENCE, figure_data, open_page, wait_idle
from tests.conftest import SERVER_LOG

pytestmark = pytest.mark.browser

STEPS = 300  # enough that they still go on when the page is back
ADDRESS = f"/train?steps={STEPS}&v=1"
NUMBERS = (0.7, 1.2, -0.4, 0.9, 1.6, 0.3)


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """Playwright's own 5 seconds are too few for a busy machine."""
    expect.set_options(timeout=2 * PATIENCE * 1000)
    yield
    expect.set_options(timeout=5000)


@pytest.fixture
def runs(request: pytest.FixtureRequest, server: str) -> Path:
    """Where the app under test trains."""
    return request.config.stash[SERVER_LOG].parent / "runs"


def drawn(page: Page, title: str) -> dict[str, Any] | None:
    """What the moving chart with this title has drawn: its lines, in the order of the runs."""
    found: dict[str, Any] | None = page.evaluate(
        """title => {
            const roots = [document, ...[...document.querySelectorAll("*")].map(e => e.shadowRoot).filter(Boolean)];
            const all = roots.flatMap(root => [...root.querySelectorAll("canvas")]).map(canvas => canvas.drawn);
            return all.find(each => each && each.title.startsWith(title)) ?? null;
        }""",
        title,
    )
    return found


def until(page: Page, condition: Callable[[], bool], what: str) -> None:
    for _ in range(int(4 * PATIENCE)):
        if condition():
            return
        page.wait_for_timeout(500)
    pytest.fail(what)


def points(page: Page) -> int:
    found = drawn(page, "Loss")
    return min(len(line["steps"]) for line in found["lines"]) if found else 0


def without_streamlits_own(complaints: list[str]) -> None:
    """On a reload of a page of pages/ Streamlit asks for two of its files in the wrong place."""
    complaints[:] = [each for each in complaints if "404" not in each]


def test_train_leave_come_back_pause_resume_finish_and_open(
    new_context: Callable[..., BrowserContext], server: str, runs: Path, complaints: list[str]
) -> None:
    context = new_context(viewport={"width": 1400, "height": 1100})
    page = context.new_page()
    page.set_default_timeout(2 * PATIENCE * 1000)
    page.goto(f"{server}{ADDRESS}")
    page.get_by_role("button", name="Train 2 models").click()
    until(page, lambda: points(page) > 3, "the curves begin")
    before = points(page)
    canvas = page.locator("canvas").first.element_handle()
    until(page, lambda: points(page) > before, "the curves move")
    assert canvas is not None
    assert canvas.evaluate("each => each.isConnected")  # it was changed, not made anew
    page.close()  # and the runs go on

    page = context.new_page()
    page.set_default_timeout(2 * PATIENCE * 1000)
    page.goto(f"{server}/train")
    until(page, lambda: points(page) > before, "all of the curves is there again")
    seen = drawn(page, "Loss")
    assert seen is not None
    folders = [each.folder for each in jobs.runs(runs)][::-1]
    assert len(folders) == 2
    for folder, line in zip(folders, seen["lines"], strict=True):
        records = Records(folder)
        records.update()
        recorded = {record["step"]: record["loss"] for record in records.trained}
        assert len(line["steps"]) > before
        np.testing.assert_allclose(line["values"], [recorded[step] for step in line["steps"]], rtol=1e-3)

    page.get_by_role("button", name="Pause").first.click()
    resume = page.get_by_role("button", name="Resume")
    expect(resume).to_be_visible()
    resume.click()
    until(page, lambda: all(jobs.read_status(folder).state == "finished" for folder in folders), "both finish")

    link = page.get_by_role("link", name="Open these in Numbers, with a 70")
    expect(link).to_be_visible()
    losses = figure_data(page, "train_loss", until=lambda figure: len(figure["data"]) == 2)
    for folder, line in zip(folders, losses["data"], strict=True):
        records = Records(folder)
        records.update()
        np.testing.assert_allclose(line["y"], [record["loss"] for record in records.trained], rtol=1e-6)
    picture = jobs.probe_at(folders[0], STEPS)
    key = "".join(c if c.isalnum() else "_" for c in folders[0].name)
    below = np.tril_indices(40)
    figure_data(  # it is drawn after the losses, so until then an earlier step's may still be there
        page,
        f"train_attention_{key}",
        until=lambda figure: np.allclose(figure["data"][0]["z"][below], picture.weights[1, 0][below], atol=1e-4),
    )

    link.click()
    expect(page.get_by_role("heading", name="Watch attention collapse")).to_be_visible()
    page.goto(f"{page.url}&seq={'+'.join(map(str, NUMBERS))}&at=2&layer=1&head=0")
    wait_idle(page)
    model = checkpoints.load(folders[0]).model
    expected = inspect.read(model, Problem("every", "numbers", NUMBERS, (), Outlier(70.0, 1))).weights[1, 0]
    attention = figure_data(
        page,
        f"attention_softmax___run_{folders[0].name[-4:]}",
        until=lambda figure: np.shape(figure["data"][0]["z"]) == (6, 6),
    )["data"][0]["z"]
    np.testing.assert_allclose(attention[np.tril_indices(6)], expected[np.tril_indices(6)], rtol=1e-4, atol=1e-6)
    without_streamlits_own(complaints)


def test_a_phone_shows_the_form_and_an_error_without_scrolling_sideways(
    new_context: Callable[..., BrowserContext], server: str, complaints: list[str]
) -> None:
    page = new_context(viewport={"width": 390, "height": 844}).new_page()
    open_page(page, f"{server}/train?width=63&v=1")
    expect(page.get_by_text("Width (63) must be a multiple of heads (4)")).to_be_visible()
    expect(page.get_by_role("button", name="Train", exact=True)).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_label("Width", exact=True).fill("32")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Train 2 models")).to_be_enabled()
    without_streamlits_own(complaints)
