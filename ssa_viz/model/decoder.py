"""The whole decoder, in the order in which it computes: embed → blocks of attention (and MLP) → read out."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ssa_viz.errors import InvalidInputError
from ssa_viz.model.attention import Attention
from ssa_viz.model.config import ModelConfig
from ssa_viz.model.trace import LayerTrace, Trace
from ssa_viz.scoring import SCORING, ScoringFunction

INITIAL_STD = 0.02  # GPT-2's


class Output(NamedTuple):
    """Predictions (B, T), and the trace if it was asked for."""

    predictions: Tensor
    trace: Trace | None


class Block(nn.Module):
    """One layer: attention, then for the `transformer` variant an MLP, each added to the residual stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        full = config.variant == "transformer"
        self.attention_norm = nn.LayerNorm(config.width) if full else nn.Identity()
        self.attention = Attention(config.width, scoring_of(config))
        self.mlp: nn.Module | None = None
        if full:
            self.mlp = nn.Sequential(
                nn.LayerNorm(config.width),
                nn.Linear(config.width, 4 * config.width),
                nn.GELU(),
                nn.Linear(4 * config.width, config.width),
            )

    def forward(self, residual: Tensor, visible: Tensor, places: Tensor) -> tuple[Tensor, Tensor, LayerTrace]:
        """The residual stream after this layer, what the attention alone wrote to it, and the layer's trace."""
        written, trace = self.attention(self.attention_norm(residual), visible, places)
        residual = residual + written
        if self.mlp is not None:
            residual = residual + self.mlp(residual)
        return residual, written, trace


class Decoder(nn.Module):
    """A causal decoder from a sequence of numbers to one prediction per token.

    Args:
        config: what to build. Build through `build` to have the starting weights follow from a seed.
    """

    causal: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.read_in = nn.Linear(1, config.width)
        self.position = nn.Embedding(config.context, config.width) if config.positions == "learned" else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        full = config.variant == "transformer"
        self.final_norm = nn.LayerNorm(config.width) if full else nn.Identity()
        self.read_out = nn.Linear(config.width, 1)
        causal = torch.ones(config.context, config.context, dtype=torch.bool).tril()
        self.register_buffer("causal", causal, persistent=False)

    def forward(
        self, numbers: Tensor, *, real: Tensor | None = None, alternatives: int = 1, trace: bool = False
    ) -> Output:
        """Predict from every prefix.

        Args:
            numbers: the input sequence, (B, T).
            real: boolean (B, T), False where a token is padding; padding is hidden as a key. None: no padding.
            alternatives: how many tokens at the end are alternatives of one another. They share the position after
                the T − alternatives tokens before them, and each sees those and itself: many sequences that differ
                in their last token only, in one pass. 1 is an ordinary sequence.
            trace: keep what was computed on the way.

        Returns:
            Predictions (B, T) (a logit of True for the quantifiers, a number for `linear`), and the trace or None.

        Raises:
            InvalidInputError: the shape is not (B, T), T is below `alternatives` or 1, or the sequence is longer than
                the context.
        """
        tokens = numbers.shape[-1] if numbers.ndim else 0
        shared = tokens - alternatives
        if numbers.ndim != 2 or alternatives < 1 or not 0 <= shared < self.config.context:
            raise InvalidInputError(
                f"expected numbers of shape (batch, 1 to {self.config.context} tokens, the {alternatives} alternatives "
                f"at the end counted once), got {tuple(numbers.shape)}"
            )
        visible = self.causal[:tokens, :tokens]
        if alternatives > 1:
            visible = torch.ones(tokens, tokens, dtype=torch.bool, device=numbers.device).tril()
            visible[shared:, shared:] = torch.eye(alternatives, dtype=torch.bool, device=numbers.device)
        if real is not None:
            visible = visible & real[:, None, None, :]
        residual = self.read_in(numbers[..., None])
        places = torch.arange(tokens, device=numbers.device).clamp(max=shared)
        if self.position is not None:
            residual = residual + self.position(places)
        stream, layers = [residual], []
        written = residual
        for block in self.blocks:
            residual, written, layer = block(residual, visible, places)
            if trace:
                stream.append(residual)
                layers.append(layer)
        answer = written if self.config.readout == "attention" else residual
        predictions = self.read_out(self.final_norm(answer)).squeeze(-1)
        traced = Trace(tuple(layers), tuple(stream), visible, predictions) if trace else None
        return Output(predictions, traced)


def scoring_of(config: ModelConfig) -> ScoringFunction:
    """A layer's scoring function."""
    return SCORING[config.scoring](config.heads, initial=config.initial, learnable=config.learnable)


def build(config: ModelConfig, seed: int) -> Decoder:
    """A decoder whose starting weights follow from `seed` alone; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Decoder(config)
        if config.init == "gpt2":
            _start_as_gpt2(model)
    return model


def _start_as_gpt2(model: Decoder) -> None:
    writes = model.config.layers * (2 if model.config.variant == "transformer" else 1)
    for name, parameter in model.named_parameters():
        if name == "read_in.weight":
            nn.init.normal_(parameter)
        elif name.endswith(("attention.out.weight", "mlp.3.weight")):
            nn.init.normal_(parameter, std=INITIAL_STD / math.sqrt(writes))
        elif parameter.ndim == 2:
            nn.init.normal_(parameter, std=INITIAL_STD)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
