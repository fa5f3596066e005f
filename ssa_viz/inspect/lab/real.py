"""A row of logits as a model computed it."""

from __future__ import annotations

from ssa_viz.errors import InvalidInputError
from ssa_viz.inspect.lab.chosen import MOST_KEYS
from ssa_viz.inspect.reading import Reading


def from_reading(reading: Reading, layer: int, head: int, query: int) -> list[float]:
    """The logits of a query's visible keys, in their order; the last `MOST_KEYS` of them if there are more.

    Raises:
        InvalidInputError: there is no such layer, head or query.
    """
    layers, heads, queries, _ = reading.logits.shape
    for name, index, count in (("layer", layer, layers), ("head", head, heads), ("query", query, queries)):
        if not 0 <= index < count:
            raise InvalidInputError(f"{name} must be from 0 to {count - 1}, not {index}")
    seen = reading.logits[layer, head, query][reading.visible[query]]
    return [float(x) for x in seen[-MOST_KEYS:]]
