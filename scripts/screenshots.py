"""Take the README's pictures from the running app: `python scripts/screenshots.py`, or `make screenshots`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ssa_viz import jobs  # noqa: E402
from ssa_viz.jobs import RunConfig  # noqa: E402
from ssa_viz.scoring import SCORING  # noqa: E402
from ssa_viz.train.presets import PRESETS, SCORED  # noqa: E402
from tests.browser import figure_data, open_page, serving  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
SHOTS = (
    # name, what comes after the address, a figure to wait for, width, height
    ("collapse", "?inject=1&v=1", "attention_ssa", 1400, 1080),
    ("phone", "?inject=1&v=1", "attention_ssa", 390, 844),
    ("train", "train", "train_loss", 1400, 1500),
    ("scoring-lab", "scoring?x=8+1+0.8+0.5+-0.2&v=1", "panels", 1400, 1000),
)


def main() -> None:
    """Write one PNG for each of `SHOTS`."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    executable = os.environ.get("SSA_VIZ_CHROMIUM") or shutil.which("chromium")
    log = Path(tempfile.mkdtemp()) / "app.log"
    _train(log.parent / "runs")
    with serving(ROOT / "app.py", log) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        for name, query, figure, width, height in SHOTS:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            open_page(page, f"{url}/{query}")
            figure_data(page, figure)
            page.wait_for_timeout(1000)  # the last frame of Plotly's drawing
            page.screenshot(path=PICTURES / f"{name}.png")
            print(PICTURES / f"{name}.png")
            page.close()
        browser.close()


def _train(runs: Path) -> None:
    """The classroom preset for the picture of the Train page; about a minute."""
    recipe = PRESETS["classroom"].recipe
    wanted = [
        RunConfig(recipe("every", scoring, 0), SCORING[scoring].label, comparison="classroom", created=float(order))
        for order, scoring in enumerate(SCORED)
    ]
    folders = jobs.create(runs, wanted)
    while any(jobs.read_status(folder).state != "finished" for folder in folders):
        time.sleep(0.5)


if __name__ == "__main__":
    main()
