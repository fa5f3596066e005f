"""The answers of each model to a yes-or-no question, prefix by prefix, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.figures.frame import (
    check_position,
    framed,
    indexed,
    plain,
    short,
    titled,
    token_axis,
    trace,
)
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette

NARROW = 360 - 92 - 14  # pixels for the tokens on a narrow screen
LETTERS_FROM = 10  # pixels a token needs for a letter


@dataclass(frozen=True)
class AnswerRow:
    """One model's row.

    Attributes:
        label: what the row is called.
        probabilities: P(True) for each prefix, (N,). Above 0.5 is the answer True.
        colour: the model's colour.
    """

    label: str
    probabilities: NDArray[np.floating]
    colour: str


def answers(
    rows: Sequence[AnswerRow],
    truth: ArrayLike,
    labels: Sequence[str],
    *,
    palette: Palette,
    title: str = "Answers",
    outlier: int | None = None,
    height: int | None = None,
) -> go.Figure:
    """A strip: the truth (N,) as filled (True) and hollow (False) circles, then a row per model.

    A wrong answer is a framed cross in its own colour, a right one a quiet tick; hovering gives P(True).
    `height` defaults to what the number of rows needs.

    Raises:
        InvalidInputError: lengths that differ, probabilities outside 0 to 1, a position outside the labels.
        NonFiniteError: a probability is not a number.
    """
    count = len(labels)
    true = np.asarray(truth).astype(bool)
    if count == 0 or true.shape != (count,):
        raise InvalidInputError(f"the truth must have one value for each of {count} labels, not {true.shape}")
    check_position(outlier, count)
    # A marker a little smaller than a token's share of a narrow screen; wide screens only add air.
    size = float(np.clip(0.9 * NARROW / count, 6, 15))
    letters = NARROW / count >= LETTERS_FROM
    traces = [_truth(true, labels, size, letters, palette)]
    for i, row in enumerate(rows):
        chances = np.asarray(row.probabilities, dtype=np.float64)
        if chances.shape != (count,):
            raise InvalidInputError(f"{row.label!r} must have {count} probabilities, not {chances.shape}")
        if not np.isfinite(chances).all():
            raise NonFiniteError(f"{row.label!r} has a probability that is not a number")
        if chances.min() < 0 or chances.max() > 1:
            raise InvalidInputError(f"{row.label!r} must have probabilities from 0 to 1")
        traces += _answers(row.label, chances, true, labels, i + 1, size, palette)
    names = [f'<span style="color:{palette.ink}">truth</span>'] + [
        f'<span style="color:{row.colour}">{short(row.label, 13)}</span>' for row in rows
    ]
    marks = Marks()
    if outlier is not None:
        edge = {"color": palette.outlier, "width": 1}
        marks.band("injected", (outlier - 0.5, outlier + 0.5), palette.outlier, line=edge)
        marks.injected_name(outlier, palette, count, y=1, yref="paper")
    return framed(
        traces,
        palette,
        title=title,
        height=height or 142 + 32 * len(names),
        margin=(92, 14, 60, 68),
        marks=marks,
        meta={
            "figure": "answers",
            "scale": "an answer is True when P(True) is above 0.5",
            "tokens": list(labels),
            "outlier": outlier,
        },
        showlegend=False,
        xaxis=token_axis(palette, labels, "after the number", outlier),
        yaxis=titled(
            palette,
            "",
            tickvals=list(range(len(names))),
            ticktext=names,
            range=[len(names) - 0.5, -0.5],
            showgrid=False,
            ticklen=0,
        ),
    )


def _truth(
    true: NDArray[np.bool_], labels: Sequence[str], size: float, letters: bool, palette: Palette
) -> dict[str, Any]:
    tokens = indexed(labels)
    return trace(
        "scatter",
        name="truth",
        x=list(range(len(labels))),
        y=[0] * len(labels),
        mode="markers+text" if letters else "markers",
        marker={
            "symbol": ["circle" if value else "circle-open" for value in true],
            "size": size,
            "color": palette.ink,
            "line": {"width": 1.2, "color": palette.ink},
        },
        text=["T" if value else "F" for value in true],
        textfont={"size": 10, "color": [palette.background if value else palette.ink for value in true]},
        textposition="middle center",
        hovertext=[f"after {tokens[i]}<br>the truth is {bool(value)}" for i, value in enumerate(true)],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _answers(
    name: str,
    chances: NDArray[np.float64],
    true: NDArray[np.bool_],
    labels: Sequence[str],
    row: int,
    size: float,
    palette: Palette,
) -> list[dict[str, Any]]:
    """Two traces: the right answers as ticks, the wrong ones as framed crosses."""
    wrong = (chances > 0.5) != true
    tokens = indexed(labels)

    def hover(places: list[int], verdict: str) -> list[str]:
        return [f"after {tokens[i]}<br>P(True) = {chances[i]:.4g}, truth {bool(true[i])}: {verdict}" for i in places]

    missed, met = np.flatnonzero(wrong).tolist(), np.flatnonzero(~wrong).tolist()
    return [
        trace(
            "scatter",
            name=f"{plain(name)}: right",
            x=met,
            y=[row] * len(met),
            mode="text",
            text=["✓"] * len(met),
            textfont={"size": max(size - 2, 9), "color": palette.right},
            hovertext=hover(met, "right"),
            hovertemplate="%{hovertext}<extra></extra>",
        ),
        trace(
            "scatter",
            name=f"{plain(name)}: wrong",
            x=missed,
            y=[row] * len(missed),
            mode="markers",
            marker={
                "symbol": "square-x-open",
                "size": size,
                "color": palette.wrong,
                "line": {"width": 1.8 if size > 8 else 1.2, "color": palette.wrong},
            },
            hovertext=hover(missed, "wrong"),
            hovertemplate="%{hovertext}<extra></extra>",
        ),
    ]
