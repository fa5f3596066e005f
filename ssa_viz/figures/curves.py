"""Lines over one number, on linear or log axes, each with the closed form that it should follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.frame import framed, plain, titled, trace
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
TOP, LEGEND_ROW = 44, 20  # pixels
LEGEND = {
    "orientation": "h", "x": 0, "xanchor": "left", "xref": "container", "y": 0, "yanchor": "bottom",
    "yref": "container", "entrywidth": 130, "entrywidthmode": "pixels", "bgcolor": "rgba(0,0,0,0)",
}  # fmt: skip
FLOOR = 1e-30  # a log axis of weights ends here


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        y: (N,), NaN where it has no value.
        colour: of the line.
        closed_form: (N,), drawn thin and dotted over it, or None.
    """

    y: NDArray[np.floating]
    colour: str
    closed_form: NDArray[np.floating] | None = None


@dataclass(frozen=True)
class Axis:
    """What an axis says and how it runs: `span` are its ends as numbers, also on a log axis; None: as the data."""

    title: str
    log: bool = False
    span: tuple[float, float] | None = None


def curves(
    x: NDArray[np.floating],
    lines: Mapping[str, Line],
    *,
    along: Axis,
    up: Axis,
    palette: Palette,
    title: str,
    current: float | None = None,
    height: int = 300,
) -> go.Figure:
    """Every line over x (N,), `height` pixels high, with its name below.

    On a log axis nothing at or below 0 is drawn. `current` is marked by a thin line.

    Raises:
        InvalidInputError: no line, or one of another length.
    """
    if not lines:
        raise InvalidInputError("a picture of curves needs at least one")
    traces: list[dict[str, Any]] = []
    for i, (label, line) in enumerate(lines.items()):
        for values in (line.y, line.closed_form):
            if values is not None and np.shape(values) != np.shape(x):
                raise InvalidInputError(f"{label!r} must have {len(x)} values, not {np.shape(values)}")
        style = {"color": line.colour, "width": 2.5, "dash": DASHES[i % len(DASHES)]}
        traces.append(_trace(label, x, line.y, up, style, f"{plain(up.title)} %{{y:.4g}}"))
        if line.closed_form is not None:
            style = {"color": palette.ink, "width": 1.2, "dash": "1px,3px"}
            formula = _trace(f"{label}: formula", x, line.closed_form, up, style, "formula %{y:.4g}")
            traces.append({**formula, "showlegend": False})
    bottom = 58 + LEGEND_ROW * -(-len(lines) // 2)  # names stand two in a row on a phone
    marks = Marks()
    if current is not None and (current > 0 or not along.log):
        style = {"color": palette.outlier, "width": 1.5}
        marks.shape("current", "line", (current, current), (0, 1), yref="paper", line=style, layer="between")
    return framed(
        traces,
        palette,
        title=title,
        height=height + TOP + bottom,
        margin=(64, 18, TOP, bottom),
        marks=marks,
        meta={"figure": "curves", "scale": f"x {_kind(along)}, y {_kind(up)}", "current": current},
        showlegend=True,
        legend={**LEGEND, "font": {"size": 12, "color": palette.ink}},
        xaxis=_axis(palette, along),
        yaxis=_axis(palette, up),
    )


def _trace(
    label: str, x: NDArray[np.floating], y: NDArray[np.floating], up: Axis, style: dict[str, Any], said: str
) -> dict[str, Any]:
    drawn = np.where(np.isfinite(y) & ((y > 0) | (not up.log)), y, np.nan)
    return trace(
        "scatter",
        name=plain(label),
        x=np.asarray(x, dtype=np.float64),
        y=drawn,
        mode="lines",
        line=style,
        connectgaps=False,
        hovertemplate=f"%{{x:.4g}}<br>{said}<extra>%{{fullData.name}}</extra>",
    )


def _axis(palette: Palette, axis: Axis) -> dict[str, Any]:
    settings: dict[str, Any] = {"type": "log", "exponentformat": "power", "dtick": 1} if axis.log else {}
    if axis.span is not None:
        ends: Sequence[float] = np.log10(axis.span).tolist() if axis.log else axis.span
        settings["range"] = list(ends)
        if axis.log and ends[1] - ends[0] > 8:
            settings["dtick"] = 5
    return titled(palette, plain(axis.title), **settings)


def _kind(axis: Axis) -> str:
    return "log" if axis.log else "linear"
