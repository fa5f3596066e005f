"""One language model's run: its whole state, one step of it, and its loss on text that it does not learn from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.model.language import LanguageModel, build_language
from ssa_viz.text.batches import Blocks, gaps
from ssa_viz.train.devices import device_named
from ssa_viz.train.language.config import LanguageRun

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps for each parameter
VALIDATION_BATCHES = 16
VALIDATION_SEED = 50_000


@dataclass(frozen=True)
class LanguageProgress:
    """Means over the steps since the last one: loss in nats a token, norm of the gradient before clipping.

    `validation` is the loss on text that nothing is learned from; for an encoder at its gaps.
    """

    step: int
    loss: float
    gradient_norm: float
    validation: float


class LanguageTraining:
    """A run that goes on step by step, from its beginning or from a saved state.

    On one CPU a run that is continued from a state has, bit for bit, the weights of one that was never interrupted.
    Which tokens a step sees follows from the seed and the step alone, so every scoring function sees the same.

    Args:
        training, validation: token ids in a row.
        device: a name as `ssa_viz.train.devices` lists it.

    Raises:
        InvalidInputError: there is no such device, or too little text.
    """

    def __init__(
        self,
        run: LanguageRun,
        training: NDArray[np.uint16],
        validation: NDArray[np.uint16],
        *,
        device: str = "cpu",
    ) -> None:
        self.run = run
        self.device = device_named(device)
        self.step = 0  # steps done
        self.model: LanguageModel = build_language(run.model, run.seed).train().to(self.device)
        self.blocks = Blocks(training, run.length, run.batch, run.seed)
        batch = min(run.batch, _most(validation, run.length))
        self._validation = Blocks(validation, run.length, batch, VALIDATION_SEED)
        matrices = [p for p in self.model.parameters() if p.ndim >= 2]
        others = [p for p in self.model.parameters() if p.ndim < 2]
        groups = [{"params": matrices, "weight_decay": run.weight_decay}, {"params": others, "weight_decay": 0.0}]
        fused = self.device.type != "mps"
        self._optimizer = torch.optim.AdamW(groups, lr=run.learning_rate, betas=(0.9, 0.98), fused=fused)
        self._sums = torch.zeros(2, device=self.device)  # of loss and gradient norm
        self._since = 0

    @property
    def done(self) -> bool:
        return self.step >= self.run.steps

    def advance(self) -> None:
        """Train for one step."""
        for group in self._optimizer.param_groups:
            group["lr"] = self.run.learning_rate_at(self.step)
        loss = self._loss(self.blocks.at(self.step), self.run.seed, self.step)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.run.clip)
        self._optimizer.step()
        with torch.no_grad():
            self._sums += torch.stack([loss.detach(), norm])
        self._since += 1
        self.step += 1

    def progress(self) -> LanguageProgress:
        """What happened since the last call, which must be at least one step ago.

        Raises:
            NonFiniteError: the loss became NaN or infinite.
        """
        loss, norm = (self._sums / max(1, self._since)).tolist()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise NonFiniteError(f"the loss became NaN or infinite by step {self.step}; try a lower learning rate")
        self._sums.zero_()
        self._since = 0
        return LanguageProgress(self.step, loss, norm, self.validation_loss())

    @torch.no_grad()
    def validation_loss(self) -> float:
        """Mean loss in nats a token on the same blocks, with the same gaps, each time."""
        count = min(VALIDATION_BATCHES, self._validation.steps_per_epoch)
        self.model.eval()
        losses = [float(self._loss(self._validation.at(i), VALIDATION_SEED, i)) for i in range(count)]
        self.model.train()
        return sum(losses) / count

    def tensors(self) -> dict[str, Tensor]:
        """Everything that the steps to come depend on besides the run and the step, copied to the CPU.

        Raises:
            NonFiniteError: there is a NaN or an infinity in it.
        """
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            moments = self._optimizer.state.get(parameter, {})
            found.update({f"{moment}.{name}": moments[moment] for moment in MOMENTS if moment in moments})
        for name, tensor in found.items():
            if not torch.isfinite(tensor).all():
                raise NonFiniteError(f"by step {self.step} {name} has NaN or infinity in it; try a lower learning rate")
        return {name: tensor.detach().cpu().clone() for name, tensor in found.items()}

    def restore(self, step: int, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a state.

        Raises:
            InvalidInputError: it is not one of this run's.
        """
        own = self.model.state_dict()
        parameters = dict(self.model.named_parameters())
        shapes = {f"model.{name}": tensor.shape for name, tensor in own.items()}
        for name, parameter in parameters.items() if step else ():
            shapes |= {f"step.{name}": torch.Size()} | {f"{m}.{name}": parameter.shape for m in MOMENTS[1:]}
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes or not 0 <= step <= self.run.steps:
            raise InvalidInputError("the saved state is not one of this run's")
        self.model.load_state_dict({name: tensors[f"model.{name}"] for name in own})
        for name, parameter in parameters.items() if step else ():
            moments = {m: tensors[f"{m}.{name}"].clone() for m in MOMENTS}
            self._optimizer.state[parameter] = {m: tensor.to(self.device) for m, tensor in moments.items()}
        self.step = step

    def _loss(self, blocks: Tensor, seed: int, step: int) -> Tensor:
        """Mean loss in nats over the predicted tokens of blocks (B, T + 1)."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.run.precision == "bfloat16"):
            if self.run.model.causal:
                given, truth = blocks[:, :-1].to(self.device), blocks[:, 1:].to(self.device)
                logits = self.model(given).predictions.flatten(0, 1)
                return F.cross_entropy(logits.float(), truth.flatten())
            tokens = blocks[:, :-1]
            holed, reads = gaps(tokens, self.run.masking, self.run.model.vocabulary, seed, step)
            logits = self.model(holed.to(self.device), reads=reads.to(self.device)).predictions
            return F.cross_entropy(logits.float(), tokens[reads].to(self.device))


def _most(stream: NDArray[np.uint16], length: int) -> int:
    """How many blocks the validation text fills, so that a small one makes one small batch."""
    return max(1, (len(stream) - 1 - length) // length)
