"""Two sentences of one model: which heads look elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ssa_viz.inspect.sentences.view import SentenceReading


def moved(first: SentenceReading, second: SentenceReading) -> NDArray[np.float32] | None:
    """How much weight each head moves between two sentences of equally many tokens, (L, H); None for others.

    Half of the absolute difference of two rows, from 0 (the same) to 1 (on other tokens altogether) where rows sum to
    1, averaged over the rows.
    """
    if len(first.sentence.ids) != len(second.sentence.ids):
        return None
    difference = np.abs(first.weights - second.weights).sum(axis=-1)
    return np.asarray(0.5 * difference.mean(axis=-1), dtype=np.float32)
