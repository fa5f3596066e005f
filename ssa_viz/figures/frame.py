"""What all figures share: the frame, text made safe for plotly, token axes, the injected value's mark."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import FONT, Palette

Series = Mapping[str, tuple[NDArray[np.floating], str]]  # label → (values, colour)

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")  # one per model: never colour alone
# Nothing of a default theme: the palette says everything. An empty template would be taken for none given.
NO_TEMPLATE = {"data": {"scatter": [{"type": "scatter"}]}}
MOST_TICKS = 24  # token labels on an axis; more would touch each other at 360 px
LONGEST_LABEL = 8
LONGEST_LINE = 44  # characters of a title that 360 px hold
LINE_HEIGHT = 19  # pixels of one more line of a title


def plain(text: str) -> str:
    """`text` so that plotly shows it as it is: it reads <b> and &amp; as markup and drops unknown tags."""
    # Quotes stay: plotly does not know &quot; and would print it.
    return html.escape(" ".join(str(text).split("\n")), quote=False)


def short(label: str, most: int = LONGEST_LABEL) -> str:
    """`label`, cut to `most` characters with an ellipsis and made safe."""
    return plain(label if len(label) <= most else label[: most - 1] + "…")


def indexed(labels: Sequence[str]) -> list[str]:
    """Labels with their index, safe: what hovering says, so that equal tokens stay apart."""
    return [f"{i} · {plain(label)}" for i, label in enumerate(labels)]


def token_ticks(labels: Sequence[str], outlier: int | None = None) -> tuple[list[int], list[str]]:
    """Tick positions and texts for an integer axis; many are thinned evenly, keeping the injected one."""
    step = -(-len(labels) // MOST_TICKS)
    places = list(range(0, len(labels), max(step, 1)))
    if outlier is not None and outlier not in places:
        places = sorted([i for i in places if abs(i - outlier) > step // 2] + [outlier])
    return places, [short(labels[i]) for i in places]


def check_position(position: int | None, count: int, what: str = "injected position") -> None:
    """Raises InvalidInputError when a position is given that is not one of `count` tokens."""
    if position is not None and not 0 <= position < count:
        raise InvalidInputError(f"the {what} must be from 0 to {count - 1}, not {position}")


def check_series(series: Series, count: int) -> None:
    """Raises InvalidInputError when some series does not have `count` values."""
    for label, (values, _) in series.items():
        if np.shape(values) != (count,):
            raise InvalidInputError(f"{label!r} must have {count} values, not {np.shape(values)}")


def marker_size(count: int) -> int:
    """Pixels of a marker on a line of `count` tokens."""
    return 7 if count <= MOST_TICKS else 5


def axis(palette: Palette, **settings: Any) -> dict[str, Any]:
    """An axis in the palette's colours: a hair line, no zero line, settings on top."""
    return {
        "gridcolor": palette.grid,
        "linecolor": palette.grid,
        "zeroline": False,
        "tickfont": {"size": 11, "color": palette.muted},
        "title": {"font": {"size": 12, "color": palette.muted}, "standoff": 6},
        **settings,
    }


def titled(palette: Palette, text: str, **settings: Any) -> dict[str, Any]:
    """An axis with a title."""
    base = axis(palette, **settings)
    base["title"] = {**base["title"], "text": text}
    return base


def token_axis(
    palette: Palette, labels: Sequence[str], title: str, outlier: int | None, **settings: Any
) -> dict[str, Any]:
    """A horizontal integer axis with one place per token."""
    places, texts = token_ticks(labels, outlier)
    return titled(
        palette,
        title,
        tickmode="array",
        tickvals=places,
        ticktext=texts,
        range=[-0.6, max(len(labels), 1) - 0.4],
        showgrid=False,
        autotickangles=[0, 90],
        **settings,
    )


def trace(kind: str, **properties: Any) -> dict[str, Any]:
    """A trace of plotly's type `kind`."""
    return {"type": kind, **properties}


def framed(
    traces: Sequence[Mapping[str, Any]],
    palette: Palette,
    *,
    title: str,
    height: int,
    margin: tuple[int, int, int, int],
    meta: Mapping[str, Any],
    marks: Marks | None = None,
    subtitle: str = "",
    **layout: Any,
) -> go.Figure:
    """A figure of fixed height in the palette's colours; `margin` is left, right, top, bottom in pixels.

    A title too long for a narrow screen takes more lines, and the figure grows by them. `layout.meta` holds
    `meta`, the title and the background, so that a drawn figure says what it shows.
    """
    left, right, top, bottom = margin
    lines = textwrap.wrap(title, LONGEST_LINE)
    extra = LINE_HEIGHT * max(len(lines) - 1, 0)
    settings: dict[str, Any] = {
        "template": NO_TEMPLATE,
        "height": height + extra,
        "margin": {"l": left, "r": right, "t": top + extra, "b": bottom},
        "paper_bgcolor": palette.background,
        "plot_bgcolor": palette.background,
        "font": {"family": FONT, "size": 12, "color": palette.ink},
        "title": {
            "text": "<br>".join(plain(line) for line in lines),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 8, "t": 10},
            "font": {"size": 15, "color": palette.ink},
            "subtitle": {"text": plain(subtitle), "font": {"size": 11, "color": palette.muted}},
        },
        "hoverlabel": {
            "bgcolor": palette.ink,
            "bordercolor": palette.ink,
            "font": {"family": FONT, "size": 12, "color": palette.background},
            "align": "left",
        },
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": palette.muted, "activecolor": palette.ink},
        "legend": {
            "orientation": "h",  # along the bottom, where a long one may wrap
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yanchor": "bottom",
            "yref": "container",
            "font": {"size": 12, "color": palette.ink},
            "bgcolor": "rgba(0,0,0,0)",
        },
        "hovermode": "closest",
        "meta": {"title": title, "background": palette.background, **meta},
    }
    marks = marks or Marks()
    settings |= {"shapes": marks.shapes, "annotations": marks.annotations, **layout}
    # Checking properties against plotly's schema takes three quarters of the time to build a figure, on every
    # edit, for properties that are all written here. The tests check them instead.
    return go.Figure(data=list(traces), layout=settings, _validate=False)


def chart_config(filename: str, image: str = "png") -> dict[str, Any]:
    """Plotly's config: no logo, few buttons, and what its camera button saves (`image` is png or svg)."""
    return {
        "displaylogo": False,
        "responsive": True,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
        "toImageButtonOptions": {"filename": filename, "format": image, "scale": 2 if image == "png" else 1},
    }
