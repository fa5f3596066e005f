"""Figures are read back from the figure object: data, colours, marks. No pictures are compared."""

from __future__ import annotations

import base64
import csv as csv_reader
import io
import json
import struct
import time
import zlib
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.figures import export, frame, heatmap, line_fit, mass, overview, png, predictions
from ssa_viz.figures.palette import DARK, FAMILIES, LIGHT, Palette, palette, table
from ssa_viz.figures.scale import Scale, scaled
from ssa_viz.figures.sweep import sweep
from ssa_viz.scoring import SCORING

L, H, T = 2, 3, 7
LABELS = ["1", "1", "<b>2</b>", "</s>", "a&b", "1", "70"]


def causal(count: int) -> NDArray[np.bool_]:
    return np.arange(count)[:, None] >= np.arange(count)[None, :]


def softmax_rows(shape: tuple[int, ...], seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Logits and causal softmax weights by the formula, in float64."""
    logits = np.random.default_rng(seed).normal(size=shape) * 2
    power = np.where(causal(shape[-1]), np.exp(logits), 0.0)
    weights = power / power.sum(axis=-1, keepdims=True)
    return logits.astype(np.float32), weights.astype(np.float32)


def one_head(seed: int = 5, **options: Any) -> go.Figure:
    logits, weights = softmax_rows((T, T), seed)
    settings = {"title": "softmax · L1 H2", "scale": Scale.LINEAR, "palette": LIGHT} | options
    return heatmap.attention(weights, logits, causal(T), LABELS, **settings)


def shape_named(figure: go.Figure, name: str) -> Any:
    (found,) = [shape for shape in figure.layout.shapes if shape.name == name]
    return found


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def lightness(colour: str) -> float:
    """CIE L*."""
    y = luminance(colour)
    return float(116 * np.cbrt(y) - 16 if y > 0.008856 else 903.3 * y)


def contrast(one: str, two: str) -> float:
    bright, dim = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


# Palette


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_every_mark_stands_out_from_the_background(colours: Palette) -> None:
    for colour in (colours.ink, colours.muted, colours.softmax, colours.ssa, colours.outlier, colours.wrong):
        assert contrast(colour, colours.background) >= 4.2
    for colour in [*colours.others, *(colours.scoring(name) for name in FAMILIES)]:
        assert contrast(colour, colours.background) >= 4.2


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_the_weights_scale_has_even_steps_of_lightness(colours: Palette) -> None:
    steps = np.diff([lightness(stop) for stop in colours.sequential])
    assert (np.sign(steps) == (1 if colours.dark else -1)).all()
    assert np.abs(steps).max() < 1.5 * np.abs(steps).min()
    assert abs(np.diff([lightness(colours.sequential[0]), lightness(colours.background)]).item()) < 12


def test_scoring_functions_keep_their_colour() -> None:
    light = palette(dark=False)
    assert light.scoring("softmax", 3) == light.softmax
    assert light.scoring("ssa", 4) == light.ssa
    assert light.scoring("new", 1) == light.others[1]
    assert light.scoring("new", 1 + len(light.others)) == light.others[1]
    for colours in (light, palette(dark=True)):
        own = {colours.scoring(name) for name in SCORING}
        assert len(own | {colours.outlier}) == len(SCORING) + 1
        assert light.scoring("entmax", 1) == light.scoring("entmax", 2)
    assert len({light.softmax, light.ssa, light.outlier, light.wrong, *light.others}) == 4 + len(light.others)
    assert palette(dark=True, background="#202020").background == "#202020"
    assert palette(dark=True).dark


def test_table_mixes_between_stops() -> None:
    assert table(("#000000", "#ff8000"), 3).tolist() == [[0, 0, 0], [128, 64, 0], [255, 128, 0]]


# Scale


def test_linear_is_the_weight_and_its_ends_do_not_move() -> None:
    weights = np.array([[0.25, 0.5], [0.75, 0.0]], dtype=np.float32)
    visible = np.array([[True, False], [True, True]])
    got = scaled(weights, visible, Scale.LINEAR)
    np.testing.assert_array_equal(got.z, np.array([[0.25, np.nan], [0.75, 0.0]], dtype=np.float32))
    assert (got.zmin, got.zmax, got.note) == (0.0, 1.0, "")
    assert got.z.dtype == np.float32


def test_log_of_zero_and_of_anything_below_the_floor_is_the_floor() -> None:
    weights = np.array([[1.0, 1e-3, 1e-6, 1e-9, 0.0]])
    got = scaled(weights, np.ones((1, 5), dtype=bool), Scale.LOG)
    np.testing.assert_allclose(got.z, [[0, -3, -6, -6, -6]], atol=1e-5)
    assert (got.zmin, got.zmax) == (-6.0, 0.0)
    assert "10⁻⁶" in got.title


def test_row_scale_divides_by_the_largest_visible_weight() -> None:
    weights = np.array([[0.2, 0.1, 0.7], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    visible = np.array([[True, True, False], [True, True, True], [False, False, False]])
    got = scaled(weights, visible, Scale.ROW)
    np.testing.assert_allclose(got.z, [[1, 0.5, np.nan], [0, 0, 0], [np.nan] * 3], rtol=1e-6)


@pytest.mark.parametrize("scale", list(Scale))
def test_weights_that_are_not_numbers_are_blank_and_counted(scale: Scale) -> None:
    weights = np.array([[np.nan, 0.5, np.inf, 0.25]])
    got = scaled(weights, np.array([[True, True, True, False]]), scale)
    assert np.isnan(got.z).tolist() == [[True, False, True, True]]
    assert "2 weights not finite" in got.note


def test_weights_past_the_ends_are_said() -> None:
    assert "outside 0 to 1" in scaled(np.array([[1.5]]), np.array([[True]]), Scale.LINEAR).note
    assert scaled(np.array([[1.5]]), np.array([[False]]), Scale.LINEAR).note == ""


def test_scale_refuses_a_mask_of_another_shape() -> None:
    with pytest.raises(InvalidInputError, match=r"\(2, 5\) does not fit"):
        scaled(np.zeros((3, 5)), np.zeros((2, 5), dtype=bool), Scale.LINEAR)


# Heatmap


def test_cells_hold_the_weights_and_hidden_ones_are_blank() -> None:
    logits, weights = softmax_rows((T, T), 5)
    cells = one_head().data[0]
    np.testing.assert_array_equal(np.isnan(cells.z), ~causal(T))
    np.testing.assert_array_equal(cells.z[causal(T)], weights[causal(T)])
    np.testing.assert_array_equal(cells.customdata[..., 0], weights)
    np.testing.assert_array_equal(cells.customdata[..., 1], logits)
    assert cells.hoverongaps is False
    assert "customdata[0]:.4g" in cells.hovertemplate
    assert cells.z.dtype == cells.customdata.dtype == np.float32


def test_queries_run_down_and_keys_across() -> None:
    figure = one_head()
    assert figure.layout.yaxis.range == (T - 0.5, -0.5)
    assert figure.layout.xaxis.range == (-0.5, T - 0.5)
    assert figure.layout.yaxis2.title.text == "query"
    assert figure.layout.xaxis2.title.text == "key"


def test_equal_tokens_keep_places_of_their_own_and_markup_is_shown_as_text() -> None:
    shown = one_head().layout.xaxis2
    assert shown.tickvals == tuple(range(T))
    assert shown.ticktext == ("1", "1", "&lt;b&gt;2&lt;/b&gt;", "&lt;/s&gt;", "a&amp;b", "1", "70")
    assert frame.short("<b>345678") == "&lt;b&gt;3456…"
    named = one_head().layout.xaxis
    assert named.ticktext[0] == "0 · 1"
    assert named.ticktext[1] == "1 · 1"
    assert named.ticktext[2] == "2 · &lt;b&gt;2&lt;/b&gt;"
    assert named.showticklabels is False


def test_many_labels_are_thinned_but_each_can_be_hovered() -> None:
    count, injected = 83, 42
    logits, weights = softmax_rows((count, count), 3)
    labels = [str(i % 10) for i in range(count)]
    figure = heatmap.attention(
        weights, logits, causal(count), labels, title="", scale=Scale.LOG, palette=DARK, outlier=injected
    )
    assert figure.layout.xaxis.tickvals == tuple(range(count))
    assert len(figure.layout.xaxis.ticktext) == count
    shown = figure.layout.xaxis2.tickvals
    assert injected in shown
    assert len(shown) <= frame.MOST_TICKS + 1
    assert np.diff(shown).min() >= 2


def test_compared_panels_share_the_scale_and_give_equal_weights_equal_colours() -> None:
    _, one = softmax_rows((T, T), 5)
    two = one.copy()
    two[3] = [1, 0, 0, 0, 0, 0, 0]
    for scale in Scale:
        panels = [heatmap.attention(w, w, causal(T), LABELS, title="", scale=scale, palette=LIGHT) for w in (one, two)]
        axes = [panel.layout.coloraxis for panel in panels]
        assert axes[0] == axes[1]
        assert scale.value.split()[0] in axes[0].colorbar.title.text
        np.testing.assert_array_equal(panels[0].data[0].z[4], panels[1].data[0].z[4])
        assert panels[0].layout.margin == panels[1].layout.margin


def test_hiding_the_colour_bar_moves_nothing() -> None:
    with_bar, without = one_head(), one_head(show_colorbar=False)
    assert without.layout.coloraxis.showscale is False
    assert (with_bar.layout.height, with_bar.layout.margin) == (without.layout.height, without.layout.margin)


def test_the_injected_column_and_the_chosen_row_are_framed() -> None:
    figure = one_head(outlier=2, highlight_query=5)
    column = shape_named(figure, "injected")
    assert (column.x0, column.x1, column.y0, column.y1) == (1.5, 2.5, -0.5, T - 0.5)
    assert column.line.color == LIGHT.outlier
    row = shape_named(figure, "query")
    assert (row.x0, row.x1, row.y0, row.y1) == (-0.5, T - 0.5, 4.5, 5.5)
    (label,) = figure.layout.annotations
    assert label.x == 2
    assert "injected" in label.text
    assert not one_head().layout.shapes


def test_a_row_without_a_visible_key_says_so() -> None:
    visible = causal(T)
    visible[[2, 4]] = False
    logits, weights = softmax_rows((T, T), 5)
    figure = heatmap.attention(weights, logits, visible, LABELS, title="", scale=Scale.ROW, palette=LIGHT)
    (note,) = [trace for trace in figure.data if trace.name == "no visible key"]
    assert list(note.y) == [2, 4]
    assert np.isnan(figure.data[0].z[[2, 4]]).all()


@pytest.mark.parametrize("weight", [0.0, 1.0, np.nan], ids=["zero", "one", "nan"])
@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("scale", list(Scale))
def test_degenerate_weights_are_drawn(weight: float, count: int, scale: Scale) -> None:
    weights = np.full((count, count), weight, dtype=np.float32)
    figure = heatmap.attention(
        weights, weights, causal(count), ["x"] * count, title="", scale=scale, palette=LIGHT, outlier=0
    )
    drawn = figure.data[0].z[causal(count)]
    expected = {0.0: -6.0 if scale is Scale.LOG else 0.0, 1.0: 0.0 if scale is Scale.LOG else 1.0}
    np.testing.assert_allclose(drawn, expected.get(weight, np.nan), rtol=1e-6)  # logarithms differ among processors
    json.loads(figure.to_json())


def test_queries_may_be_fewer_than_keys() -> None:
    weights = np.full((3, 5), 0.2)
    figure = heatmap.attention(
        weights, weights, np.ones((3, 5), dtype=bool), list("abcde"), query_labels=list("cde"),
        title="", scale=Scale.LINEAR, palette=LIGHT, outlier=4,
    )  # fmt: skip
    assert figure.data[0].z.shape == (3, 5)
    assert figure.layout.yaxis.ticktext == ("0 · c", "1 · d", "2 · e")
    assert [shape.name for shape in figure.layout.shapes] == ["injected"]


@pytest.mark.parametrize(
    "change",
    [{"outlier": T}, {"outlier": -1}, {"highlight_query": T}, {"query_labels": ["a"]}],
    ids=lambda change: str(change),
)
def test_heatmap_refuses_what_does_not_fit(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        one_head(**change)


def test_difference_is_ssa_minus_softmax_on_a_fixed_symmetric_scale() -> None:
    _, one = softmax_rows((T, T), 5)
    _, two = softmax_rows((T, T), 11)
    figure = heatmap.difference(one, two, causal(T), LABELS, title="", palette=LIGHT)
    np.testing.assert_array_equal(figure.data[0].z[causal(T)], (two - one)[causal(T)])
    assert np.isnan(figure.data[0].z[~causal(T)]).all()
    colours = figure.layout.coloraxis
    assert (colours.cmin, colours.cmax) == (-1, 1)
    assert colours.colorbar.title.text == "SSA minus softmax (weight, linear, −1 to 1)"
    np.testing.assert_array_equal(figure.data[0].customdata[..., 0], one)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_plotly_knows_every_property_and_value(colours: Palette) -> None:
    """Figures are built without plotly's own check; rebuilding them makes it."""
    _, weights = softmax_rows((L, H, T, T), 17)
    flat = np.linspace(0, 1, T)
    series = {"softmax": (flat, colours.softmax), "SSA": (flat / 2, colours.ssa)}
    common: dict[str, Any] = {"palette": colours, "title": "t", "outlier": 3}
    shown = causal(T)
    shown[2] = False
    figures = [
        one_head(palette=colours, outlier=3, highlight_query=2, scale=Scale.LOG),
        heatmap.attention(weights[1, 0], weights[0, 0], shown, LABELS, scale=Scale.ROW, **common),
        heatmap.difference(weights[0, 0], weights[0, 1], causal(T), LABELS, **common),
        overview.overview(weights, causal(T), scale=Scale.LINEAR, selected=(0, 1), **common),
        mass.contextual_mass(series, LABELS, **common),
        predictions.answers([predictions.AnswerRow("SSA", flat, colours.ssa)], flat > 0.3, LABELS, **common),
        line_fit.line_fit(flat, flat, grid=flat, true=flat, predicted=series, xrange=(0, 0.7), **common),
        line_fit.squared_errors(series, LABELS, **common),
        sweep(
            flat + 1, series, ytitle="y", yrange=(0, 1), palette=colours, title="t",
            first_wrong={"SSA": 50.0, "softmax": 500.0}, current=70.0,
        ),
    ]  # fmt: skip
    for figure in figures:
        rebuilt = go.Figure(figure.to_dict())  # raises for a property or value that plotly does not know
        assert json.loads(rebuilt.to_json())["data"] == json.loads(figure.to_json())["data"]
    with pytest.raises(ValueError, match="markr"):
        go.Figure({"data": [{"type": "scatter", "markr": {}}]})


def test_figures_say_what_they_hold() -> None:
    meta = one_head(outlier=3).layout.meta
    assert meta["scale"] == "weight, linear"
    assert meta["keys"] == LABELS
    assert meta["outlier"] == 3


# PNG and overview


def decoded(data: bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Indices, palette and its opacities of an 8-bit palette PNG without filters; checks every checksum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 3, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    colours = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
    opacity = np.full(len(colours), 255, np.uint8)
    opacity[: len(chunks[b"tRNS"])] = np.frombuffer(chunks[b"tRNS"], np.uint8)
    return lines[:, 1:], colours, opacity


def picture(figure: go.Figure) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    return decoded(base64.b64decode(figure.data[0].source.removeprefix("data:image/png;base64,")))


def test_png_holds_the_indices() -> None:
    indices = np.arange(15, dtype=np.uint8).reshape(3, 5) % 4
    colours = np.array([[1, 2, 3], [40, 50, 60], [7, 8, 9], [255, 0, 128]], dtype=np.uint8)
    got, table_read, opacity = decoded(png.encode(indices, colours, 2))
    np.testing.assert_array_equal(got, indices)
    np.testing.assert_array_equal(table_read, colours)
    assert opacity.tolist() == [255, 255, 0, 255]


@pytest.mark.parametrize("scale", list(Scale))
def test_every_pixel_of_the_overview_has_its_weights_colour(scale: Scale) -> None:
    _, weights = softmax_rows((L, H, T, T), 17)
    figure = overview.overview(
        weights, causal(T), scale=scale, palette=DARK, selected=(1, 2), title="softmax", outlier=4
    )
    indices, colours, opacity = picture(figure)
    side = T + 2 * overview.GUTTER
    assert indices.shape == (L * side, H * side)
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in DARK.sequential])
    for layer, head, query, key in np.ndindex(L, H, T, T):
        index = indices[layer * side + overview.GUTTER + query, head * side + overview.GUTTER + key]
        if key > query:
            assert opacity[index] == 0
            continue
        weight = float(weights[layer, head, query, key])
        row = float(weights[layer, head, query, : query + 1].max())
        place = {
            Scale.LINEAR: weight,
            Scale.LOG: (np.log10(max(weight, 1e-6)) + 6) / 6,
            Scale.ROW: weight / row,
        }[scale]
        place = np.rint(place * (overview.LEVELS - 1)) / (overview.LEVELS - 1) * (len(stops) - 1)
        low = min(int(place), len(stops) - 2)
        colour = stops[low] + (place - low) * (stops[low + 1] - stops[low])
        # One level of tolerance: float32 may round a weight halfway between two levels the other way.
        assert np.abs(colours[index].astype(float) - colour).max() <= 255 / overview.LEVELS
        assert opacity[index] == 255


def test_gutters_are_clear_but_for_the_mark_of_the_injected_column() -> None:
    _, weights = softmax_rows((L, H, T, T), 17)
    common: dict[str, Any] = {"scale": Scale.LINEAR, "palette": LIGHT, "selected": (0, 0), "title": ""}
    marked, colours, _ = picture(overview.overview(weights, causal(T), outlier=4, **common))
    side = T + 2 * overview.GUTTER
    top = marked[0].reshape(H, side)
    assert [tuple(np.flatnonzero(row == overview.LEVELS + 1)) for row in top] == [(overview.GUTTER + 4,)] * H
    assert "#" + colours[overview.LEVELS + 1].tobytes().hex() == LIGHT.outlier
    plain, _, opacity = picture(overview.overview(weights, causal(T), **common))
    assert not opacity[plain[0]].any()
    assert not opacity[plain[:, 0]].any()


def test_one_invisible_point_per_head_answers_a_click() -> None:
    _, weights = softmax_rows((L, H, T, T), 17)
    figure = overview.overview(weights, causal(T), scale=Scale.LINEAR, palette=LIGHT, selected=(1, 2), title="softmax")
    image, heads = figure.data
    assert [(point[0], point[1]) for point in heads.customdata] == [(i, j) for i in range(L) for j in range(H)]
    assert list(zip(heads.y, heads.x, strict=True)) == [(i, j) for i in range(L) for j in range(H)]
    np.testing.assert_allclose([point[2] for point in heads.customdata], weights.max(axis=(2, 3)).ravel(), atol=6e-5)
    assert heads.marker.opacity == heads.selected.marker.opacity == heads.unselected.marker.opacity == 0
    assert heads.hoverinfo != "skip"
    assert figure.layout.hoverdistance == -1
    assert image.hoverinfo == "skip"
    # The picture spans a unit square per head, so that its tiles lie around the points.
    side = T + 2 * overview.GUTTER
    assert image.x0 - image.dx / 2 == pytest.approx(-0.5)
    assert image.x0 + image.dx * (side * H - 0.5) == pytest.approx(H - 0.5)
    assert image.y0 + image.dy * (side * L - 0.5) == pytest.approx(L - 0.5)
    selected = shape_named(figure, "selected")
    assert (selected.x0, selected.x1, selected.y0, selected.y1) == (1.5, 2.5, 0.5, 1.5)


def test_a_large_overview_is_small_and_quick_whatever_it_shows() -> None:
    count, rng = 82, np.random.default_rng(0)
    weights = rng.random((12, 8, count, count), dtype=np.float32)  # worse to compress than any attention
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        figure = overview.overview(
            weights, causal(count), scale=Scale.LINEAR, palette=LIGHT, selected=(3, 5), title="softmax"
        )
        seconds.append(time.perf_counter() - start)
    assert len(figure.to_json()) < 400_000
    assert min(seconds) < 1.0  # a guard against a loop over cells, not a benchmark
    assert picture(figure)[0].shape == (12 * 86, 8 * 86)
    assert not figure.layout.title.subtitle.text


def test_one_detailed_heatmap_is_sent_as_bytes() -> None:
    count = 82
    logits, weights = softmax_rows((count, count), 1)
    labels = [f"{value:.3g}" for value in logits[0]]
    figure = heatmap.attention(weights, logits, causal(count), labels, title="", scale=Scale.LINEAR, palette=LIGHT)
    sent = json.loads(figure.to_json())["data"][0]
    assert sent["z"]["dtype"] == sent["customdata"]["dtype"] == "f4"
    assert len(figure.to_json()) < 150_000


def test_a_picture_too_large_keeps_its_spikes_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_PIXELS", L * H * 3 * 3)
    weights = np.zeros((L, H, T, T), dtype=np.float32)
    weights[1, 2, 5, 4] = 1.0
    figure = overview.overview(weights, causal(T), scale=Scale.LINEAR, palette=LIGHT, selected=(0, 0), title="")
    indices, _, opacity = picture(figure)
    side = 3 + 2 * overview.GUTTER
    assert indices.shape == (L * side, H * side)
    assert np.argwhere(indices == overview.LEVELS - 1).tolist() == [[side + 2 + 1, 2 * side + 2 + 1]]
    assert figure.layout.title.subtitle.text == "Each pixel is the largest weight of 3 × 3 cells."
    assert opacity[indices[2, 2]] == 255


@pytest.mark.parametrize(
    ("shape", "selected", "outlier"),
    [
        ((L, H, T), (0, 0), None),
        ((L, H, T, T), (L, 0), None),
        ((L, H, T, T), (0, 0), T),
        ((0, H, T, T), (0, 0), None),
    ],
)
def test_overview_refuses_what_does_not_fit(
    shape: tuple[int, ...], selected: tuple[int, int], outlier: int | None
) -> None:
    with pytest.raises(InvalidInputError):
        overview.overview(
            np.zeros(shape), np.ones(shape, dtype=bool), scale=Scale.LINEAR, palette=LIGHT,
            selected=selected, title="", outlier=outlier,
        )  # fmt: skip


# Contextual mass


def test_the_collapse_line_is_the_one_that_the_metrics_use() -> None:
    assert pytest.approx(1 - metrics.COLLAPSE_WEIGHT) == mass.COLLAPSE_MASS
    assert mass.COLLAPSE_KEYS == metrics.COLLAPSE_KEYS


def test_mass_draws_each_model_with_its_own_colour_and_symbol() -> None:
    one, two = np.linspace(0, 1, T), np.full(T, 0.3)
    figure = mass.contextual_mass(
        {"softmax": (one, LIGHT.softmax), "SSA": (two, LIGHT.ssa)},
        LABELS,
        palette=LIGHT,
        title="m",
        outlier=4,
    )
    np.testing.assert_allclose(figure.data[0].y, one, rtol=1e-6)
    assert [line.line.color for line in figure.data] == [LIGHT.softmax, LIGHT.ssa]
    assert figure.data[0].marker.symbol != figure.data[1].marker.symbol
    assert figure.layout.yaxis.range == (-0.03, 1.03)
    line = shape_named(figure, "collapse")
    assert line.y0 == line.y1 == 0.1
    assert shape_named(figure, "injected").x0 == 4
    few = shape_named(figure, "few keys")
    assert (few.x0, few.x1) == (-0.6, 2.5)
    assert figure.layout.xaxis.tickvals == tuple(range(T))


def test_mass_of_one_token_and_of_none() -> None:
    figure = mass.contextual_mass({"a": (np.zeros(1), LIGHT.ssa)}, ["x"], palette=LIGHT, title="")
    assert shape_named(figure, "few keys").x1 == 0.5
    with pytest.raises(InvalidInputError, match="at least one"):
        mass.contextual_mass({}, [], palette=LIGHT, title="")
    with pytest.raises(InvalidInputError, match="must have 1 values"):
        mass.contextual_mass({"a": (np.zeros(2), LIGHT.ssa)}, ["x"], palette=LIGHT, title="")


def test_a_figure_keeps_its_size_when_its_data_change() -> None:
    sizes = set()
    for count in (1, 5, 83):
        figure = mass.contextual_mass(
            {"a": (np.zeros(count), LIGHT.ssa)}, ["x"] * count, palette=LIGHT, title="mass", height=300
        )
        margin = figure.layout.margin
        sizes.add((figure.layout.height, margin.l, margin.r, margin.t, margin.b))
    assert len(sizes) == 1


def test_a_long_title_takes_more_lines() -> None:
    long = "Answers for each prefix: Is every number so far positive?"
    figure = mass.contextual_mass({"a": (np.zeros(1), LIGHT.ssa)}, ["x"], palette=LIGHT, title=long)
    assert figure.layout.title.text.replace("<br>", " ") == long
    assert figure.layout.title.text.count("<br>") == 1
    assert figure.layout.meta["title"] == long


# Answers


def strip(**options: Any) -> go.Figure:
    rows = [
        predictions.AnswerRow("softmax", np.array([0.9, 0.93, 0.2, 0.5, 0.51]), LIGHT.softmax),
        predictions.AnswerRow("SSA", np.array([0.9, 0.1, 0.2, 0.7, 0.3]), LIGHT.ssa),
    ]
    return predictions.answers(rows, [1, 0, 0, 1, 0], list("aabbc"), palette=LIGHT, **options)


def test_wrong_answers_are_marked_by_colour_and_symbol() -> None:
    figure = strip(outlier=3)
    truth, right_one, wrong_one, right_two, wrong_two = figure.data
    assert list(truth.marker.symbol) == ["circle", "circle-open", "circle-open", "circle", "circle-open"]
    assert list(truth.text) == ["T", "F", "F", "T", "F"]
    assert (list(right_one.x), list(wrong_one.x)) == (
        [0, 2],
        [1, 3, 4],
    )  # exactly 0.5 is not above 0.5: False
    assert (list(right_two.x), list(wrong_two.x)) == ([0, 1, 2, 3, 4], [])
    assert set(wrong_one.y) == {1}
    assert wrong_one.marker.color == LIGHT.wrong
    assert wrong_one.marker.symbol == "square-x-open"
    assert set(right_one.text) == {"✓"}
    assert wrong_one.hovertext[0] == "after 1 · a<br>P(True) = 0.93, truth False: wrong"
    assert shape_named(figure, "injected").x0 == 2.5
    assert [LIGHT.softmax in name for name in figure.layout.yaxis.ticktext] == [False, True, False]


def test_many_answers_become_smaller_and_lose_their_letters() -> None:
    count = 83
    figure = predictions.answers([], np.ones(count), ["x"] * count, palette=LIGHT)
    assert figure.data[0].mode == "markers"
    assert figure.data[0].marker.size < strip().data[0].marker.size


def test_answers_refuse_what_is_no_probability() -> None:
    def draw(values: list[float], truth: list[int]) -> None:
        row = predictions.AnswerRow("softmax", np.array(values), LIGHT.softmax)
        predictions.answers([row], truth, ["a", "b"], palette=LIGHT)

    with pytest.raises(NonFiniteError, match="not a number"):
        draw([0.5, np.nan], [1, 0])
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        draw([0.5, 1.5], [1, 0])
    with pytest.raises(InvalidInputError, match="2 probabilities"):
        draw([0.5], [1, 0])
    with pytest.raises(InvalidInputError, match="truth"):
        draw([0.5, 0.5], [1])


# Linear task


def test_line_fit_draws_points_lines_and_the_injected_point() -> None:
    x = np.array([0.0, 1.0, 70.0, -1.0, 2.0])
    grid = np.linspace(-3, 3, 7)
    figure = line_fit.line_fit(
        x, 2 * x + 1, grid=grid, true=2 * grid + 1, predicted={"SSA": (grid**2, LIGHT.ssa)},
        palette=LIGHT, outlier=2, xrange=(-3, 3),
    )  # fmt: skip
    true, ssa, points, injected = figure.data
    np.testing.assert_allclose(true.y, [-5, -3, -1, 1, 3, 5, 7])
    assert true.line.dash == "dash"
    assert ssa.line.color == LIGHT.ssa
    assert list(points.x) == [0, 1, -1, 2]
    assert (list(injected.x), list(injected.y)) == ([70], [141])
    assert injected.marker.color == LIGHT.outlier
    assert figure.layout.title.subtitle.text == "1 point outside this view."
    low, high = figure.layout.yaxis.range
    assert -7 < low < -5
    assert 9 < high < 11


def test_line_fit_without_a_view_shows_everything() -> None:
    x = np.array([1.0, 2.0])
    figure = line_fit.line_fit(x, x, grid=x, true=x, predicted={}, palette=LIGHT)
    assert figure.layout.xaxis.range is None
    assert not figure.layout.title.subtitle.text
    with pytest.raises(InvalidInputError, match="as many x as y"):
        line_fit.line_fit(x, x[:1], grid=x, true=x, predicted={}, palette=LIGHT)
    with pytest.raises(InvalidInputError, match="grid"):
        line_fit.line_fit(x, x, grid=x, true=x[:1], predicted={}, palette=LIGHT)


def test_squared_errors_below_the_floor_are_drawn_on_it_and_hovered_exactly() -> None:
    errors = np.array([0.0, 1e-9, 0.25, 4.0, 1e-6])
    figure = line_fit.squared_errors({"SSA": (errors, LIGHT.ssa)}, list("aabbc"), palette=LIGHT, outlier=1)
    np.testing.assert_allclose(figure.data[0].y, [1e-6, 1e-6, 0.25, 4.0, 1e-6], rtol=1e-6)
    np.testing.assert_allclose(figure.data[0].customdata, errors, rtol=1e-6)
    assert figure.layout.yaxis.type == "log"
    assert "10⁻⁶" in figure.layout.title.subtitle.text


# Sweep


def test_sweep_marks_where_each_model_first_answers_wrong() -> None:
    values = np.logspace(0, 4, 5)
    figure = sweep(
        values,
        {"softmax": (values / 1e4, LIGHT.softmax), "SSA": (values / 2e4, LIGHT.ssa)},
        ytitle="largest weight", yrange=(0, 1), palette=LIGHT, title="w",
        first_wrong={"softmax": 23.7, "SSA": None}, current=70.0,
    )  # fmt: skip
    np.testing.assert_allclose(figure.data[0].x, values)
    np.testing.assert_allclose(figure.data[0].y, values / 1e4, rtol=1e-6)
    (tick,) = figure.data[2:]
    assert list(tick.x) == [23.7, 23.7]
    assert tick.y[0] == 0
    label, now = figure.layout.annotations
    assert label.text == "softmax wrong from 23.7"
    assert label.x == pytest.approx(1.3747, abs=1e-4)  # log₁₀ 23.7: an annotation counts in powers of ten
    assert now.x == pytest.approx(1.8451, abs=1e-4)
    assert shape_named(figure, "current").x0 == 70
    assert figure.layout.xaxis.type == "log"


def test_sweep_of_negative_values_is_drawn_over_their_size() -> None:
    values = -np.logspace(0, 4, 5)
    figure = sweep(
        values, {"SSA": (np.ones(5), LIGHT.ssa)}, ytitle="y", yrange=(0, 1), palette=LIGHT, title="",
        first_wrong={"SSA": -100.0}, current=70.0,
    )  # fmt: skip
    np.testing.assert_allclose(figure.data[0].x, -values)
    np.testing.assert_allclose(figure.data[0].customdata, values)
    assert "negative" in figure.layout.xaxis.title.text
    assert figure.layout.xaxis.ticktext[1] == "−10"
    assert figure.layout.annotations[0].text == "SSA wrong from −100"
    assert not figure.layout.shapes  # 70 is not on this axis


@pytest.mark.parametrize("values", [[], [1, -1], [0, 1], [1, np.inf], [1, np.nan]], ids=str)
def test_sweep_refuses_other_values(values: list[float]) -> None:
    with pytest.raises(InvalidInputError):
        sweep(np.array(values, dtype=float), {}, ytitle="", yrange=(0, 1), palette=LIGHT, title="")


def test_sweep_refuses_an_unknown_label() -> None:
    with pytest.raises(InvalidInputError, match="no curve is called 'b'"):
        sweep(
            np.array([1.0]), {"a": (np.array([1.0]), LIGHT.ssa)}, ytitle="", yrange=(0, 1), palette=LIGHT,
            title="", first_wrong={"b": 1.0},
        )  # fmt: skip


# Export


def rows_of(data: bytes) -> list[list[str]]:
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv_reader.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_csv_survives_awkward_text() -> None:
    texts = ["a,b", 'say "hi"', "two\nlines", " padded ", "−3", ""]
    assert [row[0] for row in rows_of(export.csv({"text": texts}))] == ["text", *texts]


@pytest.mark.parametrize("text", ["=1+1", "+A1", "-1+1|cmd", "@sum", "\t=1", " =1", "-inf", "＝1", '=",'])
def test_csv_defuses_formulas(text: str) -> None:
    assert rows_of(export.csv({"t": [text]}))[1] == ["'" + text]
    assert rows_of(export.csv({text: [1]}))[0] == ["'" + text]


@pytest.mark.parametrize("text", ["-3", "+0.5", "-1e-07", "-.5", "1=1", "a-b"])
def test_csv_leaves_numbers_and_harmless_text_alone(text: str) -> None:
    assert rows_of(export.csv({"t": [text]}))[1] == [text]


def test_csv_numbers_read_back_as_they_were() -> None:
    single = np.array([0.1, -1 / 3, 1e-30, 70], dtype=np.float32)
    double = np.array([0.1, -1 / 3, 1e-300, 70])
    _, *rows = rows_of(export.csv({"s": single, "d": double, "i": [1, 2, 3, 4], "n": [None] * 4}))
    assert rows[0] == ["0.1", "0.1", "1", ""]
    np.testing.assert_array_equal(np.array([row[0] for row in rows], dtype=np.float32), single)
    np.testing.assert_array_equal(np.array([row[1] for row in rows], dtype=np.float64), double)


def test_csv_refuses_ragged_columns() -> None:
    with pytest.raises(InvalidInputError, match="one length"):
        export.csv({"a": [1], "b": [1, 2]})
    with pytest.raises(InvalidInputError, match="one length"):
        export.csv({})


def test_attention_csv_has_one_row_per_visible_cell() -> None:
    logits, weights = softmax_rows((L, H, T, T), 17)
    header, *rows = rows_of(export.attention_csv(weights, logits, causal(T), ["=x", *LABELS[1:]]))
    assert header == ["layer", "head", "query", "query_label", "key", "key_label", "logit", "weight"]
    assert len(rows) == L * H * T * (T + 1) // 2
    seen = set()
    for row in rows:
        at = layer, head, query, key = (int(row[0]), int(row[1]), int(row[2]), int(row[4]))
        assert key <= query
        assert np.float32(row[6]) == logits[at]
        assert np.float32(row[7]) == weights[at]
        assert row[5] == ("'=x" if key == 0 else LABELS[key])
        seen.add((layer, head, query, key))
    assert len(seen) == len(rows)


def test_attention_csv_refuses_what_does_not_fit() -> None:
    weights = np.zeros((L, H, T, T))
    with pytest.raises(InvalidInputError, match="must both be"):
        export.attention_csv(weights, weights, causal(T), LABELS[1:])
    with pytest.raises(InvalidInputError, match="does not fit"):
        export.attention_csv(weights, weights, causal(T - 2), LABELS)


def test_html_holds_everything_it_needs() -> None:
    page = export.to_html(one_head(title="</title><script>x</script>", palette=DARK)).decode()
    head, _, body = page.partition("</head>")
    assert "&lt;/title&gt;&lt;script&gt;x" in head
    assert DARK.background in body[:80]
    assert "<script src" not in page
    assert "<link" not in page
    assert len(page) > 3_000_000  # plotly itself is inside
    assert '"displaylogo": false' in page


def test_chart_config_names_the_saved_picture() -> None:
    config = frame.chart_config("attention", "svg")
    assert config["displaylogo"] is False
    assert config["toImageButtonOptions"] == {"filename": "attention", "format": "svg", "scale": 1}
