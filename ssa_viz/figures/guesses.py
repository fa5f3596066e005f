"""The tokens that a model expects most, as bars of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.bars import share
from ssa_viz.figures.frame import framed, plain, short, titled, trace
from ssa_viz.figures.palette import Palette

ROW = 23  # pixels of a token
MARGIN = (112, 52, 66, 40)
LONGEST = 14  # characters of a token


def guesses(
    labels: Sequence[str],
    probabilities: Sequence[float],
    *,
    title: str,
    palette: Palette,
    colour: str,
    usual: Sequence[float] | None = None,
    note: str = "",
) -> go.Figure:
    """Probabilities (N,) of `labels`, the first on top, on an axis from 0 to 1.

    `usual`, (N,), are drawn as thin marks: what the same tokens had before something was changed.

    Raises:
        InvalidInputError: no token, or numbers that do not fit the labels.
    """
    count = len(labels)
    if not count or len(probabilities) != count or (usual is not None and len(usual) != count):
        raise InvalidInputError(f"{count} tokens need as many probabilities, and at least one of them")
    places = np.arange(count)
    bars = trace(
        "bar",
        name="probability",
        orientation="h",
        x=np.asarray(probabilities, dtype=np.float64),
        y=places,
        marker={"color": colour},
        text=[share(p) for p in probabilities],
        textposition="outside",
        cliponaxis=False,
        customdata=[plain(label) for label in labels],
        hovertemplate="%{customdata}<br>probability %{x:.4g}<extra></extra>",
    )
    traces = [bars]
    if usual is not None:
        traces.append(
            trace(
                "scatter",
                name="undisturbed",
                x=np.asarray(usual, dtype=np.float64),
                y=places,
                mode="markers",
                marker={"symbol": "line-ns-open", "size": 15, "color": palette.ink, "line": {"width": 2}},
                customdata=[plain(label) for label in labels],
                hovertemplate="%{customdata}<br>undisturbed %{x:.4g}<extra></extra>",
            )
        )
    return framed(
        traces,
        palette,
        title=title,
        subtitle=note,
        height=ROW * count + MARGIN[2] + MARGIN[3],
        margin=MARGIN,
        meta={"figure": "guesses", "scale": "linear, 0 to 1", "tokens": list(labels)},
        showlegend=False,
        bargap=0.25,
        xaxis=titled(palette, "probability", range=[0, 1.0], tickvals=[0, 0.25, 0.5, 0.75, 1]),
        yaxis=titled(
            palette,
            "",
            tickmode="array",
            tickvals=places,
            ticktext=[short(label, LONGEST) for label in labels],
            tickfont={"size": 12, "color": palette.ink},
            range=[count - 0.5, -0.5],
            showgrid=False,
        ),
    )
