"""The browser tools themselves, on a small app: what they read back, and that their alarms ring."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser import (
    exceptions_shown,
    expect_no_complaints,
    figure_data,
    open_page,
    read_png_size,
    serving,
    wait_idle,
)

pytestmark = pytest.mark.browser

APP = """
import numpy as np
import plotly.graph_objects as go
import streamlit as st

factor = 3 if st.toggle("triple") else 1
packed = np.arange(15, dtype=np.float32).reshape(3, 5) * factor
figure = go.Figure([go.Heatmap(z=packed, colorscale="Viridis"), go.Scatter(x=[2, None, 7], y=[1, 1, 1])])
figure.update_xaxes(title_text="key")
figure.update_yaxes(ticktext=["a", "a", "b"], tickvals=[0, 1, 2], autorange="reversed")
with st.container(key="plot"):
    st.plotly_chart(figure, key="chart")
if st.query_params.get("broken"):
    raise ValueError("on purpose")
"""


@pytest.fixture(scope="module")
def small_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("small app")
    app = folder / "small.py"
    app.write_text(APP, encoding="utf-8")
    with serving(app, folder / "app.log") as url:
        yield url


def test_a_figure_is_read_back_with_its_numbers(page: Page, small_app: str) -> None:
    open_page(page, small_app)
    figure = figure_data(page, "plot")
    heatmap, scatter = figure["data"]
    np.testing.assert_array_equal(heatmap["z"], np.arange(15).reshape(3, 5))
    np.testing.assert_array_equal(scatter["x"], [2, np.nan, 7])
    assert figure["layout"]["xaxis"]["title"]["text"] == "key"
    assert figure["layout"]["yaxis"]["ticktext"] == ["a", "a", "b"]
    assert figure["layout"]["yaxis"]["range"][0] > figure["layout"]["yaxis"]["range"][1]


def test_a_change_is_seen_after_waiting(page: Page, small_app: str) -> None:
    open_page(page, small_app)
    page.get_by_text("triple").click()
    wait_idle(page)
    figure = figure_data(page, "plot", until=lambda figure: figure["data"][0]["z"].max() == 42)
    np.testing.assert_array_equal(figure["data"][0]["z"], 3 * np.arange(15).reshape(3, 5))


def test_a_figure_that_never_comes_is_an_error(page: Page, small_app: str) -> None:
    open_page(page, small_app)
    assert figure_data(page, "plot")["data"]
    with pytest.raises(AssertionError, match="Locator expected to be attached"):
        figure_data(page, "absent", seconds=0.2)
    with pytest.raises(AssertionError, match="did not become"):
        figure_data(page, "plot", until=lambda figure: False, seconds=0.2)


def test_an_exception_on_the_page_is_reported(browser: Browser, small_app: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    with pytest.raises(AssertionError):
        open_page(page, f"{small_app}/?broken=1")
    [shown] = exceptions_shown(context)
    context.close()
    assert "on purpose" in shown


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("console.error('a bad thing')", "console error: a bad thing"),
        ("setTimeout(() => { throw new Error('lost') })", "uncaught in the page: lost"),
        (
            "fetch('http://example.invalid/').catch(() => {})",
            "request to another host: http://example.invalid/",
        ),
        ("new WebSocket('ws://192.0.2.1:7/')", "request to another host: ws://192.0.2.1:7/"),
    ],
)
def test_the_guard_notices(
    new_context: Callable[..., BrowserContext],
    complaints: list[str],
    small_app: str,
    script: str,
    complaint: str,
) -> None:
    page = new_context(locale="de-DE").new_page()
    page.goto(f"{small_app}/_stcore/health")
    assert page.evaluate("navigator.language") == "de-DE"
    assert complaints == []
    page.evaluate(f"() => {{ {script} }}")
    page.wait_for_timeout(300)
    said = "\n".join(complaints)
    complaints.clear()
    assert complaint in said


def test_a_complaint_fails_the_test() -> None:
    expect_no_complaints([])
    with pytest.raises(AssertionError, match="console error: a bad thing"):
        expect_no_complaints(["console error: a bad thing"])


def test_other_hosts_cannot_be_reached(browser: Browser, small_app: str) -> None:
    page = browser.new_page()
    page.goto(f"{small_app}/_stcore/health")
    ask = "url => fetch(url, {mode: 'no-cors'}).then(() => 'answered', error => error.message)"
    assert page.evaluate(ask, f"{small_app}/_stcore/health") == "answered"
    assert page.evaluate(ask, small_app.replace("127.0.0.1", "127.0.0.2")) == "Failed to fetch"
    page.close()


def test_the_size_of_a_screenshot_is_read(page: Page) -> None:
    page.set_viewport_size({"width": 211, "height": 97})
    assert read_png_size(page.screenshot()) == (211, 97)
    with pytest.raises(ValueError, match="not a PNG"):
        read_png_size(b"GIF89a, not a picture of that kind")
