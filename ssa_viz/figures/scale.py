"""How a weight becomes a place on the colour scale, which compared panels share and every figure states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError

FLOOR = 1e-6  # weights below it look alike on the log scale


class Scale(StrEnum):
    """What the colour of a weight is proportional to."""

    LINEAR = "linear"
    LOG = "log"
    ROW = "relative to the row's maximum"


@dataclass(frozen=True)
class Scaled:
    """Weights on a colour scale.

    Attributes:
        z: the place on the scale, float32, of the weights' shape; NaN where hidden or not finite.
        zmin, zmax: the ends of the scale; they never depend on the weights.
        tickvals, ticktext: what the colour bar is labelled with.
        title: what the colour bar says: the quantity and the scale.
        note: what the colours cannot show, as a sentence; empty if they show everything.
    """

    z: NDArray[np.float32]
    zmin: float
    zmax: float
    tickvals: tuple[float, ...]
    ticktext: tuple[str, ...]
    title: str
    note: str


def scaled(weights: NDArray[np.floating], visible: NDArray[np.bool_], scale: Scale) -> Scaled:
    """Put weights (…, Q, K) on a scale; `visible` has their shape or one that broadcasts to it.

    Linear is the weight itself, 0 to 1. Log is log₁₀ of the weight from 10⁻⁶ to 1; zero is drawn as 10⁻⁶.
    Relative to the row's maximum is w / max_k w over the visible keys, 0 to 1; a row of zeros stays 0.

    Raises:
        InvalidInputError: `visible` does not fit the weights.
    """
    weights = np.asarray(weights, dtype=np.float32)
    try:
        visible = np.broadcast_to(visible, weights.shape)
    except ValueError:
        raise InvalidInputError(f"visible {np.shape(visible)} does not fit weights {weights.shape}") from None
    drawn = visible & np.isfinite(weights)
    known = np.where(drawn, weights, np.float32(0.0))
    notes = []
    if broken := int(visible.sum() - drawn.sum()):
        notes.append(f"{broken} weight{'s' * (broken != 1)} not finite, left blank.")
    if scale is not Scale.ROW and known.size and (known.max() > 1 + 1e-5 or known.min() < -1e-5):
        notes.append("Weights outside 0 to 1 have the colour of the nearer end.")

    zmin, zmax = np.float32(0.0), np.float32(1.0)
    tickvals: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    ticktext: tuple[str, ...] = ("0", "0.25", "0.5", "0.75", "1")
    if scale is Scale.LINEAR:
        place, title = known, "weight, linear"
    elif scale is Scale.LOG:
        place = np.log10(np.maximum(known, np.float32(FLOOR)))
        zmin, zmax = np.float32(-6.0), np.float32(0.0)
        tickvals, ticktext = (-6.0, -4.0, -2.0, 0.0), ("≤10⁻⁶", "10⁻⁴", "10⁻²", "1")
        title = "weight, log (below 10⁻⁶ drawn as 10⁻⁶)"
    else:
        largest = known.max(axis=-1, keepdims=True, initial=0.0)
        place = np.divide(known, largest, out=np.zeros_like(known), where=largest > 0)
        title = f"weight, {Scale.ROW.value}"
    z = np.where(drawn, place, np.float32(np.nan)).astype(np.float32, copy=False)
    return Scaled(z, float(zmin), float(zmax), tickvals, ticktext, title, " ".join(notes))
