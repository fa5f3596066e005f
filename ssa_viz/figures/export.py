"""Figures and their data as files: HTML that works offline, CSV that no spreadsheet will run."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.frame import chart_config

# Excel reads UTF-8 only after a byte order mark, and −, σ and tokens need UTF-8; pandas and R skip the mark.
BOM = b"\xef\xbb\xbf"
FORMULA_STARTS = frozenset("=+-@＝＋－＠")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ATTENTION_HEADER = "layer,head,query,query_label,key,key_label,logit,weight"


def to_html(figure: go.Figure) -> bytes:
    """One page that holds the figure and the code that draws it: it loads nothing from anywhere."""
    meta = figure.layout.meta or {}
    title = html.escape(str(meta.get("title", "figure")))
    background = html.escape(str(meta.get("background", "#ffffff")))
    body = figure.to_html(full_html=False, include_plotlyjs=True, config=chart_config("figure"))
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{title}</title>\n</head>\n<body style="margin:16px;background:{background}">\n{body}\n'
        "</body>\n</html>\n"
    )
    return page.encode()


def csv(columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> bytes:
    """Columns of equal length as CSV: UTF-8 with a byte order mark, lines end in CR LF, quotes where needed.

    Numbers are written so that reading them gives the same number. A text that a spreadsheet would run as a
    formula (it starts with = + - @ and is not a plain number) gets an apostrophe in front. None is an empty
    cell.

    Raises:
        InvalidInputError: no column, or columns of different lengths.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InvalidInputError(f"a CSV file needs columns of one length, not {lengths}")
    rows = zip(*(_cells(column) for column in columns.values()), strict=True)
    return _file(",".join(_text(name) for name in columns), (",".join(row) for row in rows))


def attention_csv(
    weights: NDArray[np.floating],
    logits: NDArray[np.floating],
    visible: NDArray[np.bool_],
    labels: Sequence[str],
) -> bytes:
    """Every visible cell of weights and logits (L, H, Q, K) as a row of CSV, with its two tokens.

    `visible` has their shape or one that broadcasts to it; `labels` name the keys, the last Q of
    them the queries.

    Raises:
        InvalidInputError: shapes that do not fit each other.
    """
    weights, logits = np.asarray(weights), np.asarray(logits)
    if weights.ndim != 4 or weights.shape != logits.shape or weights.shape[3] != len(labels):
        raise InvalidInputError(
            f"weights {weights.shape} and logits {logits.shape} must both be "
            f"(layers, heads, queries, {len(labels)} keys)"
        )
    queries, keys = weights.shape[2:]
    if queries > keys:
        raise InvalidInputError(f"{queries} queries cannot be named by {keys} labels")
    try:
        shown = np.broadcast_to(visible, weights.shape)
    except ValueError:
        raise InvalidInputError(f"visible {np.shape(visible)} does not fit weights {weights.shape}") from None
    layer, head, query, key = (index.tolist() for index in np.nonzero(shown))
    named = [f"{i},{_text(label)}" for i, label in enumerate(labels)]
    asked = [f"{i},{_text(label)}" for i, label in enumerate(labels[keys - queries :])]
    cells = zip(layer, head, query, key, _numbers(logits[shown]), _numbers(weights[shown]), strict=True)
    return _file(
        ATTENTION_HEADER,
        (f"{i},{j},{asked[q]},{named[k]},{logit},{weight}" for i, j, q, k, logit, weight in cells),
    )


def _file(header: str, rows: Iterable[str]) -> bytes:
    out = io.StringIO()
    out.write(header + "\r\n")
    out.writelines(row + "\r\n" for row in rows)
    return BOM + out.getvalue().encode()


def _cells(column: Sequence[Any] | NDArray[Any]) -> list[str]:
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return _numbers(column)
    return [_cell(value) for value in column]


def _numbers(values: NDArray[Any]) -> list[str]:
    """Shortest text that gives back the same float of the array's own precision."""
    return values.astype(str).tolist()  # type: ignore[no-any-return]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _text(value)
    return str(value)


def _text(text: str) -> str:
    """`text` as one cell: defused, and quoted if it holds a separator, quote, line end or outer space."""
    start = text.lstrip()[:1]
    if start in FORMULA_STARTS and not NUMBER.fullmatch(text):
        text = "'" + text
    # An empty text is quoted too: as the only cell of a row it would be a blank line, which readers skip.
    if not text or text != text.strip() or any(mark in text for mark in ',"\r\n;\t'):
        return '"' + text.replace('"', '""') + '"'
    return text
