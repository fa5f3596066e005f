"""The colours of every figure, light and dark. A scoring function has one colour wherever it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


# On a light and on a dark page. Relatives share a hue: exponentials are warm like softmax, functions with a sink are
# violet, sparse ones green, those of one key alone blue and grey.
FAMILIES = {
    "temperature": ("#a8431f", "#ff9270"),
    "adaptive_temperature": ("#8d6a00", "#ecca62"),
    "ssmax": ("#7a4a33", "#d2a07f"),
    "softmax_plus_one": ("#7a4cb8", "#b99af0"),
    "sink": ("#4f3fa8", "#9b98fb"),
    "softpick": ("#96519e", "#e0a8ea"),
    "sparsemax": ("#2c7f52", "#6cc795"),
    "entmax15": ("#4e7a1c", "#a8d66b"),
    "entmax": ("#1d6d62", "#55c9bd"),
    "sa_softmax": ("#6f6a0e", "#cbc75a"),
    "sigmoid": ("#566577", "#a3b1c2"),
    "relu": ("#34539e", "#8ea9ff"),
    "cosformer": ("#9a3b5e", "#f08aab"),
}


@dataclass(frozen=True)
class Palette:
    """CSS colours, `#rrggbb` except where said.

    Attributes:
        dark: whether the colours are meant for a dark page.
        background: any CSS colour; what lies behind the figure and shows through hidden cells.
        ink, muted, grid: text, quieter text and marks, lines.
        softmax, ssa: the two functions that every page compares.
        others: further scoring functions, by index.
        outlier: marks the injected value.
        wrong, right: answers.
        sequential: stops of the weights' scale at even steps, from 0 to the largest. Its lightness changes by
            even steps too, so that equal differences look equal, also without colour vision.
        diverging: stops for differences, softmax's colour at one end, SSA's at the other.
    """

    dark: bool
    background: str
    ink: str
    muted: str
    grid: str
    softmax: str
    ssa: str
    others: tuple[str, ...]
    outlier: str
    wrong: str
    right: str
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]

    def scoring(self, name: str, index: int = 0) -> str:
        """The colour of the scoring function `name`; one without its own takes the `index`-th of `others`."""
        own = {"softmax": self.softmax, "ssa": self.ssa}
        own |= {function: colours[self.dark] for function, colours in FAMILIES.items()}
        return own.get(name, self.others[index % len(self.others)])


LIGHT = Palette(
    dark=False,
    background="#ffffff",
    ink="#1d2433",
    muted="#667085",
    grid="#e6e9ef",
    softmax="#bd6200",
    ssa="#0b7699",
    others=("#7a4cb8", "#2c7f52", "#8a5a3c", "#566577", "#7d7a12"),
    outlier="#c61583",
    wrong="#cc2827",
    right="#667085",
    sequential=(
        "#ebf5fa", "#c0e3f4", "#95cfef", "#72b9e8", "#5ca0dd", "#4b87d2",
        "#456fbc", "#3f57a6", "#36418c", "#2b2e70", "#1f1c55",
    ),
    diverging=(
        "#8f4a00", "#bd6200", "#dc9a55", "#f1d2b0", "#f5f5f5", "#b5dae6", "#5fa9c4", "#0b7699", "#08546d",
    ),
)  # fmt: skip

DARK = Palette(
    dark=True,
    background="#0e1117",
    ink="#e8ebf2",
    muted="#9aa4b5",
    grid="#2a3040",
    softmax="#f4a34b",
    ssa="#4ac2e3",
    others=("#b99af0", "#6cc795", "#d2a07f", "#a3b1c2", "#cbc75a"),
    outlier="#f779ba",
    wrong="#fa6863",
    right="#9aa4b5",
    sequential=(
        "#1f2030", "#2a3050", "#344173", "#395692", "#3a6dab", "#3786c3",
        "#3fa0d2", "#4db9e0", "#6fd1e9", "#9de6f1", "#c8f9fc",
    ),
    diverging=(
        "#ffc98a", "#f4a34b", "#a86d2d", "#573d24", "#22252e", "#1d4553", "#2f7f97", "#4ac2e3", "#a5e6f7",
    ),
)  # fmt: skip


def palette(dark: bool, background: str | None = None) -> Palette:
    """The light or the dark palette, on the given background if the page has its own."""
    chosen = DARK if dark else LIGHT
    return chosen if background is None else replace(chosen, background=background)


def colorscale(stops: tuple[str, ...]) -> list[tuple[float, str]]:
    """Plotly's form of a colour scale from stops at even steps."""
    return [(i / (len(stops) - 1), stop) for i, stop in enumerate(stops)]


def table(stops: tuple[str, ...], count: int) -> NDArray[np.uint8]:
    """`count` colours at even steps along the scale, mixed as plotly mixes them, (count, 3)."""
    rgb = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops], dtype=np.float64)
    at, known = np.linspace(0, 1, count), np.linspace(0, 1, len(stops))
    mixed = np.stack([np.interp(at, known, channel) for channel in rgb.T], axis=1)
    levels: NDArray[np.uint8] = np.rint(mixed).astype(np.uint8)
    return levels


def faded(colour: str, alpha: float) -> str:
    """A `#rrggbb` colour made see-through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha:g})"
