"""An error over two shifts as a heatmap with its numbers in it; and the difference of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.color_axis import color_axis
from ssa_viz.figures.frame import framed, plain, titled, trace
from ssa_viz.figures.palette import Palette

MARGIN = (64, 10, 64, 112)
CELL = 30  # pixels down
BAR = 190  # pixels of the colour bar
FULL = (0.1, 0.25, 0.5, 0.75, 1.0)  # where the colours of shares may end
LEAST = 1e-12  # of the colours' ends: a map of nothing but 0 is drawn in the first colour

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Steps:
    """An axis: what it says, and the values or names at its steps, which are drawn at equal distances."""

    title: str
    values: Sequence[float] | Sequence[str]

    @property
    def texts(self) -> list[str]:
        return [value if isinstance(value, str) else _number(value) for value in self.values]


@dataclass(frozen=True)
class Amount:
    """What the colours mean.

    Attributes:
        title: the quantity.
        share: a share of 1, shown as per cent; else a number.
        log: whether colours go by the logarithm; needs values above 0.
        ends: of the colours, shared by all maps that are compared.
    """

    title: str
    share: bool
    log: bool
    ends: tuple[float, float]


def amount(title: str, maps: Sequence[Floats], *, share: bool) -> Amount:
    """One scale for all of `maps`: for shares linear from 0, for other numbers logarithmic where all are above 0."""
    values = np.concatenate([np.ravel(each)[np.isfinite(np.ravel(each))] for each in maps] or [np.zeros(0)])
    if not values.size:
        return Amount(title, share, False, (0.0, 1.0))
    low, high = float(values.min()), float(values.max())
    if share:
        return Amount(title, True, False, (0.0, _rounded_up(high)))
    if low > 0 and high > 10 * low:
        return Amount(title, False, True, (low, high))
    return Amount(title, False, False, (0.0, max(high, LEAST)))


def error_map(
    values: Floats,
    rows: Steps,
    columns: Steps,
    *,
    amount: Amount,
    palette: Palette,
    title: str,
    note: str = "",
    figure: str = "error map",
) -> go.Figure:
    """Values (R, C), the first row on top, coloured by `amount` and written into their cells; NaN is left blank.

    `figure` is what the picture calls itself, where it shows something else than an error.

    Raises:
        InvalidInputError: a shape that does not fit the axes.
    """
    given = _checked(values, rows, columns)
    low, high = amount.ends
    if amount.log:
        with np.errstate(divide="ignore", invalid="ignore"):
            place = np.where(given > 0, np.log10(given), np.log10(low))
        low, high = float(np.log10(low)), float(np.log10(high))
        marks = np.linspace(low, high, 4)
        ticks, texts = marks.tolist(), [_brief(10**mark, False) for mark in marks]
    else:
        place = given
        ticks = np.linspace(low, high, 5).tolist()
        texts = [_brief(tick, amount.share) for tick in ticks]
    place = np.where(np.isfinite(given), place, np.nan)
    scale = f"{amount.title}, {'log' if amount.log else 'linear'}"
    return _figure(
        place,
        given,
        rows,
        columns,
        palette=palette,
        stops=palette.sequential,
        ends=(low, high),
        ticks=(ticks, texts),
        scale=scale,
        title=title,
        note=note,
        texts=[[_brief(value, amount.share) for value in row] for row in given],
        meta={"figure": figure, "scale": scale, "ends": list(amount.ends)},
    )


def map_difference(
    first: Floats,
    second: Floats,
    rows: Steps,
    columns: Steps,
    *,
    amount: Amount,
    palette: Palette,
    title: str,
    names: tuple[str, str],
) -> go.Figure:
    """The second's error minus the first's, (R, C) each: towards SSA's colour where the second is wrong less.

    Numbers that are no shares are compared as the ratio of the second to the first, on a log scale.

    Raises:
        InvalidInputError: a shape that does not fit the axes.
    """
    one, two = _checked(first, rows, columns), _checked(second, rows, columns)
    if amount.share:
        place = two - one
        end = _rounded_up(float(np.nanmax(np.abs(place), initial=0.0)))
        ticks = [-end, 0.0, end]
        marks = [f"−{100 * end:.0f}", "0", f"+{100 * end:.0f}"]
        texts = [[_signed(value) for value in row] for row in place]
        scale = "percentage points, linear"
    else:
        both = (one > 0) & (two > 0)
        place = np.log10(np.divide(two, one, out=np.full_like(one, np.nan), where=both), where=both, out=one * np.nan)
        end = max(float(np.nanmax(np.abs(place), initial=0.0)), 0.1)
        ticks = [-end, 0.0, end]
        marks = [_brief(10**tick, False) for tick in ticks]
        texts = [[_brief(10**value, False) if np.isfinite(value) else "" for value in row] for row in place]
        scale = "ratio, log"
    return _figure(
        place,
        two,
        rows,
        columns,
        palette=palette,
        stops=palette.diverging[::-1],
        ends=(-end, end),
        ticks=(ticks, marks),
        scale=scale,
        title=title,
        note=f"Blue: {names[1]} is wrong less.",
        texts=texts,
        meta={"figure": "error map difference", "scale": scale, "ends": [-end, end]},
    )


def _checked(values: Floats, rows: Steps, columns: Steps) -> NDArray[np.float64]:
    shape = (len(rows.values), len(columns.values))
    if np.shape(values) != shape or 0 in shape:
        raise InvalidInputError(f"an error map needs values of {shape}, like its axes, not {np.shape(values)}")
    return np.asarray(values, dtype=np.float64)


def _figure(
    place: NDArray[np.float64],
    said: NDArray[np.float64],
    rows: Steps,
    columns: Steps,
    *,
    palette: Palette,
    stops: tuple[str, ...],
    ends: tuple[float, float],
    ticks: tuple[list[float], list[str]],
    scale: str,
    title: str,
    note: str,
    texts: list[list[str]],
    meta: dict[str, Any],
) -> go.Figure:
    height = CELL * len(rows.values) + MARGIN[2] + MARGIN[3]
    across, down = plain(columns.title), plain(rows.title)
    cells = trace(
        "heatmap",
        z=place,
        x=columns.texts,
        y=rows.texts,
        customdata=said,
        text=texts,
        texttemplate="%{text}",
        textfont={"size": 10},
        hovertemplate=f"{across} %{{x}}<br>{down} %{{y}}<br>%{{text}} (%{{customdata:.6g}})<extra></extra>",
        hoverongaps=False,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
    )
    bare = {"type": "category", "showgrid": False, "ticks": "", "showline": False, "ticklabelstandoff": 4}
    return framed(
        [cells],
        palette,
        title=title,
        subtitle=note,
        height=height,
        margin=MARGIN,
        meta=meta,
        xaxis=titled(palette, across, **bare),
        yaxis=titled(palette, down, autorange="reversed", **bare),
        coloraxis=color_axis(
            palette,
            stops,
            ends=ends,
            ticks=ticks,
            title=plain(scale),
            show=True,
            height=height,
            margin=MARGIN,
            length=BAR,
        ),
    )


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _brief(value: float, share: bool) -> str:
    """A number as a cell holds it: two or three digits."""
    if not np.isfinite(value):
        return ""
    if share:
        percent = 100 * value
        if percent >= 9.95 or percent == 0:
            return f"{percent:.0f}"
        return f"{percent:.1f}" if percent >= 0.95 else f"{percent:.1f}"[1:] if percent >= 0.05 else "~0"
    if abs(value) >= 1e6 or 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.0e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    if abs(value) >= 999.5:
        return f"{value / 1000:.2g}k" if abs(value) < 9950 else f"{value / 1000:.0f}k"
    if abs(value) >= 0.995 or value == 0:
        return f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.2g}"
    return (f"{value:.2f}" if abs(value) >= 0.095 else f"{value:.1g}").replace("0.", ".", 1)


def _signed(value: float) -> str:
    """A difference of shares in whole percentage points; one that rounds to 0 is left out."""
    points = round(100 * value) if np.isfinite(value) else 0
    return f"{'−' if points < 0 else '+'}{abs(points)}" if points else ""


def _rounded_up(share: float) -> float:
    """The nearest of the usual ends that holds `share`; a share above 1, as a weight can be, is its own end."""
    return next((end for end in FULL if share <= end), share)
