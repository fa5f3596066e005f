"""The derivative of every weight of a row by every logit, as a heatmap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.color_axis import color_axis
from ssa_viz.figures.frame import axis, framed, titled, token_ticks, trace
from ssa_viz.figures.palette import Palette

MARGIN = (52, 12, 44, 104)
LEAST = 1e-12  # of the colours' ends: a Jacobian of nothing but 0 is drawn in the middle colour


def jacobian(
    derivatives: NDArray[np.floating],
    labels: Sequence[str],
    *,
    limit: float,
    palette: Palette,
    title: str,
    height: int = 430,
) -> go.Figure:
    """∂w_i/∂x_j (K, K), weights down, logits across, on a diverging scale from −`limit` to `limit`.

    Compared functions share one limit.

    Raises:
        InvalidInputError: the shape does not fit the labels, or a limit that is below 0 or not finite.
    """
    count = len(labels)
    if count == 0 or np.shape(derivatives) != (count, count):
        raise InvalidInputError(f"derivatives must be {count} × {count} for these labels, not {np.shape(derivatives)}")
    if not np.isfinite(limit) or limit < 0:
        raise InvalidInputError(f"the colours' limit must be a number from 0 on, not {limit}")
    end = max(float(limit), LEAST)
    places, texts = token_ticks(labels)
    places = [place + 1 for place in places]  # keys are counted from 1, as beside the sliders
    cells = trace(
        "heatmap",
        z=np.asarray(derivatives, dtype=np.float64),
        x0=1,
        y0=1,
        coloraxis="coloraxis",
        hovertemplate="weight of key %{y}<br>by the logit of key %{x}<br>%{z:.4g}<extra></extra>",
        xgap=1,
        ygap=1,
    )
    bare = {"tickmode": "array", "tickvals": places, "ticktext": texts, "showgrid": False, "constrain": "domain"}
    return framed(
        [cells],
        palette,
        title=title,
        height=height,
        margin=MARGIN,
        meta={"figure": "jacobian", "scale": f"linear, −{end:.4g} to {end:.4g}", "keys": list(labels)},
        xaxis=titled(palette, "logit x of key", range=[0.5, count + 0.5], constraintoward="left", **bare),
        yaxis={
            **axis(palette, range=[count + 0.5, 0.5], scaleanchor="x", constraintoward="top", **bare),
            "title": {"text": "weight w of key", "font": {"size": 12, "color": palette.muted}, "standoff": 6},
        },
        coloraxis=color_axis(
            palette,
            palette.diverging,
            ends=(-end, end),
            ticks=((-end, 0, end), (f"−{end:.2g}", "0", f"{end:.2g}")),
            title="∂w/∂x, the same scale for all",
            show=True,
            height=height,
            margin=MARGIN,
        ),
    )
