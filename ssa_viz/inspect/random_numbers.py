"""Sequences to look at, drawn as the models' training prompts are."""

from __future__ import annotations

import torch

from ssa_viz.tasks import TASKS, Shift

DECIMALS = 2


def random_numbers(task_name: str, length: int, seed: int) -> tuple[float, ...]:
    """A sequence in distribution, rounded to two decimals so that people can read it.

    Raises:
        UnknownNameError: there is no such task.
    """
    generator = torch.Generator().manual_seed(seed)
    numbers, _ = TASKS[task_name]().draw(1, length, Shift(), generator)
    return tuple(round(value, DECIMALS) + 0.0 for value in numbers[0].tolist())
