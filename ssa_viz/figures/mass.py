"""Contextual mass per query: where a row's attention collapses onto one key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

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

COLLAPSE_MASS = 0.1  # below it the largest weight exceeds 0.9
COLLAPSE_KEYS = 4  # rows with fewer visible keys are not called collapsed


def contextual_mass(
    series: Series,
    labels: Sequence[str],
    *,
    palette: Palette,
    title: str,
    outlier: int | None = None,
    height: int = 340,
) -> go.Figure:
    """Contextual mass (T,) of each model over the queries of a causal prompt, on a fixed axis from 0 to 1.

    Raises:
        InvalidInputError: no label, a series of another length, or a position outside the labels.
    """
    count = len(labels)
    if count == 0:
        raise InvalidInputError("contextual mass needs at least one token")
    check_series(series, count)
    check_position(outlier, count)
    places = np.arange(count, dtype=np.int32)
    lines = [
        trace(
            "scatter",
            name=plain(label),
            x=places,
            y=np.asarray(values, dtype=np.float32),
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"symbol": SYMBOLS[i % len(SYMBOLS)], "size": marker_size(count), "color": colour},
            text=indexed(labels),
            hovertemplate="query %{text}<br>contextual mass %{y:.4g}<extra>%{fullData.name}</extra>",
        )
        for i, (label, (values, colour)) in enumerate(series.items())
    ]
    few = min(COLLAPSE_KEYS - 1, count)  # query q of a causal prompt sees q + 1 keys
    marks, dotted = Marks(), {"color": palette.muted, "width": 1.5, "dash": "dot"}
    marks.band("few keys", (-0.6, few - 0.5), palette.muted)
    marks.text(
        "few keys", f"fewer than {COLLAPSE_KEYS} keys", -0.6, 0.99, palette.muted, yref="paper",
        xanchor="left", yanchor="top", textangle=90, font={"size": 10, "color": palette.muted},
    )  # fmt: skip
    level = (COLLAPSE_MASS, COLLAPSE_MASS)
    marks.shape("collapse", "line", (0, 1), level, xref="paper", line=dotted, layer="between")
    marks.text(
        "collapse",
        "collapse",
        1,
        COLLAPSE_MASS,
        palette.muted,
        xref="paper",
        xanchor="left",
        yanchor="middle",
    )
    marks.injected_line(outlier, palette, count)
    return framed(
        lines,
        palette,
        title=title,
        height=height,
        margin=(54, 54, 58, 112),
        marks=marks,
        meta={
            "figure": "contextual mass",
            "scale": "linear, 0 to 1",
            "tokens": list(labels),
            "outlier": outlier,
        },
        showlegend=True,
        xaxis=token_axis(palette, labels, "query", outlier),
        yaxis=titled(palette, "contextual mass", range=[-0.03, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1]),
    )
