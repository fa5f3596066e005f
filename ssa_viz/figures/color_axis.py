"""The colour axis of a figure of weights, with the bar that states its scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ssa_viz.figures.palette import Palette, colorscale

Margin = tuple[int, int, int, int]  # left, right, top, bottom in pixels
BAR_ROOM = 50  # pixels at the bottom of the figure for the bar, its title and ticks


def color_axis(
    palette: Palette,
    stops: tuple[str, ...],
    *,
    ends: tuple[float, float],
    ticks: tuple[Sequence[float], Sequence[str]],
    title: str,
    show: bool,
    height: int,
    margin: Margin,
    length: int = 250,
) -> dict[str, Any]:
    """A colour axis with fixed ends and a thin bar of `length` pixels along the bottom, beneath the cells.

    Figures of one height and margin keep their size whether the bar is shown or not.
    """
    _, _, top, bottom = margin
    return {
        "colorscale": colorscale(stops),
        "cmin": ends[0],
        "cmax": ends[1],
        "showscale": show,
        "colorbar": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": -(bottom - BAR_ROOM) / (height - top - bottom),  # in heights of the plot, from its bottom
            "yanchor": "top",
            "lenmode": "pixels",
            "len": length,
            "thickness": 8,
            "outlinewidth": 0,
            "xpad": 4,
            "ypad": 0,
            "tickvals": list(ticks[0]),
            "ticktext": list(ticks[1]),
            "tickfont": {"size": 11, "color": palette.muted},
            "title": {"text": title, "side": "top", "font": {"size": 12, "color": palette.muted}},
        },
    }
