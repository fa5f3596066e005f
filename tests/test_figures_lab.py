"""The lab's figures, read back from the figure object."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures.curves import FLOOR, Axis, Line, curves
from ssa_viz.figures.error_map import Steps, amount, error_map, map_difference
from ssa_viz.figures.jacobian import jacobian
from ssa_viz.figures.palette import DARK, LIGHT
from ssa_viz.figures.row_panels import Panel, row_panels

LABELS = ["1", "<b>2</b>", "1", "70", "−3"]
WEIGHTS = np.array([0.1, 0.2, 0.0, 0.695, 0.005])


def checked(figure: go.Figure) -> dict[str, Any]:
    """The figure as dictionaries with its arrays, after plotly has checked every property."""
    go.Figure(figure.to_dict())
    return {"data": [t.to_plotly_json() for t in figure.data], "layout": figure.layout.to_plotly_json()}


def panels(**changes: Any) -> dict[str, Panel]:
    return {"Softmax": Panel(WEIGHTS, "#bd6200", "30% to the others"), "ReLU": Panel(3 * WEIGHTS, "#34539e", "a<b")}


def test_every_panel_holds_its_own_weights_over_the_same_keys() -> None:
    figure = checked(row_panels(panels(), LABELS, palette=LIGHT, title="One row", grown=3))
    for bar, factor, axis in zip(figure["data"], (1, 3), ("y", "y2"), strict=True):
        np.testing.assert_array_equal(bar["y"], factor * WEIGHTS)
        np.testing.assert_array_equal(bar["x"], range(5))
        assert bar["yaxis"] == axis
        assert list(bar["customdata"])[1] == "2 · &lt;b&gt;2&lt;/b&gt;"
    assert list(figure["data"][0]["text"]) == ["10%", "20%", "0%", "70%", "<1%"]
    layout = figure["layout"]
    first, second = layout["yaxis"]["domain"], layout["yaxis2"]["domain"]
    assert first[0] > second[1] > second[0] >= 0
    assert first[1] < 1
    assert layout["yaxis"]["range"][1] == pytest.approx(1.3)
    assert list(layout["yaxis2"]["ticktext"]) == ["0", "2.08"]
    words = {note["name"]: note["text"] for note in layout["annotations"]}
    assert words["name 1"] == "<b>ReLU</b>"
    assert words["said 1"] == "a&lt;b"
    (band,) = layout["shapes"]
    assert (band["x0"], band["x1"]) == (2.5, 3.5)


def test_a_long_row_has_no_numbers_on_its_bars_and_thins_its_labels() -> None:
    count = 61
    row = {"SSA": Panel(np.full(count, 1 / count), "#0b7699", "")}
    figure = checked(row_panels(row, [str(i) for i in range(count)], palette=DARK, title="Long"))
    assert "text" not in figure["data"][0]
    assert len(figure["layout"]["xaxis"]["tickvals"]) < 30


@pytest.mark.parametrize("dark", [False, True])
def test_curves_hold_values_and_closed_forms(dark: bool) -> None:
    x, y = np.array([0.1, 1.0, 10.0]), np.array([0.5, 0.0, 1e-40])
    lines = {"Softmax": Line(y, "#bd6200", np.array([np.nan, 0.2, 1e-40])), "SSA": Line(y + 1, "#0b7699")}
    figure = checked(
        curves(
            x, lines, along=Axis("λ", True, (0.1, 10)), up=Axis("left", True, (FLOOR, 2)),
            palette=DARK if dark else LIGHT, title="Theorem 1", current=1.0,
        )
    )  # fmt: skip
    softmax, formula, ssa = figure["data"]
    assert [trace["name"] for trace in figure["data"]] == ["Softmax", "Softmax: formula", "SSA"]
    np.testing.assert_array_equal(softmax["y"], [0.5, np.nan, 1e-40])  # a log axis has no 0
    np.testing.assert_array_equal(formula["y"], [np.nan, 0.2, 1e-40])
    assert formula["showlegend"] is False
    assert softmax["line"]["dash"] != ssa["line"]["dash"]
    assert figure["layout"]["yaxis"]["range"] == pytest.approx([-30, np.log10(2)])
    assert figure["layout"]["xaxis"]["type"] == "log"
    (line,) = figure["layout"]["shapes"]
    assert line["x0"] == 1.0


def test_curves_on_linear_axes_keep_zeros() -> None:
    figure = checked(
        curves(np.arange(3.0), {"s": Line(np.array([0.0, -1.0, 2.0]), "#111111")}, along=Axis("x"), up=Axis("y"),
               palette=LIGHT, title="Shape")
    )  # fmt: skip
    np.testing.assert_array_equal(figure["data"][0]["y"], [0.0, -1.0, 2.0])
    assert figure["layout"]["xaxis"].get("type") is None
    assert figure["layout"]["meta"]["scale"] == "x linear, y linear"


def test_jacobian_is_drawn_as_it_is_on_a_symmetric_scale() -> None:
    derivatives = np.arange(25.0).reshape(5, 5) - 12
    figure = checked(jacobian(derivatives, LABELS, limit=20.0, palette=LIGHT, title="Softmax"))
    np.testing.assert_array_equal(figure["data"][0]["z"], derivatives)
    axis = figure["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (-20, 20)
    assert list(figure["layout"]["yaxis"]["range"]) == [5.5, 0.5]  # the first weight on top
    zeros = checked(jacobian(np.zeros((5, 5)), LABELS, limit=0.0, palette=LIGHT, title="Nothing"))
    assert zeros["layout"]["coloraxis"]["cmax"] > 0


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: row_panels({}, LABELS, palette=LIGHT, title=""), "at least one"),
        (lambda: row_panels(panels(), LABELS[:3], palette=LIGHT, title=""), "must have 3 weights"),
        (lambda: curves(np.arange(3.0), {}, along=Axis("x"), up=Axis("y"), palette=LIGHT, title=""), "at least one"),
        (
            lambda: curves(
                np.arange(3.0), {"a": Line(np.arange(2.0), "#111111")}, along=Axis("x"), up=Axis("y"), palette=LIGHT,
                title="",
            ),
            "must have 3 values",
        ),
        (lambda: jacobian(np.zeros((2, 3)), LABELS, limit=1.0, palette=LIGHT, title=""), "5 × 5"),
        (lambda: jacobian(np.zeros((5, 5)), LABELS, limit=np.nan, palette=LIGHT, title=""), "limit"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(build: Any, match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        build()


ROWS, COLUMNS = Steps("length <n>", (10, 20)), Steps("σ", (1, 2.5, 40))
ERRORS = np.array([[0.0, 0.004, 0.0512], [0.3, 0.999, np.nan]])


def test_an_error_map_holds_its_numbers_and_compared_maps_share_their_colours() -> None:
    scale = amount("% wrong", [ERRORS, ERRORS / 2], share=True)
    assert scale.ends == (0.0, 1.0)
    drawn = checked(error_map(ERRORS, ROWS, COLUMNS, amount=scale, palette=LIGHT, title="SSA"))
    (cells,) = drawn["data"]
    np.testing.assert_array_equal(cells["z"], ERRORS)
    np.testing.assert_array_equal(cells["customdata"], ERRORS)
    assert [list(row) for row in cells["text"]] == [["0", ".4", "5.1"], ["30", "100", ""]]
    assert list(cells["x"]) == ["1", "2.5", "40"]
    assert drawn["layout"]["yaxis"]["title"]["text"] == "length &lt;n&gt;"
    axis = drawn["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == scale.ends
    assert amount("", [ERRORS[:1]], share=True).ends == (0.0, 0.1)
    with pytest.raises(InvalidInputError):
        error_map(ERRORS.T, ROWS, COLUMNS, amount=scale, palette=LIGHT, title="")


def test_squared_errors_are_coloured_by_their_logarithm_unless_one_is_0() -> None:
    values = np.array([[0.02, 1.0, 123.0], [4567.0, 45678.0, 2e6]])
    scale = amount("squared error", [values], share=False)
    assert scale.log
    drawn = checked(error_map(values, ROWS, COLUMNS, amount=scale, palette=DARK, title="SSA"))
    np.testing.assert_allclose(drawn["data"][0]["z"], np.log10(values))
    assert [list(row) for row in drawn["data"][0]["text"]] == [[".02", "1", "123"], ["4.6k", "46k", "2e6"]]
    assert not amount("squared error", [values, 0 * values], share=False).log
    assert amount("squared error", [np.full((2, 3), np.nan)], share=False).ends == (0.0, 1.0)


def test_the_difference_of_two_maps_is_blue_where_the_second_is_wrong_less() -> None:
    scale = amount("% wrong", [ERRORS], share=True)
    better = ERRORS - np.array([[0, 0, 0.05], [0.2, -0.001, 0]])
    drawn = checked(
        map_difference(ERRORS, better, ROWS, COLUMNS, amount=scale, palette=LIGHT, title="Difference", names=("A", "B"))
    )
    np.testing.assert_allclose(drawn["data"][0]["z"], better - ERRORS)
    assert [list(row) for row in drawn["data"][0]["text"]] == [["", "", "−5"], ["−20", "", ""]]
    axis = drawn["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (-0.25, 0.25)
    assert axis["colorscale"][0][1] == LIGHT.diverging[-1]
    assert "Blue: B is wrong less." in str(drawn["layout"]["title"])
    numbers = amount("squared error", [ERRORS], share=False)
    drawn = checked(
        map_difference(ERRORS, 2 * ERRORS, ROWS, COLUMNS, amount=numbers, palette=LIGHT, title="", names=("A", "B"))
    )
    ratio = drawn["data"][0]["z"]
    assert np.isnan(ratio[0, 0])
    assert ratio[1, 0] == pytest.approx(np.log10(2))
    assert drawn["data"][0]["text"][1][0] == "2"
