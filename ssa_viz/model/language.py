"""Two small language models on the same attention: a decoder that writes and an encoder that fills gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError
from ssa_viz.model.attention import Attention
from ssa_viz.model.config import MAX_CONTEXT, MAX_HEADS, MAX_LAYERS, MAX_WIDTH
from ssa_viz.model.trace import LayerTrace, Trace
from ssa_viz.scoring import SCORING

KINDS = ("decoder", "encoder")
POSITIONS = ("rotary", "learned")
MAX_VOCABULARY = 65_536
INITIAL_STD, AT_WIDTH = 0.02, 768  # GPT-2's and RoBERTa's; what reads a narrower stream starts larger by √(768 / E)


@dataclass(frozen=True)
class LanguageConfig:
    """A language model over token ids.

    Attributes:
        kind: `decoder`, of Nemotron's shape: causal, RMSNorm before each part, squared ReLU, no biases, embeddings that
            read in and out. `encoder`, of RoBERTa's: sees both ways, LayerNorm after each part, GELU, biases, a head of
            its own before the embeddings read out.
        positions: `rotary`, which turns queries and keys, or `learned`, added to the embeddings as RoBERTa has them. An
            encoder with learned ones needs far more text before it looks at neighbours at all (docs/language.md).
        layers, heads, width: L, H and E.
        groups: heads of keys and values, each shared by H / groups heads of queries.
        hidden: width of the MLP.
        context: the most tokens that it reads.
        vocabulary: V, how many token ids there are.
        scoring, initial, learnable: as `ModelConfig` has them.

    Raises:
        InvalidInputError, UnknownNameError: on construction, for a combination that cannot be built.
    """

    kind: str = "decoder"
    positions: str = "rotary"
    layers: int = 4
    heads: int = 4
    groups: int = 4
    width: int = 128
    hidden: int = 512
    context: int = 256
    vocabulary: int = 4096
    scoring: str = "softmax"
    initial: Mapping[str, float] = field(default_factory=dict)
    learnable: Mapping[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInputError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.positions not in POSITIONS:
            raise InvalidInputError(f"positions must be one of {', '.join(POSITIONS)}, not {self.positions!r}")
        for name, size, most in (
            ("layers", self.layers, MAX_LAYERS),
            ("heads", self.heads, MAX_HEADS),
            ("groups", self.groups, self.heads),
            ("width", self.width, MAX_WIDTH),
            ("hidden", self.hidden, 4 * MAX_WIDTH),
            ("context", self.context, MAX_CONTEXT),
            ("vocabulary", self.vocabulary, MAX_VOCABULARY),
        ):
            if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= most:
                raise InvalidInputError(f"{name} must be a whole number from 1 to {most}, not {size!r}")
        if self.width % self.heads or self.heads % self.groups:
            raise InvalidInputError(
                f"width ({self.width}) must be a multiple of heads ({self.heads}), and these of groups ({self.groups})"
            )
        SCORING[self.scoring](1, initial=self.initial, learnable=self.learnable)

    @property
    def causal(self) -> bool:
        return self.kind == "decoder"


class LanguageOutput(NamedTuple):
    """Logits of the next token or of the token itself, (B, T, V) or (N, V), and the trace if it was asked for."""

    predictions: Tensor
    trace: Trace | None


class LanguageBlock(nn.Module):
    """One layer: attention, then an MLP, each added to the residual stream; norms before (decoder) or after."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        decoder = config.causal
        scoring = SCORING[config.scoring](config.heads, initial=config.initial, learnable=config.learnable)
        self.before = decoder
        self.attention_norm = _norm(config)
        rotary = config.positions == "rotary"
        self.attention = Attention(config.width, scoring, groups=config.groups, rotary=rotary, bias=not decoder)
        self.mlp_norm = _norm(config)
        self.read = nn.Linear(config.width, config.hidden, bias=not decoder)
        self.write = nn.Linear(config.hidden, config.width, bias=not decoder)

    def forward(
        self, residual: Tensor, visible: Tensor, places: Tensor, key_scale: Tensor | None
    ) -> tuple[Tensor, LayerTrace]:
        """The residual stream after this layer, and the layer's trace."""
        if self.before:
            written, trace = self.attention(self.attention_norm(residual), visible, places, key_scale=key_scale)
            residual = residual + written
            return residual + self.write(F.relu(self.read(self.mlp_norm(residual))).square()), trace
        written, trace = self.attention(residual, visible, places, key_scale=key_scale)
        residual = self.attention_norm(residual + written)
        return self.mlp_norm(residual + self.write(F.gelu(self.read(residual)))), trace


class LanguageModel(nn.Module):
    """From token ids to a prediction at every token: the next one (decoder) or the one that was there (encoder).

    Args:
        config: what to build. Build through `build_language` to have the starting weights follow from a seed.
    """

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        decoder = config.causal
        learned = config.positions == "learned"
        self.position = nn.Embedding(config.context, config.width) if learned else None
        self.embedding_norm = nn.Identity() if decoder else nn.LayerNorm(config.width)
        self.blocks = nn.ModuleList(LanguageBlock(config) for _ in range(config.layers))
        self.final_norm = nn.RMSNorm(config.width) if decoder else nn.Identity()
        self.head = nn.Identity() if decoder else _Head(config.width)
        self.read_out_bias = None if decoder else nn.Parameter(torch.zeros(config.vocabulary))

    def forward(
        self,
        tokens: Tensor,
        *,
        real: Tensor | None = None,
        reads: Tensor | None = None,
        embedding_scale: Tensor | None = None,
        key_scale: Tensor | None = None,
        trace: bool = False,
    ) -> LanguageOutput:
        """Predict at every token.

        Args:
            tokens: ids, (B, T).
            real: boolean (B, T), False where a token is padding; padding is hidden as a key.
            reads: boolean (B, T), the tokens to predict at; None: all. The predictions are then (N, V), row by row.
            embedding_scale, key_scale: factors on each token's embedding, or on its keys in every layer, (B, T): what
                makes a token shout. None for 1.
            trace: keep what was computed on the way.

        Raises:
            InvalidInputError: the shape is not (B, T), an id is not in the vocabulary, or there are more tokens than
                the context.
        """
        config = self.config
        count = tokens.shape[-1] if tokens.ndim == 2 else 0
        if not 1 <= count <= config.context:
            raise InvalidInputError(
                f"expected tokens of shape (batch, 1 to {config.context} tokens), got {tuple(tokens.shape)}"
            )
        if (
            tokens.device.type == "cpu"
            and tokens.numel()
            and not 0 <= int(tokens.min()) <= int(tokens.max()) < config.vocabulary
        ):
            raise InvalidInputError(f"a token id is outside the vocabulary of 0 to {config.vocabulary - 1}")
        visible = torch.ones(count, count, dtype=torch.bool, device=tokens.device)
        if config.causal:
            visible = visible.tril()
        if real is not None:
            visible = visible & real[:, None, None, :]
        places = torch.arange(count, device=tokens.device)
        residual = self.embedding(tokens)
        if embedding_scale is not None:
            residual = residual * embedding_scale[..., None]
        if self.position is not None:
            residual = residual + self.position(places)
        residual = self.embedding_norm(residual)
        stream, layers = [residual], []
        for block in self.blocks:
            residual, layer = block(residual, visible, places, key_scale)
            if trace:
                stream.append(residual)
                layers.append(layer)
        answer = residual if reads is None else residual[reads]
        predictions = F.linear(self.head(self.final_norm(answer)), self.embedding.weight, self.read_out_bias)
        traced = Trace(tuple(layers), tuple(stream), visible, predictions) if trace else None
        return LanguageOutput(predictions, traced)


class _Head(nn.Module):
    """What RoBERTa has between its last layer and the embeddings that read out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(F.gelu(self.dense(x)))
        return normed


def build_language(config: LanguageConfig, seed: int) -> LanguageModel:
    """A model whose starting weights follow from `seed` alone; the global random state is left as it was.

    Embeddings are normal with standard deviation 0.02, the other matrices with 0.02 · √(768 / E), which gives logits of
    the same size at any width; a decoder's that write to the residual stream are divided by √(2 L).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LanguageModel(config)
        for name, parameter in model.named_parameters():
            if "raw_" in name:
                continue
            if parameter.ndim == 2:
                writes = config.causal and name.endswith(("attention.out.weight", "write.weight"))
                embeds = name in ("embedding.weight", "position.weight")
                std = INITIAL_STD * (1.0 if embeds else math.sqrt(AT_WIDTH / config.width))
                nn.init.normal_(parameter, std=std / (math.sqrt(2 * config.layers) if writes else 1.0))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
    return model


def _norm(config: LanguageConfig) -> nn.Module:
    return nn.RMSNorm(config.width) if config.causal else nn.LayerNorm(config.width)
