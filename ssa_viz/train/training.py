"""One run's whole state, and one step of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch import distributed as ranks
from torch.nn.parallel import DistributedDataParallel

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.model import Decoder, build
from ssa_viz.model.decoder import Output
from ssa_viz.tasks import TASKS, Shift
from ssa_viz.train.config import TrainConfig
from ssa_viz.train.devices import device_named
from ssa_viz.train.state import TrainingState

FINAL_FRACTION = 0.1  # of the peak learning rate, at the last step
MOST_LENGTHS = 64  # that are compiled
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps for each parameter


@dataclass(frozen=True)
class Progress:
    """Means over the steps since the last one: loss, error, and norm of the gradient before clipping.

    `learning_rate` and `length` (numbers in a prompt) are those of the last step.
    """

    step: int
    loss: float
    error: float
    gradient_norm: float
    learning_rate: float
    length: int


class Training:
    """A run that goes on step by step, from its beginning or from a saved state.

    On one CPU a run that is continued from a state has, bit for bit, the weights and the progress of one that was
    never interrupted. Nothing here reads or changes the global random state.

    Under `torchrun` every process draws the whole batch and trains on its share of the rows, so that the data do not
    depend on how many there are.

    Args:
        device: a name as `ssa_viz.train.devices` lists it.
        state: where to go on from; None starts at step 0.
        compiled: let `torch.compile` fuse the model and, on a GPU, record its launches in CUDA graphs. It changes the
            last bits of the result, and costs a minute for each length of prompts.

    Raises:
        InvalidInputError: there is no such device, the state belongs to another config, or the batch cannot be shared
            equally among the processes.
    """

    def __init__(
        self, config: TrainConfig, *, device: str = "cpu", state: TrainingState | None = None, compiled: bool = False
    ) -> None:
        self.config = config
        self.device = device_named(device)
        self.step = 0  # steps done
        self.model: Decoder = build(config.model, config.seed).train().to(self.device)
        self._task = TASKS[config.task]()
        self._shift = Shift(input_std=config.input_std)
        # A stream of its own, so that a change to the model does not change the data that the seed stands for.
        self._data = torch.Generator(self.device).manual_seed(config.seed + 2**32)
        self._optimizer = torch.optim.AdamW(
            _groups(self.model, config.weight_decay), lr=config.learning_rate, fused=self.device.type != "mps"
        )
        self._sums = torch.zeros(3, device=self.device)  # of loss, error and gradient norm
        self._since = 0  # steps in the sums
        self._shared = ranks.is_available() and ranks.is_initialized()
        self._rows = _own_rows(config.batch) if self._shared else slice(None)
        if state is not None:
            self._restore(state)
        forward: nn.Module = DistributedDataParallel(self.model) if self._shared else self.model
        self._forward: Callable[[Tensor], Output] = _compiled(forward, self.device) if compiled else forward

    @property
    def done(self) -> bool:
        return self.step >= self.config.steps

    def advance(self) -> None:
        """Train for one step."""
        config = self.config
        for group in self._optimizer.param_groups:
            group["lr"] = config.learning_rate * learning_rate_factor(self.step, config)
        prompts = self._task.sample(
            config.batch,
            config.length_at(self.step),
            self._data,
            prompt_format=config.prompt_format,
            shift=self._shift,
        )
        tokens, answers = prompts.tokens[self._rows], prompts.answers[self._rows]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            predictions = self._forward(tokens).predictions[:, prompts.reads].float()
        loss = self._task.loss(predictions, answers).mean()
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        self._optimizer.step()
        with torch.no_grad():
            self._sums += torch.stack([loss.detach(), self._task.error(predictions, answers).mean(), norm])
        self._since += 1
        self.step += 1

    def progress(self) -> Progress:
        """What happened since the last call, which must be at least one step ago.

        Raises:
            NonFiniteError: the loss became NaN or infinite; the message says by which step.
        """
        mean = self._sums / self._since
        if self._shared:
            ranks.all_reduce(mean)
            mean /= ranks.get_world_size()
        loss, error, norm = mean.tolist()
        if not all(math.isfinite(value) for value in (loss, error, norm)):
            raise NonFiniteError(f"the loss became NaN or infinite by step {self.step}; try a lower learning rate")
        self._sums.zero_()
        self._since = 0
        last = self.step - 1
        rate = self.config.learning_rate * learning_rate_factor(last, self.config)
        return Progress(self.step, loss, error, norm, rate, self.config.length_at(last))

    def state(self) -> TrainingState:
        """Everything that the steps to come depend on, copied.

        Raises:
            NonFiniteError: there is a NaN or an infinity in it, so that going on from it would be no use.
        """
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            moments = self._optimizer.state.get(parameter, {})
            tensors.update({f"{moment}.{name}": moments[moment] for moment in MOMENTS if moment in moments})
        tensors["sums"] = self._sums
        tensors["data"] = self._data.get_state()
        for name, tensor in tensors.items():
            if not torch.isfinite(tensor).all():
                raise NonFiniteError(f"by step {self.step} {name} has NaN or infinity in it; try a lower learning rate")
        copies = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
        return TrainingState(self.config, self.step, self._since, copies)

    def _restore(self, state: TrainingState) -> None:
        if state.config != self.config:
            raise InvalidInputError("the saved state belongs to a run with other settings")
        tensors = dict(state.tensors)
        self.model.load_state_dict({name: tensors[f"model.{name}"] for name in self.model.state_dict()})
        for name, parameter in self.model.named_parameters():
            if f"step.{name}" in tensors:
                self._optimizer.state[parameter] = {
                    moment: tensors[f"{moment}.{name}"].clone().to(self.device) for moment in MOMENTS
                }
        self._sums = tensors["sums"].clone().to(self.device)
        try:
            self._data.set_state(tensors["data"])
        except RuntimeError:
            raise InvalidInputError(f"the saved state was made on another kind of device than {self.device}") from None
        self.step, self._since = state.step, state.since


def _compiled(model: nn.Module, device: torch.device) -> Callable[[Tensor], Output]:
    """The model through PyTorch's compiler, with CUDA graphs on a GPU, where launching a small model's many kernels
    would take longer than they do."""
    # A curriculum has one length after the other, each compiled once; beyond the limit they would not be.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MOST_LENGTHS)
    graphs = {"mode": "reduce-overhead"} if device.type == "cuda" else {"backend": "aot_eager"}
    return torch.compile(model, dynamic=False, **graphs)  # type: ignore[call-overload, no-any-return]


def learning_rate_factor(step: int, config: TrainConfig) -> float:
    """The learning rate at `step` (0-based) as a fraction of the peak: linear warm-up, then the schedule."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = min(1.0, (step - config.warmup) / max(1, config.steps - config.warmup))
    if config.schedule == "constant":
        return 1.0
    if config.schedule == "linear":
        return FINAL_FRACTION + (1 - FINAL_FRACTION) * (1 - done)
    return FINAL_FRACTION + (1 - FINAL_FRACTION) * 0.5 * (1 + math.cos(math.pi * done))


def _groups(model: nn.Module, weight_decay: float) -> list[dict[str, list[Tensor] | float]]:
    """Parameters in two groups, matrices with weight decay and everything else without."""
    parameters = list(model.parameters())
    return [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]


def _own_rows(batch: int) -> slice:
    """This process's rows of a batch."""
    count, rank = ranks.get_world_size(), ranks.get_rank()
    if batch % count:
        raise InvalidInputError(f"a batch of {batch} cannot be shared equally by {count} processes; change one of them")
    share = batch // count
    return slice(rank * share, (rank + 1) * share)
