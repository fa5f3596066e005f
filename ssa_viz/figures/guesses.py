"""The tokens that a model expects most, as bars of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.bars import share
from ssa_viz.figures.frame import framed, plain, short, titled, trace
from ssa_viz.figures.palette import Palette

ENDS = (0.1, 0.2, 0.4, 1.0)  # of the axis
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
    most: float = 0.0,
    note: str = "",
) -> go.Figure:
    """Probabilities (N,) of `labels`, the first on top, on an axis from 0.

    `usual`, (N,), are drawn as thin marks: what the same tokens had before something was changed. The axis ends at the
    first of `ENDS` that is not below `most`, which may be shared by several figures.

    Raises:
        InvalidInputError: no token, or numbers that do not fit the labels.
    """
    count = len(labels)
    if not count or len(probabilities) != count or (usual is not None and len(usual) != count):
        raise InvalidInputError(f"{count} tokens need as many probabilities, and at least one of them")
    places = np.arange(count)
    end = next((end for end in ENDS if end >= max(most, *probabilities, *(usual or ()))), 1.0)
    bars = trace(
        "bar",
        name="probability",
        orientation="h",
        x=np.asarray(probabilities, dtype=np.float64),
        y=places,
        marker={"color": colour},
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
    traces.append(
        trace(
            "scatter",
            name="share",
            x=np.maximum(probabilities, 0 if usual is None else usual),
            y=places,
            mode="text",
            text=[f"\u2002{share(p)}" for p in probabilities],
            textposition="middle right",
            textfont={"size": 12, "color": palette.ink},
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    return framed(
        traces,
        palette,
        title=title,
        subtitle=note,
        height=ROW * count + MARGIN[2] + MARGIN[3],
        margin=MARGIN,
        meta={"figure": "guesses", "scale": f"linear, 0 to {end:g}", "tokens": list(labels)},
        showlegend=False,
        bargap=0.25,
        xaxis=titled(palette, "probability", range=[0, end], tickvals=[end * i / 4 for i in range(5)]),
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
