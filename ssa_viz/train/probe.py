"""What a model in training makes of prompts that never change: how attention collapse can be watched as it appears."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssa_viz import metrics
from ssa_viz.model import Decoder
from ssa_viz.scoring import ScoringFunction
from ssa_viz.tasks import TASKS, Outlier, Prompts, Shift
from ssa_viz.train.config import TrainConfig

PROBE_SEED = 30_000  # neither a training seed nor the card's
PROBE_VALUE = 70.0
PROMPTS = 64  # held out, for each of the two errors


@dataclass(frozen=True)
class Probed:
    """One look at a model.

    Attributes:
        error: in distribution, mean over fixed held-out prompts.
        outlier_error: mean from an injected 70 in the middle of the same number of prompts on.
        largest_weight, contextual_mass: of the row whose query is the 70, in the shown sequence, mean over heads and
            layers.
        scoring: the scoring function's parameters, name → [layer][head].
        numbers: the shown sequence, N; its 70 stands at `position`.
        weights: attention over the shown sequence, (L, H, Q, K).
    """

    step: int
    error: float
    outlier_error: float
    largest_weight: float
    contextual_mass: float
    scoring: dict[str, list[list[float]]]
    numbers: NDArray[np.float32]
    position: int
    weights: NDArray[np.float16]


class Probe:
    """The prompts on which a run is looked at. They follow from the task and its length alone, so that the runs of a
    comparison, whatever their seed, are looked at on the same ones. The shown sequence is the first one with the 70."""

    def __init__(self, config: TrainConfig) -> None:
        self._task = TASKS[config.task]()
        self._position = config.length // 2
        generator = torch.Generator().manual_seed(PROBE_SEED)

        def prompts(shift: Shift) -> Prompts:
            return self._task.sample(PROMPTS, config.length, generator, prompt_format=config.prompt_format, shift=shift)

        self._plain = prompts(Shift(input_std=config.input_std))
        self._outlier = prompts(
            Shift(input_std=config.input_std, outlier=Outlier(PROBE_VALUE, self._position)),
        )

    @torch.no_grad()
    def look(self, model: Decoder, step: int) -> Probed:
        """Look at `model`, which stays in the mode it is in."""
        device = next(model.parameters()).device
        was_training = model.training
        model.eval()
        plain = self._errors(model, self._plain, device)
        outlier = self._errors(model, self._outlier, device)[:, self._position :]
        _, trace = model(self._outlier.tokens[:1].to(device), trace=True)
        model.train(was_training)
        assert trace is not None
        weights = trace.weights()[:, 0].float().cpu()  # (L, H, Q, K)
        row = weights[:, :, int(self._outlier.reads[self._position])]
        layers = [module.values() for module in model.modules() if isinstance(module, ScoringFunction)]
        return Probed(
            step=step,
            error=float(plain.mean()),
            outlier_error=float(outlier.mean()),
            largest_weight=float(metrics.largest_weight(row).mean()),
            contextual_mass=float(metrics.contextual_mass(row).mean()),
            scoring={name: [layer[name] for layer in layers] for name in layers[0]},
            numbers=self._outlier.numbers[0].numpy(),
            position=self._position,
            weights=weights.to(torch.float16).numpy(),
        )

    def _errors(self, model: Decoder, prompts: Prompts, device: torch.device) -> torch.Tensor:
        """The error of each answer, (B, N)."""
        predictions = model(prompts.tokens.to(device)).predictions.float().cpu()
        return self._task.error(predictions[:, prompts.reads], prompts.answers)
