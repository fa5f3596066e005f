"""What is drawn while runs train: it changes in place, and only what is new travels to the browser.

A Plotly chart would be taken down and built again at each change, so those come when the training rests.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from ssa_viz.figures.palette import Palette
from ssa_viz.figures.training import Course

KEY = "train_live"  # session key of the component
SENT = "train:sent"  # session key: chart and run → how many points there were at the last ticks
OVERLAP = 5  # ticks that are sent again, as a browser may skip some
MOST_POINTS = 1000  # of a line; a longer one is thinned and sent whole
DASHES: tuple[list[int], ...] = ([], [7, 4], [2, 3], [8, 3, 2, 3])
HTML = '<div class="live"><div class="charts"></div><div class="maps"></div></div>'
CSS = """
.live { font-family: var(--st-font, system-ui, sans-serif); }
.charts, .maps { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); }
.maps { margin-top: 1rem; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); }
canvas { width: 100%; display: block; }
"""
JS = Path(__file__).with_name("live.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Chart:
    """One quantity of all runs: a course for each."""

    id: str
    title: str
    courses: Sequence[Course]
    log: bool = False
    span: tuple[float, float] | None = None


@dataclass(frozen=True)
class Map:
    """Attention of one run: weights (Q, K) in 0…1, and the 70's token."""

    title: str
    weights: NDArray[np.floating]
    outlier: int


def live(
    comparison: str, names: Sequence[str], colours: Sequence[str], charts: Sequence[Chart],
    maps: Sequence[Map | None], *, steps: int, palette: Palette,
) -> None:  # fmt: skip
    """Draw the charts and maps of the runs, in the order of `names`; a map is None where there is none yet."""
    data = {
        "key": comparison,
        "runs": [
            {"name": name, "colour": colour, "dash": DASHES[colours[:i].count(colour) % len(DASHES)]}
            for i, (name, colour) in enumerate(zip(names, colours, strict=True))
        ],
        "steps": steps,
        "charts": [
            {
                "id": chart.id,
                "title": chart.title,
                "log": chart.log,
                "span": chart.span,
                "points": [_new(f"{comparison} {chart.id} {i}", course) for i, course in enumerate(chart.courses)],
            }
            for chart in charts
        ],
        "maps": [_map(i, each) for i, each in enumerate(maps) if each is not None],
        "ink": palette.ink,
        "muted": palette.muted,
        "grid": palette.grid,
        "outlier": palette.outlier,
        "stops": [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in palette.sequential],
    }
    drawing = st.components.v2.component("live_training", html=HTML, css=CSS, js=JS)
    drawing(data=data, key=KEY, on_whole_change=_send_whole)


def _new(key: str, course: Course) -> dict[str, Any]:
    """The course's points since a few ticks ago, and the place of the first of them."""
    steps, values = list(course.steps), [float(f"{value:.4g}") for value in course.values]
    if len(steps) > MOST_POINTS:
        kept = np.unique(np.linspace(0, len(steps) - 1, MOST_POINTS).round().astype(int))
        return {"from": 0, "steps": [steps[i] for i in kept], "values": [values[i] for i in kept]}
    counts: deque[int] = st.session_state.setdefault(SENT, {}).setdefault(key, deque([0], maxlen=OVERLAP))
    first = min(counts[0], len(steps))
    counts.append(len(steps))
    return {"from": first, "steps": steps[first:], "values": values[first:]}


def _map(run: int, each: Map) -> dict[str, Any]:
    cells = np.clip(np.rint(255 * each.weights), 0, 255).astype(np.uint8)
    return {
        "run": run,
        "title": each.title,
        "size": len(cells),
        "cells": base64.b64encode(cells.tobytes()).decode(),
        "outlier": each.outlier,
    }


def _send_whole() -> None:
    """The browser lacks something: begin again."""
    st.session_state.pop(SENT, None)
