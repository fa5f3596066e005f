"""Weights of one row as bars: a group for each key, in it a bar for each scoring function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.frame import Series, check_position, check_series, framed, indexed, plain, titled, trace
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette

PATTERNS = ("", "/", ".", "x", "-", "+")  # one per function: never colour alone


def row_weights(
    series: Series,
    labels: Sequence[str],
    *,
    palette: Palette,
    title: str,
    growing: int | None = None,
    height: int = 320,
) -> go.Figure:
    """Weights (K,) of one row for each scoring function, on a fixed axis from 0 to 1, each written on its bar.

    `labels` name the keys; the one at `growing` is marked, as an injected value is.

    Raises:
        InvalidInputError: no key, a series of another length, or a position outside the labels.
    """
    count = len(labels)
    if count == 0:
        raise InvalidInputError("a row of weights needs at least one key")
    check_series(series, count)
    check_position(growing, count, "growing key")
    places = np.arange(count, dtype=np.int32)
    bars = [
        trace(
            "bar",
            name=plain(label),
            x=places,
            y=np.asarray(weights, dtype=np.float32),
            marker={
                "color": colour,
                "pattern": {
                    "shape": PATTERNS[i % len(PATTERNS)],
                    "fillmode": "overlay",
                    "fgcolor": palette.background,
                    "fgopacity": 0.45,
                    "size": 8,
                    "solidity": 0.25,
                },
            },
            text=[share(float(weight)) for weight in weights],
            textposition="outside",
            textangle=0,
            textfont={"size": 10, "color": colour},
            constraintext="none",
            cliponaxis=False,
            customdata=indexed(labels),
            hovertemplate="key %{customdata}<br>weight %{y:.6g}<extra>%{fullData.name}</extra>",
        )
        for i, (label, (weights, colour)) in enumerate(series.items())
    ]
    marks = Marks()
    if growing is not None:
        marks.band("growing", (growing - 0.5, growing + 0.5), palette.outlier)
    return framed(
        bars,
        palette,
        title=title,
        height=height,
        margin=(46, 12, 52, 82),
        marks=marks,
        meta={"figure": "weights of one row", "scale": "linear, 0 to 1", "keys": list(labels)},
        showlegend=True,
        barmode="group",
        bargap=0.22,
        bargroupgap=0.06,
        xaxis=titled(
            palette,
            "key, by its logit",
            tickmode="array",
            tickvals=places,
            ticktext=[plain(label) for label in labels],
            range=[-0.5, count - 0.5],
            showgrid=False,
        ),
        yaxis=titled(palette, "weight", range=[0, 1.06], tickvals=[0, 0.25, 0.5, 0.75, 1]),
    )


def share(weight: float) -> str:
    """A weight as whole per cents; what they would round to none or all of the row is said so."""
    if 0 < weight < 0.01:
        return "<1%"
    return ">99%" if 0.99 < weight < 1 else f"{weight:.0%}"
