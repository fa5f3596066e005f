"""One head's attention as a heatmap: queries down, keys across; and the difference of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.color_axis import color_axis
from ssa_viz.figures.frame import (
    axis,
    check_position,
    framed,
    indexed,
    plain,
    titled,
    token_ticks,
    trace,
)
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette
from ssa_viz.figures.scale import Scale, scaled

Array = NDArray[np.floating]
MARGIN = (70, 14, 66, 128)  # left, right, top, bottom; fixed, so that compared panels line up
GAP_UP_TO = 48  # cells are set apart only while there is room


def attention(
    weights: Array,
    logits: Array,
    visible: NDArray[np.bool_],
    labels: Sequence[str],
    *,
    title: str,
    scale: Scale,
    palette: Palette,
    query_labels: Sequence[str] | None = None,
    outlier: int | None = None,
    marked: str = "injected",
    highlight_query: int | None = None,
    show_colorbar: bool = True,
    height: int = 520,
) -> go.Figure:
    """Weights (Q, K) coloured by `scale`; hovering gives tokens, exact weight and logit.

    Hidden cells are blank. `labels` name the keys and, without `query_labels`, the queries. The column of
    `outlier`, a key, is framed, `marked` above it, and its row, where there is one; `highlight_query` frames a row.

    Raises:
        InvalidInputError: shapes that do not fit each other, or a position outside the tokens.
    """
    query_labels = labels if query_labels is None else query_labels
    _check((weights, logits, visible), query_labels, labels)
    placed = scaled(weights, visible, scale)
    colours = color_axis(
        palette,
        palette.sequential,
        ends=(placed.zmin, placed.zmax),
        ticks=(placed.tickvals, placed.ticktext),
        title=placed.title,
        show=show_colorbar,
        height=height,
        margin=MARGIN,
    )
    cells = trace(
        "heatmap",
        z=placed.z,
        customdata=np.stack([weights, logits], axis=-1).astype(np.float32),
        hovertemplate=_hover("weight %{customdata[0]:.4g}<br>logit %{customdata[1]:.4g}"),
    )
    meta = {"figure": "attention", "scale": placed.title, "keys": list(labels), "outlier": outlier}
    return _figure(
        cells, visible, query_labels, labels, palette, outlier, highlight_query, marked=marked, coloraxis=colours,
        title=title, subtitle=placed.note, height=height, meta=meta,
    )  # fmt: skip


def difference(
    softmax: Array,
    ssa: Array,
    visible: NDArray[np.bool_],
    labels: Sequence[str],
    *,
    title: str,
    palette: Palette,
    names: tuple[str, str] = ("softmax", "SSA"),
    query_labels: Sequence[str] | None = None,
    outlier: int | None = None,
    marked: str = "injected",
    highlight_query: int | None = None,
    show_colorbar: bool = True,
    height: int = 520,
) -> go.Figure:
    """The second function's weights minus the first's, (Q, K) each, always linear from −1 to 1.

    Raises:
        InvalidInputError: as `attention`.
    """
    query_labels = labels if query_labels is None else query_labels
    _check((softmax, ssa, visible), query_labels, labels)
    stated = f"{names[1]} minus {names[0]} (weight, linear, −1 to 1)"
    colours = color_axis(
        palette,
        palette.diverging,
        ends=(-1.0, 1.0),
        ticks=((-1, -0.5, 0, 0.5, 1), ("−1", "−0.5", "0", "0.5", "1")),
        title=plain(stated),
        show=show_colorbar,
        height=height,
        margin=MARGIN,
    )
    change = np.asarray(ssa, dtype=np.float32) - np.asarray(softmax, dtype=np.float32)
    first, second = (plain(name) for name in names)
    cells = trace(
        "heatmap",
        z=np.where(visible, change, np.float32(np.nan)),
        customdata=np.stack([softmax, ssa], axis=-1).astype(np.float32),
        hovertemplate=_hover(
            f"{first} %{{customdata[0]:.4g}}<br>{second} %{{customdata[1]:.4g}}<br>difference %{{z:+.4g}}"
        ),
    )
    meta = {"figure": "difference", "scale": stated, "keys": list(labels), "outlier": outlier}
    return _figure(
        cells, visible, query_labels, labels, palette, outlier, highlight_query, marked=marked, coloraxis=colours,
        title=title, height=height, meta=meta,
    )  # fmt: skip


def _check(arrays: Sequence[NDArray[Any]], query_labels: Sequence[str], key_labels: Sequence[str]) -> None:
    shape = (len(query_labels), len(key_labels))
    for array in arrays:
        if np.shape(array) != shape or 0 in shape:
            raise InvalidInputError(
                f"a heatmap needs arrays of (queries, keys) = {shape}, like its labels, not {np.shape(array)}"
            )


def _hover(numbers: str) -> str:
    return f"query %{{y}}<br>key %{{x}}<br>{numbers}<extra></extra>"


def _figure(
    cells: dict[str, Any],
    visible: NDArray[np.bool_],
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    palette: Palette,
    outlier: int | None,
    highlight_query: int | None,
    *,
    marked: str,
    **frame: Any,
) -> go.Figure:
    queries, keys = len(query_labels), len(key_labels)
    marks = _marks(queries, keys, palette, outlier, highlight_query, marked)
    gap = 1 if max(queries, keys) <= GAP_UP_TO else 0
    cells |= {"coloraxis": "coloraxis", "hoverongaps": False, "xgap": gap, "ygap": gap}
    # Two axes each way. The cells lie on a pair whose ticks name every token, so that hovering always can,
    # and which shows none of them. The pair on top shows as many as fit; to be drawn it needs its own trace.
    bare = {"tickmode": "array", "showgrid": False, "ticks": "", "showline": False}
    named = {**bare, "showticklabels": False, "constrain": "domain"}
    asked = outlier if outlier is not None and outlier < queries else None
    key_ticks, query_ticks = token_ticks(key_labels, outlier), token_ticks(query_labels, asked)
    return framed(
        [
            cells,
            _empty_rows(visible, palette),
            trace("scatter", x=[None], y=[None], xaxis="x2", yaxis="y2", hoverinfo="skip", showlegend=False),
        ],
        palette,
        margin=MARGIN,
        marks=marks,
        xaxis=axis(
            palette,
            tickvals=list(range(keys)),
            ticktext=indexed(key_labels),
            range=[-0.5, keys - 0.5],
            constraintoward="left",
            **named,
        ),
        yaxis=axis(
            palette,
            tickvals=list(range(queries)),
            ticktext=indexed(query_labels),
            range=[queries - 0.5, -0.5],
            constraintoward="top",
            scaleanchor="x",
            **named,
        ),
        xaxis2=titled(
            palette,
            "key",
            tickvals=key_ticks[0],
            ticktext=key_ticks[1],
            overlaying="x",
            matches="x",
            side="bottom",
            autotickangles=[0, 90],
            **bare,
        ),
        yaxis2=titled(
            palette,
            "query",
            tickvals=query_ticks[0],
            ticktext=query_ticks[1],
            overlaying="y",
            matches="y",
            side="left",
            **bare,
        ),
        **frame,
    )


def _marks(queries: int, keys: int, palette: Palette, outlier: int | None, highlight: int | None, marked: str) -> Marks:
    """Frames around the chosen row, and around the injected column and its row."""
    check_position(outlier, keys)
    check_position(highlight, queries, "highlighted query")
    marks, columns, rows = Marks(), (-0.5, keys - 0.5), (-0.5, queries - 0.5)
    if highlight is not None:
        line: dict[str, Any] = {"color": palette.ink, "width": 1.5}
        marks.shape("query", "rect", columns, (highlight - 0.5, highlight + 0.5), line=line)
    if outlier is not None:
        own = (outlier - 0.5, outlier + 0.5)
        marks.shape("injected", "rect", own, rows, line={"color": palette.outlier, "width": 1.5})
        if outlier < queries:  # square attention: the injected token asks, too
            line = {"color": palette.outlier, "width": 1, "dash": "dot"}
            marks.shape("injected row", "rect", columns, own, line=line)
        marks.injected_name(outlier, palette, keys, y=-0.5, yref="y", text=marked)
    return marks


def _empty_rows(visible: NDArray[np.bool_], palette: Palette) -> dict[str, Any]:
    """Words in the rows that have no visible key. Without such rows the trace holds nothing."""
    keys = np.shape(visible)[1]
    empty = np.flatnonzero(~np.asarray(visible).any(axis=1)).tolist()
    return trace(
        "scatter",
        name="no visible key",
        x=[(keys - 1) / 2] * len(empty),
        y=empty,
        mode="text",
        text=["no visible key"] * len(empty),
        textfont={"size": 10, "color": palette.muted},
        hoverinfo="skip",
        showlegend=False,
    )
