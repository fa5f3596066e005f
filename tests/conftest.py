"""The running app and a guarded browser for the tests marked `browser`.

The guard belongs to every context that a test opens: a console error, an exception on a page or a request to
another host fails the test, whatever else it looks at.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tests.browser import HOST, ROOT, exceptions_shown, expect_no_complaints, serving, watch

# Whatever was trained on this machine is none of the tests' business.
os.environ["SSA_VIZ_RUNS"] = str(Path(tempfile.gettempdir()) / f"ssa-viz-tests-{os.getpid()}-without-runs")
os.environ["SSA_VIZ_CACHE"] = str(Path(tempfile.gettempdir()) / f"ssa-viz-tests-{os.getpid()}-cache")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SERVER_LOG = pytest.StashKey[Path]()


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The real browser: quiet, without a sandbox (containers run as root), blind to other hosts."""
    return {
        **browser_type_launch_args,
        "executable_path": find_chromium(),
        "args": [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {HOST}",
        ],
    }


def find_chromium() -> str:
    """The browser that `make test` found, or a system one. A missing browser is a failure, never a skip."""
    named = os.environ.get("SSA_VIZ_CHROMIUM")
    found = [path for path in map(shutil.which, [named] if named else BROWSERS) if path is not None]
    if not found:
        pytest.fail("no Chromium for the browser tests: run `make test`, or set SSA_VIZ_CHROMIUM to its path")
    return found[0]


@pytest.fixture(scope="session")
def base_url() -> None:
    """Addresses are named in full. Stands in for the plugin's own fixture, which pytest 9 warns about."""


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app, started once for all tests. A failing browser test reports the app's log."""
    log = tmp_path_factory.mktemp("server") / "app.log"
    request.config.stash[SERVER_LOG] = log
    with serving(ROOT / "app.py", log) as url:
        yield url


@pytest.fixture
def complaints() -> list[str]:
    """What the guard has written down. A test that provokes a complaint on purpose takes it out again."""
    return []


@pytest.fixture
def new_context(
    new_context: Callable[..., BrowserContext], complaints: list[str]
) -> Iterator[Callable[..., BrowserContext]]:
    """Opens guarded browser contexts; `context` and `page` come from here too."""
    opened: list[BrowserContext] = []

    def open_guarded(**options: Any) -> BrowserContext:
        context = new_context(**options)
        watch(context, complaints)
        opened.append(context)
        return context

    yield open_guarded
    for context in opened:
        complaints += exceptions_shown(context)
    expect_no_complaints(complaints)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest go first, so that several processes end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is None and item.path.name != "test_jobs.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the end of the app's log into the report of a failed browser test."""
    report = yield
    log = item.config.stash.get(SERVER_LOG, None)
    if report.failed and log is not None and log.exists() and item.get_closest_marker("browser"):
        text = log.read_text(encoding="utf-8", errors="replace")
        report.sections.append(("log of the app", text[-20_000:]))
    return report
