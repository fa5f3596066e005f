"""One row of logits and what a scoring function makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.inspect.lab.chosen import Chosen, checked, weigh
from ssa_viz.scoring import SCORING


@dataclass(frozen=True)
class Row:
    """One query's row over K keys, all of them visible.

    Attributes:
        logits, weights: float64, (K,).
        total: Σ w, 1 for most functions.
        largest_weight: max w.
        strongest: the key that has it, the first one of equals; None if every weight is 0.
        contextual_mass: the weight on all keys but that one, added up by itself and so exact when it is tiny. For rows
            that sum to 1 it is 1 − max w.
        nowhere: the weight that goes to no key, 1 − Σ w, where that is part of the function; else 0.
        entropy, effective_tokens: of w / Σ w, in nats, and its exponential; 0 for an empty row.
        collapsed: largest weight above 0.9 with 4 or more keys.
    """

    logits: NDArray[np.float64]
    weights: NDArray[np.float64]
    total: float
    largest_weight: float
    strongest: int | None
    contextual_mass: float
    nowhere: float
    entropy: float
    effective_tokens: float
    collapsed: bool


@torch.no_grad()
def row(chosen: Chosen, logits: Sequence[float]) -> Row:
    """What the scoring function makes of one row's logits.

    Raises:
        InvalidInputError: no logit, more than `MOST_KEYS`, or one that is too large.
        NonFiniteError: a logit is NaN or infinite.
    """
    given = checked(logits)
    weights = weigh(chosen.build(), given[None])[0]
    total = float(weights.sum())
    empty = total == 0
    share = weights if empty else weights / total
    return Row(
        logits=given.numpy(),
        weights=weights.numpy(),
        total=total,
        largest_weight=float(metrics.largest_weight(weights)),
        strongest=None if empty else int(weights.argmax()),
        contextual_mass=float(metrics.mass_on_others(weights)),
        nowhere=max(0.0, 1.0 - total) if SCORING[chosen.scoring].row_sum in ("at most one", "one or zero") else 0.0,
        entropy=0.0 if empty else float(metrics.entropy(share)),
        effective_tokens=0.0 if empty else float(metrics.effective_tokens(share)),
        collapsed=bool(metrics.collapsed(weights, torch.ones_like(weights, dtype=torch.bool))),
    )
