"""The Numbers page in a real browser, with the shipped models: what is typed, drawn, clicked, copied and saved."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from ssa_viz import checkpoints, inspect
from ssa_viz.inspect import Problem, Reading
from ssa_viz.tasks import Outlier
from ssa_viz.train.presets import SCORED, checkpoint_name
from tests.browser import PATIENCE, ROOT, Figure, figure_data, open_page, read_png_size, wait_idle

pytestmark = pytest.mark.browser

NUMBERS = (0.7, 1.2, 0.4, 0.9, 1.6, 0.3, 1.1, 0.8, 0.6, 1.4, 0.5, 0.2)
TYPED = " ".join(map(str, NUMBERS))
OUTLIER = Outlier(70.0, 7)
TABLE_ROW = 35  # pixels of a row of Streamlit's tables, the heading's too


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """Playwright's own 5 seconds are too few for a busy machine."""
    expect.set_options(timeout=PATIENCE * 1000)
    yield
    expect.set_options(timeout=5000)


@cache
def computed(scoring: str, numbers: tuple[float, ...], outlier: Outlier | None = None) -> Reading:
    """What the shipped model of the default pair makes of the numbers, read without the page."""
    loaded = checkpoints.load(ROOT / "models" / checkpoint_name("every", "attention_only", scoring))
    return inspect.read(loaded.model, Problem("every", "numbers", numbers, (), outlier))


def visit(page: Page, url: str) -> None:
    """Open the address and wait for the page itself."""
    page.set_default_timeout(PATIENCE * 1000)
    open_page(page, url)
    # The first visit imports torch, before which there is nothing to see.
    expect(numbers_field(page)).to_be_visible(timeout=3 * PATIENCE * 1000)
    wait_idle(page)


def numbers_field(page: Page) -> Locator:
    return page.get_by_label("Numbers", exact=True)


def enter(page: Page, text: str) -> None:
    """Replace what the text field holds, as pasting does, and finish as the field's help says."""
    numbers_field(page).click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    page.keyboard.press("Control+Enter")
    wait_idle(page)


def showing(*tokens: str) -> Callable[[Figure], bool]:
    return lambda figure: figure["layout"]["meta"].get("keys") == list(tokens)


def titled(text: str) -> Callable[[Figure], bool]:
    return lambda figure: figure["layout"]["meta"]["title"] == text


def drawn_maps(page: Page, until: Callable[[Figure], bool] = bool) -> list[np.ndarray]:
    """The exact weights of the two drawn maps, softmax first."""
    maps = [figure_data(page, f"attention_{scoring}", until=until) for scoring in SCORED]
    return [np.array(figure["data"][0]["customdata"])[..., 0] for figure in maps]


def heads_mean(page: Page) -> list[int]:
    """The per cent that the two cards give as largest weight in the mean over all heads, softmax first."""
    texts = page.locator(".ssa-card").all_inner_texts()
    found = [re.search(r"Mean over all 8 heads: (?:under |over )?(\d+)% on one number", text) for text in texts]
    assert all(found), texts
    return [int(match[1]) for match in found if match]


def tile(page: Page, key: str, layer: int, head: int) -> tuple[float, float]:
    """Where in the window the centre of a head's tile is."""
    plot = page.locator(f".st-key-{key} .js-plotly-plot")
    plot.scroll_into_view_if_needed()
    x, y = plot.evaluate(
        """(plot, [layer, head]) => {
            const {left, top} = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout;
            return [left + xaxis._offset + xaxis.d2p(head), top + yaxis._offset + yaxis.d2p(layer)];
        }""",
        [layer, head],
    )
    return float(x), float(y)


def click_head(page: Page, key: str, layer: int, head: int) -> None:
    """Click a tile off its centre: the whole tile counts."""
    x, y = tile(page, key, layer, head)
    page.mouse.move(x + 9, y - 7)
    page.wait_for_timeout(150)  # plotly finds out what is under the pointer at most every 50 ms
    page.mouse.click(x + 9, y - 7)


def test_softmax_collapses_at_an_injected_70_and_the_address_shows_it_anew(
    page: Page, server: str, new_context: Callable[..., BrowserContext]
) -> None:
    visit(page, server)
    enter(page, TYPED)
    before = drawn_maps(page, showing(*map(str, NUMBERS)))
    for drawn, scoring in zip(before, SCORED, strict=True):
        np.testing.assert_allclose(drawn, computed(scoring, NUMBERS).weights[1, 0], rtol=1e-4, atol=1e-7)

    page.get_by_text("Inject an outlier").click()
    wait_idle(page)
    tokens = [*map(str, NUMBERS[:7]), "70", *map(str, NUMBERS[8:])]
    maps = drawn_maps(page, showing(*tokens))
    softmax, ssa = (computed(scoring, NUMBERS, OUTLIER) for scoring in SCORED)
    for drawn, reading in zip(maps, (softmax, ssa), strict=True):
        np.testing.assert_allclose(drawn, reading.weights[1, 0], rtol=1e-4, atol=1e-7)
    means = [float(inspect.concentration(reading, 7).largest_weight.mean()) for reading in (softmax, ssa)]
    assert heads_mean(page) == pytest.approx([100 * mean for mean in means], abs=1)
    assert heads_mean(page)[0] > heads_mean(page)[1], "softmax is to put more on one number than SSA"

    # The head in which that shows most, chosen in the picture of all heads.
    gap = softmax.weights[:, :, 7].max(axis=-1) - ssa.weights[:, :, 7].max(axis=-1)
    layer, head = (int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
    click_head(page, "overview_ssa", layer, head)
    mass = figure_data(page, "mass", until=titled(f"Contextual mass of each row · L{layer} H{head}"))
    lines = {line["name"]: line["y"] for line in mass["data"]}
    assert lines["Softmax"][7] < lines["SSA"][7]
    wait_idle(page)

    fresh = new_context().new_page()
    visit(fresh, page.url)
    for scoring in SCORED:
        key = f"attention_{scoring}"
        np.testing.assert_equal(without_uid(fresh, key), without_uid(page, key))
    np.testing.assert_equal(figure_data(fresh, "mass")["data"][0]["y"], lines["Softmax"])
    expect(numbers_field(fresh)).to_have_value(TYPED)
    assert fresh.url == page.url


def without_uid(page: Page, key: str) -> list[dict[str, Any]]:
    """A drawn figure's traces without the name that Plotly draws by lot for each."""
    return [{name: value for name, value in trace.items() if name != "uid"} for trace in figure_data(page, key)["data"]]


def saved(page: Page, button: str) -> tuple[str, bytes]:
    """Name and content of what a button in the mass chart's menu downloads."""
    menu = page.get_by_role("dialog", name="Download")
    if not menu.is_visible():  # a download may have closed it
        page.locator(".st-key-mass_menu button").first.click()
    choice = menu.get_by_role("button", name=button, exact=True)
    expect(choice).to_be_visible()
    wait_idle(page)
    with page.expect_download() as download:
        choice.click()
    wait_idle(page)
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_a_chart_is_saved_in_four_formats(page: Page, server: str) -> None:
    visit(page, f"{server}/?inject=1&seq={TYPED.replace(' ', '+')}")
    drawn = {line["name"]: line["y"] for line in figure_data(page, "mass")["data"]}
    size = page.locator(".st-key-mass .js-plotly-plot").bounding_box()
    assert size is not None

    name, png = saved(page, "PNG")
    assert name == "mass.png"
    assert read_png_size(png) == pytest.approx((2 * size["width"], 2 * size["height"]), abs=2)

    name, svg = saved(page, "SVG")
    assert name == "mass.svg"
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "70" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]

    name, html = saved(page, "HTML")
    assert name == "mass.html"
    tags = re.findall(rb"<(?:script|link|img|iframe)\b[^>]*>", html)
    assert not [tag for tag in tags if re.search(rb"(?:src|href)\s*=", tag)], "the page is to load nothing"
    assert b"contextual mass" in html
    assert len(html) > 1_000_000  # the code that draws it is inside

    name, table = saved(page, "CSV")
    assert name == "mass.csv"
    rows = list(csv.DictReader(io.StringIO(table.decode("utf-8-sig"))))
    assert [float(row["token"]) for row in rows] == pytest.approx([*NUMBERS[:7], 70, *NUMBERS[8:]], rel=1e-6)
    for label, line in drawn.items():
        column = np.array([row[f"contextual_mass_{label}"] for row in rows], dtype=np.float32)
        np.testing.assert_array_equal(column, line)


def framing(layer: int, head: int) -> Callable[[Figure], bool]:
    return lambda figure: list(figure["layout"]["meta"]["selected"]) == [layer, head]


def expect_head(page: Page, layer: int, head: int) -> None:
    """Both maps show the head, and both pictures of all heads frame it."""
    for scoring, label in zip(SCORED, ("Softmax", "SSA"), strict=True):
        figure = figure_data(page, f"attention_{scoring}", until=titled(f"{label} · L{layer} H{head}"))
        weights = computed(scoring, NUMBERS).weights[layer, head]
        np.testing.assert_allclose(np.array(figure["data"][0]["customdata"])[..., 0], weights, rtol=1e-4, atol=1e-7)
        figure_data(page, f"overview_{scoring}", until=framing(layer, head))
    wait_idle(page)


def press_until(page: Page, key: str, there: Locator, most: int = 9) -> None:
    """Press a key until an element, or something in it, has the focus."""
    for _ in range(most):
        page.keyboard.press(key)
        if there.evaluate("element => element.contains(document.activeElement)"):
            return
    pytest.fail(f"{most} times {key} did not reach {there}")


def test_a_head_is_chosen_by_click_by_key_and_in_the_table(page: Page, server: str) -> None:
    visit(page, f"{server}/?seq={TYPED.replace(' ', '+')}")
    expect_head(page, 1, 0)
    click_head(page, "overview_softmax", 0, 2)
    expect_head(page, 0, 2)
    click_head(page, "overview_ssa", 1, 3)
    expect_head(page, 1, 3)
    click_head(page, "overview_softmax", 0, 2)  # the same tile as before
    expect_head(page, 0, 2)

    heads = page.get_by_role("radiogroup", name="Head")
    page.get_by_role("radiogroup", name="Layer").get_by_role("radio").first.focus()
    press_until(page, "Tab", heads)
    press_until(page, "ArrowRight", heads.get_by_role("radio", name="3", exact=True))
    page.keyboard.press("Enter")
    expect_head(page, 0, 3)

    page.get_by_role("radio", name="Table of heads").click()
    table = page.locator(".st-key-heads_table [data-testid=stDataFrame]")
    table.scroll_into_view_if_needed()
    wait_idle(page)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 12, box["y"] + 6.5 * TABLE_ROW)  # the check box of the sixth head
    expect_head(page, 1, 1)


def test_a_phone_shows_the_maps_without_scrolling_sideways(
    new_context: Callable[..., BrowserContext], server: str
) -> None:
    phone = new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).new_page()
    visit(phone, f"{server}/?inject=1")
    for key in ("attention_softmax", "attention_ssa", "overview_softmax", "mass", "answers"):
        assert figure_data(phone, key)["data"]
        box = phone.locator(f".st-key-{key} .js-plotly-plot").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["width"] > 300
    for scoring in SCORED:
        cells = phone.locator(f".st-key-attention_{scoring} .heatmaplayer image").bounding_box()
        assert cells is not None
        assert min(cells["width"], cells["height"]) > 200
    wide = phone.evaluate(
        """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
            .map(element => element.scrollWidth - element.clientWidth)"""
    )
    assert wide == [0, 0]


def test_pasted_numbers_are_read_as_they_are_meant_and_survive_a_reload(page: Page, server: str) -> None:
    visit(page, server)
    enter(page, "1,5; −2,5; 0")
    maps = drawn_maps(page, showing("1.5", "−2.5", "0"))
    np.testing.assert_allclose(maps[1], computed("ssa", (1.5, -2.5, 0.0)).weights[1, 0], rtol=1e-4, atol=1e-7)
    enter(page, "1,5\t2\n−3 abc")
    drawn_maps(page, showing("1.5", "2", "−3"))
    expect(page.get_by_text("item 4, 'abc', is not a number")).to_be_visible()
    page.get_by_text("Log", exact=True).click()
    wait_idle(page)
    address = page.url
    page.reload()
    wait_idle(page)
    figure = figure_data(page, "attention_ssa", until=showing("1.5", "2", "−3"))
    assert "log" in figure["layout"]["meta"]["scale"]
    expect(numbers_field(page)).to_have_value("1,5\t2\n−3 abc")
    assert page.url == address
