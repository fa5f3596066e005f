"""What every browser test needs: start the app, wait until it has settled, read a drawn figure back."""

from __future__ import annotations

import base64
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, WebError, expect

ROOT = Path(__file__).resolve().parents[1]
HOST = "127.0.0.1"
PATIENCE = 60.0  # seconds; a busy machine with two cores is slow to import torch and to draw the first figure

Figure = dict[str, Any]


@contextmanager
def serving(app: Path, log: Path) -> Iterator[str]:
    """Run a Streamlit app on a free port, its output in `log`, its training and maps beside it; the address, until the
    block ends.

    Raises:
        RuntimeError: when the app does not answer in time; the message holds its log.
    """
    port = _free_port()
    url = f"http://{HOST}:{port}"
    options = {
        "server.headless": "true",
        "server.address": HOST,
        "server.port": port,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    # One thread: the server shares the machine with the browser, and torch must not fight it for the cores.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLIT_")}
    own = {"SSA_VIZ_RUNS": str(log.parent / "runs"), "SSA_VIZ_CACHE": str(log.parent / "cache")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(app), *flags],
            cwd=ROOT,
            env={**inherited, **threads, **own, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_healthy(url, process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            # Any other path answers 200 with the page itself, so the body decides.
            with urlopen(f"{url}/_stcore/health", timeout=2) as response:
                if response.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.1)
    said = log.read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(f"the app did not answer at {url}; it said:\n{said}")


def watch(context: BrowserContext, complaints: list[str]) -> None:
    """Write down what must never happen: console errors, uncaught exceptions, requests to other hosts."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(f"console error: {message.text}")

    def on_error(error: WebError) -> None:
        complaints.append(f"uncaught in the page: {error.error}")

    def on_request(request: Request) -> None:
        note_host(request.url)

    def note_host(url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != HOST:
            complaints.append(f"request to another host: {url}")

    context.on("console", on_console)
    context.on("weberror", on_error)
    context.on("request", on_request)
    context.on("page", lambda page: page.on("websocket", lambda socket: note_host(socket.url)))


def exceptions_shown(context: BrowserContext) -> list[str]:
    """The text of every exception that Streamlit has drawn on an open page."""
    return [
        f"exception on {page.url}: {text}"
        for page in context.pages
        for text in page.get_by_test_id("stException").all_inner_texts()
    ]


def expect_no_complaints(complaints: list[str]) -> None:
    """Raises AssertionError with everything that was written down, unless that is nothing."""
    assert not complaints, "the page misbehaved:\n" + "\n".join(complaints)


def open_page(page: Page, url: str) -> None:
    """Go to the address and wait until the app has settled there."""
    page.goto(url)
    wait_idle(page)


def wait_idle(page: Page, *, seconds: float = PATIENCE) -> None:
    """Wait until the app is connected and its script has rested for a quarter of a second.

    Resting, not only "not running": a widget sends its change a moment after the key or click.

    Raises:
        AssertionError: when an exception is shown, or the script is still running after `seconds`.
    """
    page.evaluate("() => { delete window.restingSince; }")
    page.wait_for_function(_RESTING, timeout=seconds * 1000)
    expect(page.get_by_test_id("stException")).to_have_count(0)


_RESTING = """() => {
    if (document.querySelector('[data-testid=stException]')) return true;
    const state = document.querySelector('[data-testid=stApp]')?.dataset;
    const resting = state?.testConnectionState === 'CONNECTED' && state?.testScriptState === 'notRunning';
    window.restingSince = resting ? window.restingSince ?? performance.now() : undefined;
    return resting && performance.now() - window.restingSince > 250;
}"""


def figure_data(page: Page, key: str, *, until: Callable[[Figure], bool] = bool, seconds: float = PATIENCE) -> Figure:
    """What Plotly has drawn in the container with this key: {"data": [trace, …], "layout": {…}}.

    Read from `_fullData` and `_fullLayout`, so defaults are filled in. Numbers in a row become a numpy array,
    rows of equal length a 2-D one, whether they were sent packed or as a list; null becomes NaN. Names that
    start with an underscore are left out.

    Args:
        until: keep reading until this holds; for a figure that is about to change.

    Raises:
        AssertionError: when there is no such figure, or `until` never held in time.
    """
    plot = page.locator(f".st-key-{key} .js-plotly-plot").first
    expect(plot).to_be_attached(timeout=seconds * 1000)
    deadline = time.monotonic() + seconds
    while True:
        raw = plot.evaluate(_READ_FIGURE)
        figure: Figure = _decoded(raw) if raw else {}
        if figure and until(figure):
            return figure
        assert time.monotonic() < deadline, f"the figure {key!r} did not become what was expected: {figure}"
        page.wait_for_timeout(100)


_READ_FIGURE = """plot => {
    if (!plot._fullData || !plot._fullLayout) return null;
    const path = new Set();
    const plain = value => {
        if (value === null || ['number', 'string', 'boolean'].includes(typeof value)) return value;
        if (typeof value !== 'object' || value instanceof Node || path.has(value)) return undefined;
        if (ArrayBuffer.isView(value)) {
            const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
            let text = '';
            for (let i = 0; i < bytes.length; i += 32768)
                text += String.fromCharCode(...bytes.subarray(i, i + 32768));
            return {packed: value.constructor.name, base64: btoa(text)};
        }
        path.add(value);
        const result = Array.isArray(value)
            ? value.map(item => plain(item) ?? null)
            : Object.fromEntries(Object.entries(value)
                .filter(([name]) => !name.startsWith('_'))
                .map(([name, item]) => [name, plain(item)])
                .filter(([, item]) => item !== undefined));
        path.delete(value);
        return result;
    };
    return {data: plain(plot._fullData), layout: plain(plot._fullLayout)};
}"""

_PACKED = {
    "Int8Array": "<i1",
    "Uint8Array": "<u1",
    "Uint8ClampedArray": "<u1",
    "Int16Array": "<i2",
    "Uint16Array": "<u2",
    "Int32Array": "<i4",
    "Uint32Array": "<u4",
    "Float32Array": "<f4",
    "Float64Array": "<f8",
}


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"packed", "base64"}:
            return np.frombuffer(base64.b64decode(value["base64"]), dtype=_PACKED[value["packed"]])
        return {name: _decoded(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    if value and all(_is_number(item) for item in value) and not all(item is None for item in value):
        return np.array([np.nan if item is None else item for item in value], dtype=np.float64)
    items = [_decoded(item) for item in value]
    if items and all(isinstance(item, np.ndarray) and item.shape == items[0].shape for item in items):
        return np.stack(items)
    return items


def _is_number(item: Any) -> bool:
    return item is None or (isinstance(item, int | float) and not isinstance(item, bool))


def read_png_size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels, from the header.

    Raises:
        ValueError: when the bytes are not a PNG.
    """
    if png[:8] != b"\x89PNG\r\n\x1a\n" or png[12:16] != b"IHDR":
        raise ValueError(f"not a PNG: it starts with {png[:16]!r}")
    width, height = struct.unpack(">II", png[16:24])
    return width, height
