"""The Sentences page's figures, read back from the figure object."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.between import LEAST, MOST_LINES, between
from ssa_viz.figures.error_map import Steps, amount, error_map
from ssa_viz.figures.guesses import guesses
from ssa_viz.figures.palette import DARK, LIGHT, Palette

LABELS = ["<start>", "·the", "·70", "<b>", "."]
COUNT = len(LABELS)
VISIBLE = np.tril(np.ones((COUNT, COUNT), dtype=bool))


def checked(figure: go.Figure) -> go.Figure:
    """The figure, when plotly has checked every property."""
    go.Figure(figure.to_dict())
    return figure


def rows(seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).random((COUNT, COUNT)) * VISIBLE
    return raw / raw.sum(axis=1, keepdims=True)


def drawn(figure: go.Figure, *, own: bool | None = None) -> set[tuple[int, int]]:
    """(query, key) of every line."""
    found = set()
    for trace in figure.data:
        if trace.mode == "lines" and (own is None or trace.meta["own"] == own):
            ends = np.asarray(trace.y, dtype=float).reshape(-1, 3)
            assert np.isnan(ends[:, 2]).all()
            np.testing.assert_array_equal(np.asarray(trace.x, dtype=float).reshape(-1, 3)[:, :2], [[0, 1]] * len(ends))
            found |= {(int(query), int(key)) for query, key in ends[:, :2]}
    return found


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_a_line_joins_each_query_to_every_key_with_weight(colours: Palette) -> None:
    weights = rows()
    weights[4] = [0.97, LEAST, 0.009, 0.001, 0]
    figure = checked(between(weights, VISIBLE, LABELS, title="L1 H2", palette=colours, colour="#bd6200"))
    assert drawn(figure) == {(int(q), int(k)) for q, k in zip(*np.nonzero(weights >= LEAST), strict=True)}
    strengths = [t.line.color for t in figure.data if t.mode == "lines"]
    assert len(set(strengths)) == len(strengths)
    (queries,) = [t for t in figure.data if t.name == "queries"]
    assert queries.customdata[4].startswith("4 · . looks most at<br>0 · &lt;start&gt;: 97%")
    (keys,) = [t for t in figure.data if t.name == "keys"]
    assert keys.customdata[0].startswith("0 · &lt;start&gt; is looked at most by<br>0 · &lt;start&gt;: 100%")
    assert [text.strip() for text in queries.text] == [text.strip() for text in keys.text]
    assert queries.text[3].strip() == "&lt;b&gt;"


def test_a_chosen_query_stands_out_and_hidden_or_broken_weights_have_no_line() -> None:
    weights = rows()
    weights[0, 4] = 0.5  # hidden
    weights[3, 1] = np.nan
    figure = checked(between(weights, VISIBLE, LABELS, title="", palette=LIGHT, colour="#bd6200", query=2, outlier=2))
    assert {query for query, _ in drawn(figure, own=True)} == {2}
    assert 2 not in {query for query, _ in drawn(figure, own=False)}
    assert not drawn(figure) & {(0, 4), (3, 1)}
    queries, keys = figure.data[-2:]
    for side in (queries, keys):
        assert [i for i, colour in enumerate(side.textfont.color) if colour == LIGHT.outlier] == [2]
    assert [i for i, weight in enumerate(queries.textfont.weight) if weight > 400] == [2]


def test_only_the_strongest_lines_of_many_are_drawn() -> None:
    count = 90
    weights = np.random.default_rng(1).uniform(LEAST, 1, (count, count))
    labels = [str(i) for i in range(count)]
    everywhere = np.ones((count, count), dtype=bool)
    figure = between(weights, everywhere, labels, title="", palette=LIGHT, colour="#bd6200")
    kept = drawn(figure)
    assert len(kept) == MOST_LINES
    assert min(weights[pair] for pair in kept) == np.sort(weights.ravel())[-MOST_LINES]
    assert f"the {MOST_LINES} strongest" in figure.to_json()


@pytest.mark.parametrize(
    "change", [{"weights": rows()[:3]}, {"visible": VISIBLE[:3]}, {"query": COUNT}, {"outlier": -1}, {"labels": []}]
)
def test_lines_refuse_what_does_not_fit(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"weights": rows(), "visible": VISIBLE, "labels": LABELS, **change}
    with pytest.raises(InvalidInputError):
        between(given.pop("weights"), given.pop("visible"), given.pop("labels"), title="", palette=LIGHT,
                colour="#bd6200", **given)  # fmt: skip


def test_guesses_are_bars_with_what_they_were_before() -> None:
    figure = checked(
        guesses(["·cat", "<i>"], [0.6, 0.004], usual=[0.2, 0.3], title="Next", palette=LIGHT, colour="#34539e")
    )
    bars, marks, shares = figure.data
    assert list(bars.x) == [0.6, 0.004]
    assert list(marks.x) == [0.2, 0.3]
    assert list(bars.y) == list(marks.y) == [0, 1]
    assert [text.strip() for text in shares.text] == ["60%", "<1%"]
    assert list(shares.x) == [0.6, 0.3]  # past the bar and the mark
    assert bars.customdata[1] == "&lt;i&gt;"
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the likeliest on top
    assert tuple(figure.layout.xaxis.range) == (0, 1)
    for probability, usual, most, end in ((0.03, 0.04, 0.0, 0.1), (0.03, 0.3, 0.0, 0.4), (0.03, 0.04, 0.15, 0.2)):
        few = guesses(["a"], [probability], usual=[usual], most=most, title="", palette=LIGHT, colour="#34539e")
        assert tuple(few.layout.xaxis.range) == (0, end)
    assert len(guesses(["a"], [1.0], title="", palette=DARK, colour="#34539e").data) == 2
    for labels, probabilities, usual in (([], [], None), (["a"], [0.1, 0.2], None), (["a"], [0.1], [0.1, 0.2])):
        with pytest.raises(InvalidInputError):
            guesses(labels, probabilities, usual=usual, title="", palette=LIGHT, colour="#34539e")


def test_a_map_over_named_rows_says_what_it_shows() -> None:
    values = np.array([[0.25, 0.5], [0.75, 1.0]])
    heads, factors = Steps("head", ["L0 H0", "L0 H1"]), Steps("factor", [1, 10])
    figure = checked(
        error_map(
            values, heads, factors, amount=amount("x", [values], share=True), palette=LIGHT, title="Heads",
            figure="contextual mass of heads",
        )
    )  # fmt: skip
    assert figure.layout.meta["figure"] == "contextual mass of heads"
    assert "L0 H1" in figure.to_json()
