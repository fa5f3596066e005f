"""One head's attention as lines between tokens: from each query on the left to the keys on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.bars import share
from ssa_viz.figures.frame import axis, check_position, framed, plain, short, trace
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette, faded

ROW = 21  # pixels of a token
LEAST = 0.02  # of a weight that is drawn
MOST_LINES = 1000  # the strongest of them; a browser takes long over more
STRENGTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7)  # lines of one strength are one trace; the last has no end
MARGIN = (86, 86, 70, 14)
LONGEST = 12  # characters of a token


def between(
    weights: NDArray[np.floating],
    visible: NDArray[np.bool_],
    labels: Sequence[str],
    *,
    title: str,
    palette: Palette,
    colour: str,
    query: int | None = None,
    outlier: int | None = None,
) -> go.Figure:
    """Weights (T, T) of at least 0.02 as lines, the stronger the more solid; with a `query` the others' are faint.

    Hovering a token says what it looks at most (left), or who looks at it most (right). The token at `outlier` is
    written in the accent colour on both sides.

    Raises:
        InvalidInputError: shapes that do not fit, or a position outside the tokens.
    """
    count = len(labels)
    if np.shape(weights) != (count, count) or np.shape(visible) != (count, count) or not count:
        raise InvalidInputError(f"lines need weights of ({count}, {count}), like its labels, not {np.shape(weights)}")
    check_position(query, count, "highlighted query")
    check_position(outlier, count)
    drawn = np.where(visible & np.isfinite(weights), weights, 0)
    queries, keys, left_out = _strongest(drawn)
    lines = []
    for own in (False, True):
        chosen = (queries == query) if own else (queries != query) if query is not None else np.ones(len(queries), bool)
        lines += _lines(drawn, queries[chosen], keys[chosen], colour, own=own or query is None)
    marks = Marks()
    marks.text("query", "query", 0, -0.9, palette.muted, xanchor="right", xshift=-6)
    marks.text("key", "key", 1, -0.9, palette.muted, xanchor="left", xshift=6)
    note = f"Weights of at least {LEAST:g}" + (f", the {MOST_LINES} strongest." if left_out else ".")
    bare = {"showticklabels": False, "showgrid": False, "ticks": "", "showline": False, "fixedrange": True}
    return framed(
        [*lines, *(_ends(drawn, labels, palette, query, outlier, keys=keys) for keys in (False, True))],
        palette,
        title=title,
        subtitle=note,
        height=ROW * (count + 1) + MARGIN[2] + MARGIN[3],
        margin=MARGIN,
        marks=marks,
        meta={"figure": "lines between tokens", "scale": "linear, by opacity", "tokens": list(labels), "query": query},
        showlegend=False,
        xaxis=axis(palette, range=[-0.02, 1.02], **bare),
        yaxis=axis(palette, range=[count - 0.4, -1.2], **bare),
    )


def _strongest(weights: NDArray[np.floating]) -> tuple[NDArray[np.intp], NDArray[np.intp], bool]:
    queries, keys = np.nonzero(weights >= LEAST)
    if len(queries) <= MOST_LINES:
        return queries, keys, False
    kept = np.sort(np.argsort(-weights[queries, keys], kind="stable")[:MOST_LINES])
    return queries[kept], keys[kept], True


def _lines(
    weights: NDArray[np.floating], queries: NDArray[np.intp], keys: NDArray[np.intp], colour: str, *, own: bool
) -> list[dict[str, Any]]:
    """A trace for each strength that occurs."""
    found = []
    values = weights[queries, keys]
    for low, high in zip(STRENGTHS, (*STRENGTHS[1:], np.inf), strict=True):
        chosen = (values >= low) & (values < high)
        if not chosen.any():
            continue
        gap = np.full(int(chosen.sum()), np.nan)
        strength = min(1.0, low + 0.15) if own else 0.25 * low + 0.03
        found.append(
            trace(
                "scatter",
                name=f"{low:g} and more",
                x=np.column_stack([np.zeros(len(gap)), np.ones(len(gap)), gap]).ravel(),
                y=np.column_stack([queries[chosen], keys[chosen], gap]).ravel(),
                mode="lines",
                line={"color": faded(colour, strength), "width": 1 + 3 * min(low, 1.0) if own else 1},
                hoverinfo="skip",
                meta={"own": own},
            )
        )
    return found


def _ends(
    weights: NDArray[np.floating], labels: Sequence[str], palette: Palette, query: int | None, outlier: int | None, *,
    keys: bool,
) -> dict[str, Any]:  # fmt: skip
    """The tokens of one side with their points, which say when hovered what their strongest lines are."""
    count = len(labels)
    said = []
    for i in range(count):
        row = weights[:, i] if keys else weights[i]
        most = [j for j in np.argsort(-row, kind="stable")[:3] if row[j] > 0]
        said.append("<br>".join(f"{j} · {plain(labels[j])}: {share(float(row[j]))}" for j in most) or "nothing")
    what = "is looked at most by" if keys else "looks most at"
    return trace(
        "scatter",
        name="keys" if keys else "queries",
        x=np.full(count, float(keys)),
        y=np.arange(count),
        mode="markers+text",
        marker={"size": 9, "color": palette.muted, "opacity": 0.55},
        text=[f"{short(label, LONGEST)}\u2002" if not keys else f"\u2002{short(label, LONGEST)}" for label in labels],
        textposition="middle right" if keys else "middle left",
        textfont={
            "size": 12,
            "color": [palette.outlier if i == outlier else palette.ink for i in range(count)],
            "weight": [650 if i == query and not keys else 400 for i in range(count)],
        },
        cliponaxis=False,
        customdata=[
            f"{i} · {plain(label)} {what}<br>{each}" for i, (label, each) in enumerate(zip(labels, said, strict=True))
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
