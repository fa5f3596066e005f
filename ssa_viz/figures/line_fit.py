"""The linear task: the true line, what each model predicts, and its squared error at each position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.frame import (
    SYMBOLS,
    Series,
    check_position,
    check_series,
    framed,
    indexed,
    marker_size,
    plain,
    titled,
    token_axis,
    trace,
)
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette

ERROR_FLOOR = 1e-6
DASHES = ("solid", "dashdot", "longdash", "longdashdot", "dot")  # one per model; the true line has "dash"


def line_fit(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    *,
    grid: NDArray[np.floating],
    true: NDArray[np.floating],
    predicted: Series,
    palette: Palette,
    title: str = "Predicted line",
    outlier: int | None = None,
    xrange: tuple[float, float] | None = None,
    height: int = 360,
) -> go.Figure:
    """The points (N,) of a prompt, the true line and each model's predictions over a grid (G,).

    `outlier` is the index of the injected point. Points outside `xrange` are counted in the subtitle.

    Raises:
        InvalidInputError: lengths that differ, or a position outside the points.
    """
    if np.ndim(x) != 1 or np.shape(x) != np.shape(y) or len(x) == 0:
        raise InvalidInputError(f"points need as many x as y, at least one, not {np.shape(x)} and {np.shape(y)}")
    if np.shape(true) != np.shape(grid):
        raise InvalidInputError(f"the true line has {np.shape(true)} values for a grid of {np.shape(grid)}")
    check_series(predicted, len(grid))
    check_position(outlier, len(x))
    places = np.asarray(grid, dtype=np.float32)
    traces = [
        trace(
            "scatter",
            name="true line",
            x=places,
            y=np.asarray(true, dtype=np.float32),
            mode="lines",
            line={"color": palette.muted, "width": 2, "dash": "dash"},
            hovertemplate="x %{x:.4g}<br>f(x) %{y:.4g}<extra>true line</extra>",
        )
    ]
    traces += [
        trace(
            "scatter",
            name=plain(label),
            x=places,
            y=np.asarray(values, dtype=np.float32),
            mode="lines",
            line={"color": colour, "width": 2.5, "dash": DASHES[i % len(DASHES)]},
            hovertemplate="x %{x:.4g}<br>prediction %{y:.4g}<extra>%{fullData.name}</extra>",
        )
        for i, (label, (values, colour)) in enumerate(predicted.items())
    ]
    usual = [i for i in range(len(x)) if i != outlier]
    traces.append(_points("points", x, y, usual, symbol="circle", size=7, color=palette.ink))
    if outlier is not None:
        traces.append(_points("injected", x, y, [outlier], symbol="star", size=13, color=palette.outlier))
    inside, yrange = _view(x, y, grid, [true, *(values for values, _ in predicted.values())], xrange)
    outside = int((~inside).sum())
    return framed(
        traces,
        palette,
        title=title,
        subtitle=f"{outside} point{'s' * (outside != 1)} outside this view." if outside else "",
        height=height,
        margin=(54, 14, 52, 92),
        meta={"figure": "line fit", "scale": "linear", "outlier": outlier},
        showlegend=True,
        xaxis=titled(palette, "x", range=None if xrange is None else list(xrange)),
        yaxis=titled(palette, "f(x)", range=yrange),
    )


def squared_errors(
    errors: Series,
    labels: Sequence[str],
    *,
    palette: Palette,
    title: str = "Squared error at each position",
    outlier: int | None = None,
    height: int = 340,
) -> go.Figure:
    """Squared error (N,) of each model at each position, on a log axis whose floor is stated in its title.

    Raises:
        InvalidInputError: no label, a series of another length, or a position outside the labels.
    """
    count = len(labels)
    if count == 0:
        raise InvalidInputError("squared errors need at least one position")
    check_series(errors, count)
    check_position(outlier, count)
    traces = [
        trace(
            "scatter",
            name=plain(label),
            x=np.arange(count, dtype=np.int32),
            y=np.maximum(np.asarray(values, dtype=np.float32), np.float32(ERROR_FLOOR)),
            customdata=np.asarray(values, dtype=np.float32),
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"symbol": SYMBOLS[i % len(SYMBOLS)], "size": marker_size(count), "color": colour},
            text=indexed(labels),
            hovertemplate="at %{text}<br>squared error %{customdata:.4g}<extra>%{fullData.name}</extra>",
        )
        for i, (label, (values, colour)) in enumerate(errors.items())
    ]
    stated = "Log axis; below 10⁻⁶ drawn as 10⁻⁶."
    marks = Marks()
    marks.injected_line(outlier, palette, count)
    return framed(
        traces,
        palette,
        title=title,
        subtitle=stated,
        height=height,
        margin=(58, 14, 70, 112),
        marks=marks,
        meta={"figure": "squared errors", "scale": stated, "tokens": list(labels), "outlier": outlier},
        showlegend=True,
        xaxis=token_axis(palette, labels, "x", outlier),
        yaxis=titled(palette, "squared error (log)", type="log", dtick=1, exponentformat="power"),
    )


def _view(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    grid: NDArray[np.floating],
    curves: Sequence[NDArray[np.floating]],
    xrange: tuple[float, float] | None,
) -> tuple[NDArray[np.bool_], list[float] | None]:
    """Which points (N,) lie in `xrange`, and the heights that hold what does; None leaves them to plotly."""
    if xrange is None:
        return np.ones(len(x), dtype=bool), None
    low, high = xrange
    inside = (np.asarray(x) >= low) & (np.asarray(x) <= high)
    drawn = (np.asarray(grid) >= low) & (np.asarray(grid) <= high)
    heights = np.concatenate([np.asarray(y)[inside], *(np.asarray(curve)[drawn] for curve in curves)])
    heights = heights[np.isfinite(heights)]
    if not heights.size:
        return inside, None
    room = 0.06 * max(float(np.ptp(heights)), 1e-3)
    return inside, [float(heights.min()) - room, float(heights.max()) + room]


def _points(
    name: str, x: NDArray[np.floating], y: NDArray[np.floating], which: list[int], **marker: object
) -> dict[str, Any]:
    return trace(
        "scatter",
        name=name,
        x=np.asarray(x, dtype=np.float32)[which],
        y=np.asarray(y, dtype=np.float32)[which],
        text=[str(i) for i in which],
        mode="markers",
        marker=marker,
        hovertemplate=f"point %{{text}}<br>x %{{x:.4g}}<br>f(x) %{{y:.4g}}<extra>{name}</extra>",
    )
