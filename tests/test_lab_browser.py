"""The Scoring lab in a real browser: typed, dragged, slid, and read back from what is drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser import PATIENCE, Figure, figure_data, open_page, wait_idle

pytestmark = pytest.mark.browser

START = (4.0, 1.0, 0.8, 0.5, -0.2)


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """Playwright's own 5 seconds are too few for a busy machine."""
    expect.set_options(timeout=PATIENCE * 1000)
    yield
    expect.set_options(timeout=5000)


@pytest.fixture
def lab(page: Page, server: str, complaints: list[str]) -> Iterator[Page]:
    """The page, by its own address."""
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(f"{server}/scoring")
    expect(page.get_by_role("heading", name="Scoring lab")).to_be_visible(timeout=3 * PATIENCE * 1000)
    wait_idle(page)
    yield page
    # Streamlit asks for two of its own files in the wrong place when a page is opened by its address.
    complaints[:] = [each for each in complaints if "404 (Not Found)" not in each]


def test_the_menu_leads_here(page: Page, server: str) -> None:
    page.set_default_timeout(PATIENCE * 1000)
    open_page(page, server)
    page.get_by_role("link", name="Scoring lab").click()
    expect(page.get_by_role("heading", name="Scoring lab")).to_be_visible(timeout=3 * PATIENCE * 1000)


def softmax(row: tuple[float, ...]) -> NDArray[np.float64]:
    scores = np.exp(np.array(row) - max(row))
    return np.asarray(scores / scores.sum())


def ssa(row: tuple[float, ...], n: float = 1.5) -> NDArray[np.float64]:
    x = np.array(row)
    scores = (1 + np.abs(x)) ** (np.sign(x) * n)
    return np.asarray(scores / scores.sum())


def showing(*keys: str) -> Callable[[Figure], bool]:
    return lambda figure: figure["layout"]["meta"].get("keys") == list(keys)


def drawn(page: Page, until: Callable[[Figure], bool] = bool) -> dict[str, NDArray[np.float64]]:
    """Every panel's weights by the function's name."""
    return {bar["name"]: np.asarray(bar["y"]) for bar in figure_data(page, "panels", until=until)["data"]}


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Logits of one row")


def bar(page: Page, key: int) -> Locator:
    return page.get_by_role("slider", name=f"logit of key {key}", exact=True)


def enter(page: Page, text: str) -> None:
    field(page).fill(text)
    page.keyboard.press("Control+Enter")
    wait_idle(page)


def drag(page: Page, key: int, up: float) -> None:
    """Move a bar's end by `up` pixels, in steps as a hand does."""
    box = bar(page, key).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 100
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(x, y - up * step / 8)
        page.wait_for_timeout(30)
    page.mouse.up()
    wait_idle(page)


def test_first_view_holds_the_weights_of_the_formulas(lab: Page) -> None:
    weights = drawn(lab)
    np.testing.assert_allclose(weights["Softmax"], softmax(START), rtol=1e-6)
    np.testing.assert_allclose(weights["SSA"], ssa(START), rtol=1e-6)
    assert [bar(lab, i + 1).get_attribute("aria-valuenow") for i in range(5)] == ["4", "1", "0.8", "0.5", "-0.2"]


def test_dragging_a_bar_changes_field_address_and_weights(lab: Page) -> None:
    drag(lab, 2, 60)
    value = float(bar(lab, 2).get_attribute("aria-valuenow") or "nan")
    assert 5 < value <= 10
    expect(field(lab)).to_have_value(f"4 {value:g} 0.8 0.5 -0.2")
    weights = drawn(lab, showing("4", f"{value:g}", "0.8", "0.5", "−0.2"))
    np.testing.assert_allclose(weights["SSA"], ssa((4.0, value, 0.8, 0.5, -0.2)), rtol=1e-6)
    assert re.search(r"[?&]x=4\+", lab.url)


def test_bars_answer_to_the_keyboard_and_keep_the_focus(lab: Page) -> None:
    bar(lab, 3).focus()
    for key in ("PageUp", "ArrowUp", "ArrowUp", "ArrowDown"):
        lab.keyboard.press(key)
    wait_idle(lab)
    expect(field(lab)).to_have_value("4 1 1.9 0.5 -0.2")
    weights = drawn(lab, showing("4", "1", "1.9", "0.5", "−0.2"))
    np.testing.assert_allclose(weights["Softmax"], softmax((4.0, 1.0, 1.9, 0.5, -0.2)), rtol=1e-6)
    expect(bar(lab, 3)).to_be_focused()
    lab.keyboard.press("End")
    wait_idle(lab)
    expect(field(lab)).to_have_value("4 1 10 0.5 -0.2")


def test_the_panels_follow_while_a_bar_is_held(lab: Page) -> None:
    box = bar(lab, 1).bounding_box()
    assert box is not None
    x = box["x"] + box["width"] / 2
    lab.mouse.move(x, box["y"] + 100)
    lab.mouse.down()
    lab.mouse.move(x, box["y"] + 30)
    held = float(bar(lab, 1).get_attribute("aria-valuenow") or "nan")
    weights = drawn(lab, showing(f"{held:g}", "1", "0.8", "0.5", "−0.2"))
    np.testing.assert_allclose(weights["Softmax"], softmax((held, *START[1:])), rtol=1e-6)
    lab.mouse.move(x, box["y"] + 60)
    let_go = float(bar(lab, 1).get_attribute("aria-valuenow") or "nan")
    assert let_go < held
    lab.mouse.up()
    drawn(lab, showing(f"{let_go:g}", "1", "0.8", "0.5", "−0.2"))


def test_a_drag_keeps_what_was_typed_and_not_yet_shown(lab: Page) -> None:
    field(lab).fill("3 2 1")
    drag(lab, 2, 40)
    value = float(bar(lab, 2).get_attribute("aria-valuenow") or "nan")
    assert value > 4
    expect(field(lab)).to_have_value(f"3 {value:g} 1")
    expect(lab.get_by_role("slider", name="logit of key")).to_have_count(3)


def test_typing_a_shout_shows_who_still_listens_and_n_slides(lab: Page) -> None:
    enter(lab, "70 1 0.5")
    weights = drawn(lab, showing("70", "1", "0.5"))
    np.testing.assert_allclose(weights["SSA"], ssa((70.0, 1.0, 0.5)), rtol=1e-6)
    expect(lab.get_by_role("slider", name="logit of key")).to_have_count(3)
    handle = lab.get_by_role("slider", name=re.compile("SSA.*n$"))
    handle.focus()
    for _ in range(10):
        lab.keyboard.press("ArrowRight")
    wait_idle(lab)
    weights = drawn(lab, lambda figure: any(b["name"] == "SSA, n = 2" for b in figure["data"]))
    np.testing.assert_allclose(weights["SSA, n = 2"], ssa((70.0, 1.0, 0.5), n=2.0), rtol=1e-6)
    lab.get_by_role("radio", name="Gradients").click()
    wait_idle(lab)
    matrix = np.asarray(figure_data(lab, "jacobian_softmax")["data"][0]["z"])
    w = softmax((70.0, 1.0, 0.5))
    np.testing.assert_allclose(matrix, np.diag(w) - np.outer(w, w), atol=1e-12)


def test_magnified_curves_are_the_closed_forms_and_survive_a_reload(lab: Page) -> None:
    enter(lab, "1 0.8 0.5 -0.2")
    switch = lab.get_by_role("switch", name="Log axis of the mass")
    for _ in range(3):  # a click is lost while the page moves under it
        lab.get_by_text("Log axis of the mass").click()
        wait_idle(lab)
        if not switch.is_checked():
            break
    linear = figure_data(lab, "curves_lambda", until=lambda f: f["layout"]["yaxis"]["type"] == "linear")
    lines = {line["name"]: line for line in linear["data"]}
    at, mass = np.asarray(lines["SSA"]["x"]), np.asarray(lines["SSA"]["y"])
    rows = [ssa(tuple(factor * np.array([1, 0.8, 0.5, -0.2]))) for factor in at]
    np.testing.assert_allclose(mass, [1 - row.max() for row in rows], rtol=1e-6)
    limit = 1 - 1 / (1 + 0.8**1.5 + 0.5**1.5)
    np.testing.assert_allclose(np.asarray(lines["SSA: formula"]["y"]), limit, rtol=1e-6)
    address = lab.url
    lab.reload()
    wait_idle(lab)
    expect(field(lab)).to_have_value("1 0.8 0.5 -0.2")
    again = figure_data(lab, "curves_lambda", until=lambda f: f["layout"]["yaxis"]["type"] == "linear")
    np.testing.assert_array_equal(np.asarray(again["data"][0]["y"]), np.asarray(linear["data"][0]["y"]))
    assert lab.url == address


def test_a_phone_drags_by_touch_and_does_not_scroll_sideways(
    new_context: Callable[..., BrowserContext], server: str
) -> None:
    phone = new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).new_page()
    phone.set_default_timeout(PATIENCE * 1000)
    open_page(phone, server)
    phone.get_by_test_id("stExpandSidebarButton").click()
    phone.get_by_role("link", name="Scoring lab").click()
    expect(phone.get_by_role("heading", name="Scoring lab")).to_be_visible(timeout=3 * PATIENCE * 1000)
    wait_idle(phone)
    bar(phone, 1).scroll_into_view_if_needed()
    box = bar(phone, 1).bounding_box()
    assert box is not None
    touch = {"pointerId": 5, "pointerType": "touch", "isPrimary": True, "bubbles": True, "clientX": box["x"] + 9}
    for kind, y in (("pointerdown", 60), ("pointermove", 30), ("pointerup", 30)):
        bar(phone, 1).evaluate(
            """(element, [kind, options]) => {
                element.setPointerCapture = () => {};  // a made-up pointer cannot be captured
                element.dispatchEvent(new PointerEvent(kind, options));
            }""",
            [kind, {**touch, "clientY": box["y"] + y}],
        )
    wait_idle(phone)
    assert float(bar(phone, 1).get_attribute("aria-valuenow") or "nan") > 7
    assert figure_data(phone, "panels")["data"]
    wide = phone.evaluate(
        """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
            .map(element => element.scrollWidth - element.clientWidth)"""
    )
    assert wide == [0, 0]
