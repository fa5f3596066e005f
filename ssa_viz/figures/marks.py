"""What is drawn over a figure's data: lines, frames, bands and words, such as the injected value's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ssa_viz.figures.palette import Palette, faded

Span = tuple[float, float]


@dataclass
class Marks:
    """Collects plotly's shapes and annotations; each has a name by which it is found in the figure."""

    shapes: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)

    def shape(self, name: str, kind: str, x: Span, y: Span, **style: Any) -> None:
        """A line or rect from x[0], y[0] to x[1], y[1] on the figure's axes, unless `style` names others."""
        ends = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
        self.shapes.append({"name": name, "type": kind, "xref": "x", "yref": "y", **ends, **style})

    def text(self, name: str, text: str, x: float, y: float, colour: str, **style: Any) -> None:
        """Words at x, y on the figure's axes, unless `style` names others."""
        at = {"x": x, "y": y, "xref": "x", "yref": "y", "showarrow": False}
        self.annotations.append({"name": name, "text": text, **at, "font": {"size": 11, "color": colour}, **style})

    def pointer(self, name: str, text: str, x: float, y: float, colour: str, *, right: bool, **style: Any) -> None:
        """Words above x, y with a triangle over it; `right` if it stands near the right edge."""
        self.text(
            name, f"{text} ▼" if right else f"▼ {text}", x, y, colour,
            xanchor="right" if right else "left", xshift=6 if right else -6, yanchor="bottom", **style,
        )  # fmt: skip

    def injected_line(self, outlier: int | None, palette: Palette, count: int) -> None:
        """A vertical accent line at the injected one of `count` tokens, with its name above."""
        if outlier is not None:
            line = {"color": palette.outlier, "width": 1.5}
            self.shape("injected", "line", (outlier, outlier), (0, 1), yref="paper", line=line, layer="between")
            self.injected_name(outlier, palette, count, y=1, yref="paper")

    def injected_name(
        self, outlier: int, palette: Palette, count: int, *, y: float, yref: str, text: str = "injected"
    ) -> None:
        """A word above the injected one of `count` tokens."""
        right = outlier > (count - 1) / 2
        self.pointer("injected", text, outlier, y, palette.outlier, right=right, yref=yref)

    def band(self, name: str, x: Span, colour: str, **style: Any) -> None:
        """A light band over the whole height."""
        style = {"line": {"width": 0}, "fillcolor": faded(colour, 0.1), "layer": "below", **style}
        self.shape(name, "rect", x, (0, 1), yref="paper", **style)
