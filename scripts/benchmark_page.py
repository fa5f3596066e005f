"""From an edit on the Numbers page to the redrawn page: on the server alone, and in a real browser.

Every edit types a whole new sequence, so nothing comes from a cache but the models. An outlier is injected in its
middle and the default views are open.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from benchmark_line import Line, seconds, size
from chromium import from_system
from playwright.sync_api import Page, WebSocket, sync_playwright
from streamlit.testing.v1 import AppTest

from ssa_viz import checkpoints
from ssa_viz.model import ModelConfig, build
from ssa_viz.sequence import format_numbers, label
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.presets import SCORED, checkpoint_name
from tests.browser import HOST, ROOT, open_page, serving, wait_idle

WARM_UP = 3  # edits that are not measured: imports, caches, the browser's compiled scripts
TASK, INJECTED = "every", 70.0
PATIENCE_MS = 120_000


@dataclass(frozen=True)
class Size:
    """A pair of models to look at, and the most that an edit may take.

    Attributes:
        variant, layers, heads, width, tokens: of the models; every edit fills the context.
        server, browser: seconds, for the 95th percentile.
        sent: bytes of figure, or None where there is no aim.
    """

    variant: str
    layers: int
    heads: int
    width: int
    tokens: int
    server: float
    browser: float
    sent: float | None

    def __str__(self) -> str:
        return f"{self.layers} layers × {self.heads} heads × {self.tokens} numbers"

    @property
    def outlier(self) -> int:
        """Index of the injected number."""
        return self.tokens // 2

    def address(self) -> dict[str, str]:
        """The page's state before the first edit, as query parameters. The position holds only for enough numbers."""
        start = format_numbers([1.0] * self.tokens)
        return {"v": "1", "arch": self.variant, "seq": start, "inject": "1", "at": str(self.outlier + 1)}

    def sequences(self) -> Iterator[list[float]]:
        """Sequences that fill the context, each a new one, the same in every run."""
        generator = np.random.default_rng(self.tokens)
        while True:
            yield generator.normal(size=self.tokens).round(2).tolist()


# Of two architectures, since the page tells one pair of checkpoints from another by that.
SIZES = (
    Size("attention_only", 2, 4, 64, 41, server=0.15, browser=0.7, sent=None),
    Size("transformer", 12, 8, 256, 82, server=0.5, browser=1.2, sent=1e6),
)


def write_models(folder: Path) -> None:
    """Untrained checkpoints of every size: how long a page takes does not depend on what its models learned."""
    for size_ in SIZES:
        for scoring in SCORED:
            model = ModelConfig(size_.variant, size_.layers, size_.heads, size_.width, size_.tokens, scoring=scoring)
            config = TrainConfig(model=model, task=TASK, length=size_.tokens)
            name = checkpoint_name(TASK, size_.variant, scoring)
            checkpoints.save(folder / name, build(model, seed=0), config, {})
    every_seed = ROOT / "models" / "seeds.json"
    if every_seed.exists():  # the page shows a table of it
        shutil.copy(every_seed, folder)


@contextmanager
def showing(models: Path) -> Iterator[None]:
    """The app, in this process and in those it starts, reads its checkpoints from `models`."""
    before = os.environ.get("SSA_VIZ_MODELS")
    os.environ["SSA_VIZ_MODELS"] = str(models)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SSA_VIZ_MODELS"]
        else:
            os.environ["SSA_VIZ_MODELS"] = before


def on_the_server(edits: int) -> Iterator[Line]:
    """The script's run from an edit to its last message, with nothing sent anywhere; and the figures it made."""
    for case in SIZES:
        app = AppTest.from_file(ROOT / "app.py", default_timeout=PATIENCE_MS / 1000)
        app.query_params.update(case.address())
        app.run()
        times, sent = [], []
        for _, numbers in zip(range(WARM_UP + edits), case.sequences(), strict=False):
            app.text_area(key="numbers.seq").set_value(format_numbers(numbers))
            start = time.perf_counter()
            app.run()
            times.append(time.perf_counter() - start)
            _check(app)
            sent.append(sum(len(chart.proto.spec.encode()) for chart in _charts(app)))
        yield seconds(f"edit to page, on the server, {case}", times[WARM_UP:], case.server)
        yield size(f"figures as JSON, per edit, {case}", sent[WARM_UP:], case.sent)


def _charts(app: AppTest) -> list[Any]:
    return list(app.get("plotly_chart"))


def _check(app: AppTest) -> None:
    """Raises RuntimeError if the page did not draw what is to be measured."""
    wrong = [element.value for element in (*app.exception, *app.error)]
    if wrong or not _charts(app):
        raise RuntimeError(f"the page did not draw its charts: {wrong}")


def in_the_browser(edits: int, log: Path) -> Iterator[Line]:
    """From the key that ends an edit to the drawn page; and what came through the web socket for it."""
    executable = os.environ.get("SSA_VIZ_CHROMIUM") or from_system()
    if executable is None:
        raise RuntimeError("no Chromium was found; install one, or set SSA_VIZ_CHROMIUM to its path")
    with serving(ROOT / "app.py", log) as url, sync_playwright() as playwright:
        rules = f"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {HOST}"
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu", rules])
        for case in SIZES:
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            received: list[int] = []
            page.on("websocket", partial(_count, received))
            open_page(page, f"{url}/?{urlencode(case.address())}")
            page.wait_for_function(_ALL_DRAWN)
            times, sent = [], []
            for _, numbers in zip(range(WARM_UP + edits), case.sequences(), strict=False):
                received.clear()
                times.append(_edit(page, case, numbers))
                wait_idle(page)
                sent.append(sum(received))
            context.close()
            yield seconds(f"edit to drawn page, in the browser, {case}", times[WARM_UP:], case.browser)
            yield size(f"received by the browser, per edit, {case}", sent[WARM_UP:], case.sent)
        browser.close()


def _count(received: list[int], socket: WebSocket) -> None:
    """Note the bytes of every message that comes through `socket`."""

    def note(payload: str | bytes) -> None:
        received.append(len(payload.encode() if isinstance(payload, str) else payload))

    socket.on("framereceived", note)


def _edit(page: Page, case: Size, numbers: list[float]) -> float:
    """Type `numbers`, press Ctrl+Enter; seconds from that key to the frame after the last chart was drawn."""
    shown = [label(INJECTED if i == case.outlier else number) for i, number in enumerate(numbers)]
    field = page.get_by_role("textbox", name="Numbers", exact=True)
    field.fill(format_numbers(numbers))
    page.evaluate(_TIME_NEXT_EDIT, [shown, PATIENCE_MS])
    field.press("Control+Enter")
    milliseconds: float = page.evaluate("() => window.nextEdit")
    return milliseconds / 1000


# The script rests before plotly, loaded with the first chart, has drawn that.
_ALL_DRAWN = """() => {
    const charts = [...document.querySelectorAll('[data-testid=stPlotlyChart]')];
    return charts.length && charts.every(chart => chart.querySelector('.js-plotly-plot')?._fullData);
}"""

# Drawn: the script rests, both heatmaps hold the new tokens, and every chart of the page has been given new data.
# Looked for once a frame; the two frames that follow are the browser's time to put it on the screen.
_TIME_NEXT_EDIT = """([shown, patience]) => {
    const expected = JSON.stringify(shown);
    const charts = () => new Map([...document.querySelectorAll('[class*="st-key-"] .js-plotly-plot')]
        .map(plot => [plot.closest('[class*="st-key-"]').className.match(/st-key-(\\S+)/)[1], plot]));
    const before = new Map([...charts()].map(([key, plot]) => [key, plot.data]));
    const drawn = () => {
        if (document.querySelector('[data-testid=stApp]').dataset.testScriptState !== 'notRunning') return false;
        const now = charts();
        return [...before].every(([key, data]) => now.get(key)?.data && now.get(key).data !== data)
            && ['attention_softmax', 'attention_ssa'].every(key => {
                const plot = now.get(key);
                return JSON.stringify(plot?._fullLayout?.meta?.keys) === expected
                    && plot.querySelector('.heatmaplayer image');
            });
    };
    window.nextEdit = new Promise((resolve, reject) => {
        let start;
        addEventListener('keydown', event => {
            if (event.key === 'Enter') start ??= event.timeStamp;
        }, {capture: true});
        const look = () => {
            if (start !== undefined && drawn())
                requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start)));
            else if (start !== undefined && performance.now() - start > patience)
                reject(new Error('the page did not draw the new sequence in time'));
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
}"""
