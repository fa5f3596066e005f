"""What somebody scores who always gives the same answer: the floor under every error on a yes-or-no task."""

from __future__ import annotations

from typing import Any

import torch

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.card import CARD_SEED, FRACTIONS, INJECTED, SEQUENCES, WIDER
from ssa_viz.evaluate.measure import CHUNK
from ssa_viz.tasks import TASKS, Outlier, Shift


def constant_card(
    task_name: str, prompt_format: str, length: int, *, answer: bool, sequences: int = SEQUENCES
) -> dict[str, Any]:
    """The errors on a card, for a constant `answer`, on the very prompts that cards are measured on.

    Raises:
        InvalidInputError: the task asks no yes-or-no question.
        UnknownNameError: there is no such task.
    """
    task = TASKS[task_name]()
    if not task.boolean:
        raise InvalidInputError(f"task {task_name!r} has no constant answer to compare with")

    def on(shift: Shift) -> tuple[torch.Tensor, torch.Tensor]:
        """The errors, and where an earlier number had settled the answer, (B, N) each."""
        generator = torch.Generator().manual_seed(CARD_SEED)
        found, settled = [], []
        for start in range(0, sequences, CHUNK):  # as `measure` draws them
            count = min(CHUNK, sequences - start)
            prompts = task.sample(count, length, generator, prompt_format=prompt_format, shift=shift)
            said = torch.full_like(prompts.answers, 1.0 if answer else -1.0)
            found.append(task.error(said, prompts.answers))
            already = task.settled(prompts.numbers)
            settled.append(torch.ones_like(said, dtype=torch.bool) if already is None else already)
        return torch.cat(found).double(), torch.cat(settled)

    def mean(shift: Shift) -> float:
        return float(on(shift)[0].mean())

    positions = sorted({min(length - 1, int(length * fraction)) for fraction in FRACTIONS})

    def injected(value: float) -> dict[str, float]:
        start, at = [], []
        for position in positions:
            errors, settled = on(Shift(outlier=Outlier(value, position)))
            start.append(float(errors[:, position:].mean()))
            at.append(float(errors[:, position][settled[:, position]].mean()))
        return {"from": sum(start) / len(start), "at_settled": sum(at) / len(at)}

    return {
        "in_distribution": mean(Shift()),
        "wider_inputs": {f"{std:g}": mean(Shift(input_std=std)) for std in WIDER},
        "injected": {f"{value:g}": injected(value) for value in INJECTED},
    }
