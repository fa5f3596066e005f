"""All layers and heads in one picture: one image, since what costs in many small heatmaps is their axes."""

from __future__ import annotations

import base64

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.figures import png
from ssa_viz.figures.color_axis import color_axis
from ssa_viz.figures.frame import axis, check_position, framed, trace
from ssa_viz.figures.marks import Marks
from ssa_viz.figures.palette import Palette, table
from ssa_viz.figures.scale import Scale, scaled

LEVELS = 64  # colours in the picture: steps of 1.6%, too small to see; more of them would not compress
MARGIN = (40, 14, 52, 60)
HOVER = "L%{customdata[0]} H%{customdata[1]} · largest weight %{customdata[2]:.4g}<extra></extra>"
GUTTER = 2  # pixels around each tile
MOST_PIXELS = 720_000  # of all tiles; holds 12 × 8 heads of 82 × 82


def overview(
    weights: NDArray[np.floating],
    visible: NDArray[np.bool_],
    *,
    scale: Scale,
    palette: Palette,
    selected: tuple[int, int],
    title: str,
    outlier: int | None = None,
    show_colorbar: bool = True,
    height: int = 340,
) -> go.Figure:
    """Weights (L, H, Q, K) as one image, a tile per head: layers down (y), heads across (x).

    Each tile has an invisible point at its centre with customdata [layer, head, largest weight]; it is the
    nearest to a click wherever in the tile that falls. `selected` (layer, head) is framed; `outlier` is a key
    whose column gets a mark above and below each tile. Tiles too big for the picture are drawn smaller: each
    pixel then is the largest of a block of cells, never their mean, and the subtitle says so.

    Raises:
        InvalidInputError: shapes that do not fit, or a selected head or position that is not there.
    """
    weights = np.asarray(weights, dtype=np.float32)
    if weights.ndim != 4 or 0 in weights.shape:
        raise InvalidInputError(f"an overview needs weights (layers, heads, queries, keys), not {weights.shape}")
    layers, heads, _, keys = weights.shape
    layer, head = selected
    if not (0 <= layer < layers and 0 <= head < heads):
        raise InvalidInputError(f"L{layer} H{head} is not among {layers} layers and {heads} heads")
    check_position(outlier, keys)

    placed = scaled(weights, visible, scale)
    block = _block(weights.shape)
    image, pixels_down, pixels_across = _image(placed.z, placed.zmin, placed.zmax, block, outlier)
    hidden, mark = np.zeros((1, 3), np.uint8), table((palette.outlier, palette.outlier), 1)
    colours = np.concatenate([table(palette.sequential, LEVELS), hidden, mark])
    source = "data:image/png;base64," + base64.b64encode(png.encode(image, colours, LEVELS)).decode()

    places = [(i, j) for i in range(layers) for j in range(heads)]
    shown = np.broadcast_to(visible, weights.shape) & np.isfinite(weights)
    largest = np.where(shown, weights, np.float32(0)).max(axis=(2, 3))
    centres = trace(
        "scatter",
        name="heads",
        x=[j for _, j in places],
        y=[i for i, _ in places],
        customdata=[[i, j, round(float(largest[i, j]), 4)] for i, j in places],
        mode="markers",
        marker={
            "symbol": "square",
            "size": max(6, int(0.9 * min((height - 150) / layers, 280 / heads))),
            "opacity": 0,
            "color": [0.0] * len(places),
            "coloraxis": "coloraxis",
        },
        # Selecting must not dim the others: they are all invisible, and stay so.
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate=HOVER,
        showlegend=False,
    )
    picture = trace(
        "image",
        source=source,
        x0=-0.5 + 0.5 / pixels_across,
        dx=1 / pixels_across,
        y0=-0.5 + 0.5 / pixels_down,
        dy=1 / pixels_down,
        hoverinfo="skip",
    )
    pooled = f"Each pixel is the largest weight of {block} × {block} cells." if block > 1 else ""
    marks = Marks()
    own = {"color": palette.ink, "width": 2}
    marks.shape("selected", "rect", (head - 0.5, head + 0.5), (layer - 0.5, layer + 0.5), line=own)
    return framed(
        [picture, centres],
        palette,
        title=title,
        subtitle=" ".join(part for part in (pooled, placed.note) if part),
        height=height,
        margin=MARGIN,
        marks=marks,
        meta={"figure": "overview", "scale": placed.title, "outlier": outlier, "selected": [layer, head]},
        hoverdistance=-1,  # the nearest point however far: tiles are equal, so it is that of the tile
        coloraxis=color_axis(
            palette,
            palette.sequential,
            ends=(placed.zmin, placed.zmax),
            ticks=(placed.tickvals, placed.ticktext),
            title=placed.title,
            show=show_colorbar,
            height=height,
            margin=MARGIN,
        ),
        xaxis=axis(
            palette,
            tickvals=list(range(heads)),
            ticktext=[f"H{j}" for j in range(heads)],
            range=[-0.5, heads - 0.5],
            showgrid=False,
            constrain="domain",
            constraintoward="left",
            side="top",
            ticks="",
            showline=False,
        ),
        yaxis=axis(
            palette,
            tickvals=list(range(layers)),
            ticktext=[f"L{i}" for i in range(layers)],
            range=[layers - 0.5, -0.5],
            showgrid=False,
            constrain="domain",
            constraintoward="top",
            scaleanchor="x",
            ticks="",
            showline=False,
        ),
    )


def _block(shape: tuple[int, ...]) -> int:
    """Side of the square of cells that one pixel stands for."""
    layers, heads, queries, keys = shape
    block = 1
    while layers * heads * -(-queries // block) * -(-keys // block) > MOST_PIXELS:
        block += 1
    return block


def _image(
    z: NDArray[np.float32], low: float, high: float, block: int, outlier: int | None
) -> tuple[NDArray[np.uint8], int, int]:
    """Palette indices of all tiles with their gutters (L·down, H·across); also down and across."""
    layers, heads, queries, keys = z.shape
    level = np.clip((z - low) * np.float32((LEVELS - 1) / (high - low)), 0, LEVELS - 1)
    hidden = np.isnan(level)
    # Shown levels are 1 … LEVELS while pooling, so that hidden, 0, loses to any of them.
    level = np.where(hidden, np.float32(0), np.rint(level) + 1).astype(np.uint8)
    if block > 1:
        down, across = -queries % block, -keys % block
        level = np.pad(level, ((0, 0), (0, 0), (0, down), (0, across)))
        level = level.reshape(layers, heads, level.shape[2] // block, block, level.shape[3] // block, block)
        level = level.max(axis=(3, 5))
    rows, columns = level.shape[2:]
    down, across = rows + 2 * GUTTER, columns + 2 * GUTTER
    tiles = np.full((layers, down, heads, across), LEVELS, dtype=np.uint8)
    inner = np.where(level == 0, np.uint8(LEVELS), level - np.uint8(1))
    tiles[:, GUTTER:-GUTTER, :, GUTTER:-GUTTER] = inner.transpose(0, 2, 1, 3)
    if outlier is not None:
        column = GUTTER + outlier // block
        tiles[:, :GUTTER, :, column] = tiles[:, -GUTTER:, :, column] = LEVELS + 1
    return tiles.reshape(layers * down, heads * across), down, across
