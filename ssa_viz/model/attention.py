"""Multi-head self-attention, the same for every model here, with a pluggable scoring function."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssa_viz.errors import InvalidInputError
from ssa_viz.model.trace import LayerTrace
from ssa_viz.scoring import ScoringFunction


class Attention(nn.Module):
    """It always forms its logits and weights: there is no faster path to disagree.

    Args:
        width: E, of the residual stream.
        scoring: logits to weights; it says how many heads H there are.
        groups: how many heads of keys and values there are, each shared by H / groups queries' heads; H unless stated.
        rotary: turn queries and keys by their places (`rotated`).
        bias: of both projections.

    Raises:
        InvalidInputError: the width is no multiple of the heads, or these none of the groups.
    """

    def __init__(
        self,
        width: int,
        scoring: ScoringFunction,
        *,
        groups: int | None = None,
        rotary: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        heads = scoring.heads
        groups = heads if groups is None else groups
        if width % heads or groups < 1 or heads % groups:
            raise InvalidInputError(f"{heads} heads do not divide a width of {width}, or {groups} groups not them")
        self.heads, self.groups, self.head_width, self.rotary = heads, groups, width // heads, rotary
        self.qkv = nn.Linear(width, (heads + 2 * groups) * self.head_width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.scoring = scoring

    def forward(
        self, x: Tensor, visible: Tensor, places: Tensor, *, key_scale: Tensor | None = None
    ) -> tuple[Tensor, LayerTrace]:
        """What it writes to the residual stream (B, T, E), and its trace.

        Args:
            x: (B, T, E).
            visible: boolean, broadcasts to (B, H, Q, K).
            places: each token's position in the sequence, (T,).
            key_scale: a factor on each token's keys, (B, T), to test what a louder key does; None for 1.
        """
        batch, tokens, width = x.shape
        qkv = self.qkv(x).view(batch, tokens, self.heads + 2 * self.groups, self.head_width).transpose(1, 2)
        query = qkv[:, : self.heads]  # (B, H, T, D)
        key, value = qkv[:, self.heads : self.heads + self.groups], qkv[:, self.heads + self.groups :]
        if self.rotary:
            query, key = rotated(query, places), rotated(key, places)
        if key_scale is not None:
            key = key * key_scale[:, None, :, None]
        if self.groups < self.heads:
            key, value = (each.repeat_interleave(self.heads // self.groups, dim=1) for each in (key, value))
        logits = self.scoring.logits(query, key, places)  # (B, H, Q, K)
        weights = self.scoring(logits, visible)
        heads = weights @ value  # (B, H, Q, D)
        merged = heads.transpose(1, 2).reshape(batch, tokens, width)
        return self.out(merged), LayerTrace(logits, weights, heads, self.scoring.implementation(logits))


ROTARY_BASE = 10_000.0


def rotated(x: Tensor, places: Tensor) -> Tensor:
    """Vectors (B, H, T, D) with pairs of coordinates (i, i + D/2) turned by place · base^(−2i/D).

    The product of a turned query and a turned key depends on the difference of their places alone. An odd last
    coordinate stays.

    Source: Su et al. 2021, "RoFormer", https://arxiv.org/abs/2104.09864, with the halves paired as in GPT-NeoX.
    """
    half = x.shape[-1] // 2
    rates = ROTARY_BASE ** (-torch.arange(half, device=x.device, dtype=torch.float32) / max(half, 1))
    angles = places[:, None].float() * rates  # (T, D/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([first * cos - second * sin, first * sin + second * cos, rest], dim=-1)
