"""Curves of runs over their steps, on the same axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from ssa_viz.figures.curves import Axis, Line, curves
from ssa_viz.figures.palette import Palette

MOST_POINTS = 300  # of a line, so that an update stays small


@dataclass(frozen=True)
class Course:
    """One run's course: `values` at `steps`, in order, both (N,); and its colour."""

    steps: Sequence[int]
    values: Sequence[float]
    colour: str


def training(
    courses: Mapping[str, Course],
    *,
    title: str,
    up: str,
    steps: int,
    palette: Palette,
    log: bool = False,
    span: tuple[float, float] | None = None,
    height: int = 230,
) -> go.Figure:
    """Every course over 0…`steps`, with at most `MOST_POINTS` points, the last one always among them.

    Between two records a line is straight, also where another run was recorded and this one was not.

    Raises:
        InvalidInputError: no course, or values and steps that do not fit each other.
    """
    known = np.unique(np.array([step for course in courses.values() for step in course.steps], dtype=np.float64))
    if len(known) > MOST_POINTS:
        known = known[np.unique(np.linspace(0, len(known) - 1, MOST_POINTS).round().astype(int))]
    lines = {}
    for name, course in courses.items():
        own = np.asarray(course.steps, dtype=np.float64)
        values = np.asarray(course.values, dtype=np.float64)
        inside = np.interp(known, own, values, left=np.nan, right=np.nan) if len(own) else np.full(len(known), np.nan)
        lines[name] = Line(inside, course.colour)
    return curves(
        known,
        lines,
        along=Axis("step", span=(0, steps)),
        up=Axis(up, log=log, span=span),
        palette=palette,
        title=title,
        height=height,
    )
