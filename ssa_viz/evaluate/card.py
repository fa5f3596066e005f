"""The fixed set of measurements that every checkpoint's card carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ssa_viz.evaluate.measure import Measures, measure
from ssa_viz.model import Decoder
from ssa_viz.tasks import TASKS, Outlier, Shift
from ssa_viz.train import TrainConfig

CARD_SEED = 20_000  # of the test prompts; training seeds stay far below it
SEQUENCES = 1024
WIDER = (2.0, 5.0, 10.0, 20.0)
INJECTED = (70.0, -70.0, 1000.0)
FRACTIONS = (0.25, 0.5, 0.75)  # where in the sequence a value is injected


def card(model: Decoder, config: TrainConfig, *, sequences: int = SEQUENCES) -> dict[str, Any]:
    """Everything on a checkpoint's card, as plain JSON numbers.

    Errors are shares of wrong answers for the quantifiers and mean squared errors for `linear`. Injected values
    replace the number at a quarter, half and three quarters of the sequence, each on fresh prompts from one seed,
    and the three are averaged.
    """

    def on(shift: Shift) -> Measures:
        return measure(
            model,
            config.task,
            config.prompt_format,
            length=config.length,
            sequences=sequences,
            seed=CARD_SEED,
            shift=shift,
        )

    plain = on(Shift())
    numbers: dict[str, Any] = {
        "sequences": sequences,
        "seed": CARD_SEED,
        "length": config.length,
        "in_distribution": plain.error,
        "in_distribution_by_position": plain.by_position.tolist(),
        "wider_inputs": {f"{std:g}": on(Shift(input_std=std)).error for std in WIDER},
        "injected": {f"{value:g}": _injected(on, value, config.length) for value in INJECTED},
    }
    if not TASKS[config.task].boolean:
        numbers["wider_functions"] = {f"{std:g}": on(Shift(function_std=std)).error for std in WIDER}
    return numbers


def _injected(on: Callable[[Shift], Measures], value: float, length: int) -> dict[str, Any]:
    """Means over the injected positions; the weights are those of the row whose query is the injected value."""
    positions = sorted({min(length - 1, int(length * fraction)) for fraction in FRACTIONS})
    results = [on(Shift(outlier=Outlier(value, position))) for position in positions]
    largest = np.mean([r.largest_weight for r in results if r.largest_weight is not None], axis=0)
    return {
        "positions": positions,
        "at": _mean(r.at for r in results),
        "at_settled": _mean(r.at_settled for r in results),
        "after": _mean(r.after for r in results),
        "from": _mean(r.start for r in results),
        "largest_weight": float(largest.mean()),
        "largest_weight_by_layer": largest.mean(axis=1).tolist(),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    """Mean of those that exist; None if none does."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
