"""What happens while the injected value grows: one quantity of each model over a log axis of sizes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.frame import Series, check_series, framed, plain, titled, trace
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette

LONGEST_TITLE = 30  # characters of the title beside the axis that its height holds
DASHES = ("solid", "dashdot", "longdash", "longdashdot", "dot")


def sweep(
    values: NDArray[np.floating],
    curves: Series,
    *,
    ytitle: str,
    yrange: tuple[float, float],
    palette: Palette,
    title: str,
    first_wrong: Mapping[str, float | None] | None = None,
    current: float | None = None,
    height: int = 320,
) -> go.Figure:
    """Curves (V,) over injected values (V,) of one sign, drawn over their size on a log axis from 1 to 10⁴.

    `first_wrong` gives for a curve's label the value from which that model answers wrong: a tick below it
    with its number. `current` is the value now injected, a thin accent line. The axis title says the sign.

    Raises:
        InvalidInputError: values of mixed sign, zero or not finite; curves of another length; a label in
            `first_wrong` that is no curve.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all() or (given == 0).any():
        raise InvalidInputError("a sweep needs a list of finite values other than 0")
    negative = bool(given[0] < 0)
    if ((given < 0) != negative).any():
        raise InvalidInputError("a sweep needs values of one sign: sweep positive and negative ones apart")
    check_series(curves, len(given))
    wrong = first_wrong or {}
    if unknown := [label for label in wrong if label not in curves]:
        raise InvalidInputError(f"no curve is called {unknown[0]!r}; the curves are: {', '.join(curves)}")

    quantity = plain(ytitle)
    size = np.abs(given).astype(np.float32)
    traces = [
        trace(
            "scatter",
            name=plain(label),
            x=size,
            y=np.asarray(heights, dtype=np.float32),
            customdata=given.astype(np.float32),
            mode="lines",
            line={"color": colour, "width": 2.5, "dash": DASHES[i % len(DASHES)]},
            hovertemplate=f"injected %{{customdata:.4g}}<br>{quantity} %{{y:.4g}}<extra>%{{fullData.name}}</extra>",
        )
        for i, (label, (heights, colour)) in enumerate(curves.items())
    ]
    marks = Marks()
    for i, (label, value) in enumerate(wrong.items()):
        if value is not None:
            traces.append(_first_wrong(label, value, curves[label][1], i, yrange, marks))
    if current is not None and current != 0 and (current < 0) == negative:
        place, line = abs(current), {"color": palette.outlier, "width": 1.5}
        marks.shape("current", "line", (place, place), (0, 1), yref="paper", line=line, layer="between")
        exponent, words = _exponent(current), f"now {_number(current)}"
        marks.pointer("current", words, exponent, 1, palette.outlier, right=exponent > 2, yref="paper")
    lines = [plain(line) for line in textwrap.wrap(ytitle, LONGEST_TITLE)]
    return framed(
        traces,
        palette,
        title=title,
        height=height,
        margin=(42 + 16 * len(lines), 28, 56, 88),
        marks=marks,
        meta={
            "figure": "sweep",
            "scale": "x log from 1 to 10⁴, y linear",
            "negative": negative,
            "current": current,
        },
        showlegend=True,
        xaxis=titled(
            palette,
            "injected value (negative, log)" if negative else "injected value (log)",
            type="log",
            range=[-0.05, 4.05],
            tickvals=[1, 10, 100, 1000, 10000],
            ticktext=[f"{'−' * negative}{n:,}".replace(",", "\u202f") for n in (1, 10, 100, 1000, 10000)],
        ),
        yaxis=titled(palette, "<br>".join(lines), range=list(yrange)),
    )


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _exponent(value: float) -> float:
    """Where a value stands for an annotation: those count a log axis in powers of ten, shapes do not."""
    return float(np.clip(np.log10(abs(value)), 0, 4))


def _first_wrong(
    label: str, value: float, colour: str, index: int, yrange: tuple[float, float], marks: Marks
) -> dict[str, Any]:
    """A tick from the bottom, its number beside its top; each further one is taller, to keep texts apart."""
    low, high = yrange
    top = low + (high - low) * (0.07 + 0.1 * index)
    exponent = _exponent(value)
    left = exponent > 2
    words, side = f"{plain(label)} wrong from {_number(value)}", "right" if left else "left"
    marks.text("first wrong", words, exponent, top, colour, xanchor=side, xshift=-8 if left else 8)
    return trace(
        "scatter",
        name=f"{plain(label)}: first wrong",
        x=[abs(value), abs(value)],
        y=[low, top],
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"symbol": "x", "size": [0, 8], "color": colour},
        hovertemplate=f"{plain(label)} first answers wrong at {_number(value)}<extra></extra>",
        showlegend=False,
    )
