"""One row of attention weights as one panel for each scoring function, all over the same keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.bars import share
from ssa_viz.figures.frame import axis, framed, plain, titled, token_ticks, trace
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette

PANEL, HEAD = 62, 46  # pixels of a panel's bars, and of the two lines above them
TOP, BOTTOM = 44, 48
ROOM = 1.3  # of the axis over the highest bar, for its number
MOST_NUMBERS = 14  # keys up to which every bar has its number


@dataclass(frozen=True)
class Panel:
    """What one function makes of the row.

    Attributes:
        weights: (K,), none below 0.
        colour: of its bars.
        said: what the line under the function's name says, such as its contextual mass.
        beside: what stands right of the name, such as the weight that goes to no key; may be empty.
    """

    weights: NDArray[np.floating]
    colour: str
    said: str
    beside: str = ""


def row_panels(
    panels: Mapping[str, Panel], labels: Sequence[str], *, palette: Palette, title: str, grown: int | None = None
) -> go.Figure:
    """Bars of weights (K,) under each other; every panel that fits in 0 to 1 has that axis, another says its own.

    `labels` name the keys; the one at `grown` is marked in every panel.

    Raises:
        InvalidInputError: no panel, no key, or weights of another length.
    """
    count = len(labels)
    if not panels or not count:
        raise InvalidInputError("a picture of a row needs at least one function and one key")
    for label, panel in panels.items():
        if np.shape(panel.weights) != (count,):
            raise InvalidInputError(f"{label!r} must have {count} weights, not {np.shape(panel.weights)}")
    height = len(panels) * (PANEL + HEAD)
    marks, bars = Marks(), []
    axes: dict[str, Any] = {}
    for i, (label, panel) in enumerate(panels.items()):
        y = "y" if i == 0 else f"y{i + 1}"
        top = 1 - (i * (PANEL + HEAD) + HEAD) / height
        most = max(1.0, float(np.max(panel.weights)))
        bars.append(_bars(label, panel, labels, y))
        axes[f"yaxis{i + 1 if i else ''}"] = axis(
            palette,
            domain=[max(0.0, top - PANEL / height), top],
            range=[0, most * ROOM],
            tickvals=[0, most],
            ticktext=["0", f"{most:.3g}"],
            anchor="x",
        )
        place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        name, said = ({"font": {"size": size, "color": c}} for size, c in ((13, panel.colour), (12, palette.muted)))
        heading = f"<b>{plain(label)}</b> {plain(panel.beside)}".rstrip()
        marks.text(f"name {i}", heading, 0, top, panel.colour, yshift=18, **place, **name)
        marks.text(f"said {i}", plain(panel.said), 0, top, palette.muted, yshift=1, **place, **said)
    if grown is not None:
        marks.band("growing", (grown - 0.5, grown + 0.5), palette.outlier)
    places, texts = token_ticks(labels, grown)
    return framed(
        bars,
        palette,
        title=title,
        height=height + TOP + BOTTOM,
        margin=(34, 12, TOP, BOTTOM),
        marks=marks,
        meta={"figure": "one row, many functions", "scale": "linear", "keys": list(labels)},
        showlegend=False,
        bargap=0.25,
        xaxis=titled(
            palette,
            "key, by its logit",
            tickmode="array",
            tickvals=places,
            ticktext=texts,
            range=[-0.5, count - 0.5],
            showgrid=False,
            anchor=bars[-1]["yaxis"],
        ),
        **axes,
    )


def _bars(label: str, panel: Panel, labels: Sequence[str], y: str) -> dict[str, Any]:
    weights = np.asarray(panel.weights, dtype=np.float64)
    return trace(
        "bar",
        name=plain(label),
        x=np.arange(len(labels), dtype=np.int32),
        y=weights,
        yaxis=y,
        marker={"color": panel.colour},
        text=[share(float(w)) if w <= 1 else f"{w:.3g}" for w in weights] if len(labels) <= MOST_NUMBERS else None,
        textposition="outside",
        textangle=0,
        textfont={"size": 10, "color": panel.colour},
        constraintext="none",
        cliponaxis=False,
        customdata=[f"{i + 1} · {plain(label)}" for i, label in enumerate(labels)],
        hovertemplate="key %{customdata}<br>weight %{y:.6g}<extra>%{fullData.name}</extra>",
    )
