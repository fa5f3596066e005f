"""The training loop."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.model import Decoder, build
from ssa_viz.tasks import TASKS
from ssa_viz.train.config import TrainConfig

FINAL_FRACTION = 0.1  # of the peak learning rate, at the last step


@dataclass(frozen=True)
class Progress:
    """Means over the steps since the last event: loss, error, and norm of the gradient before clipping."""

    step: int
    loss: float
    error: float
    gradient_norm: float


@dataclass(frozen=True)
class Finished:
    """The trained model, in eval mode."""

    model: Decoder


def train(config: TrainConfig, *, every: int = 100) -> Iterator[Progress | Finished]:
    """Train, yielding a `Progress` each `every` steps and `Finished` at the end.

    The global random state is neither read nor changed. Stop by not asking for the next event.

    Raises:
        InvalidInputError: `every` is below 1.
        NonFiniteError: the loss became NaN or infinite; the message says at which step.
    """
    if every < 1:
        raise InvalidInputError(f"progress can be told every 1 or more steps, not every {every}")
    task = TASKS[config.task]()
    model = build(config.model, config.seed).train()
    # A stream of its own, so that a change to the model does not change the data that the seed stands for.
    data = torch.Generator().manual_seed(config.seed + 2**32)
    optimizer = torch.optim.AdamW(_groups(model, config.weight_decay), lr=config.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(step, config))
    sums = torch.zeros(3)
    since = 0
    for step in range(1, config.steps + 1):
        prompts = task.sample(config.batch, config.length, data, prompt_format=config.prompt_format)
        predictions = model(prompts.tokens).predictions[:, prompts.reads]
        loss = task.loss(predictions, prompts.answers).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            sums += torch.stack([loss.detach(), task.error(predictions, prompts.answers).mean(), norm])
        since += 1
        if step % every == 0 or step == config.steps:
            mean = (sums / since).tolist()
            if not all(math.isfinite(value) for value in mean):
                raise NonFiniteError(f"the loss became NaN or infinite by step {step}; try a lower learning rate")
            yield Progress(step, *mean)
            sums, since = torch.zeros(3), 0
    yield Finished(model.eval())


def learning_rate_factor(step: int, config: TrainConfig) -> float:
    """The learning rate at `step` (0-based) as a fraction of the peak: linear warm-up, then a cosine."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    return FINAL_FRACTION + (1 - FINAL_FRACTION) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def _groups(model: nn.Module, weight_decay: float) -> list[dict[str, list[Tensor] | float]]:
    """Parameters in two groups, matrices with weight decay and everything else without."""
    parameters = list(model.parameters())
    return [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
