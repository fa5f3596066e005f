"""How well a model expects text: its loss a token, a byte and a word."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError
from ssa_viz.model.language import LanguageModel
from ssa_viz.text.batches import MASK_ID, START_ID
from ssa_viz.text.tokenizer import Tokenizer
from ssa_viz.text.words import words

TOKENS_AT_ONCE = 4096
GAP_EVERY = 7  # an encoder predicts every seventh token, seven times over, so that each is a gap once


@dataclass(frozen=True)
class Surprise:
    """Negative log-likelihood of a text, in nats, with what it is counted over.

    Attributes:
        nats: summed over all tokens.
        tokens, bytes, words: of the text; words are words, marks and line ends, as a word model counts them.
        exact: whether it is a likelihood (a decoder's), or a pseudo-likelihood, in which an encoder sees what comes
            after; the two cannot be compared.
    """

    nats: float
    tokens: int
    bytes: int
    words: int
    exact: bool

    @property
    def per_token(self) -> float:
        """Perplexity a token."""
        return math.exp(self.nats / self.tokens)

    @property
    def per_word(self) -> float:
        """Perplexity a word."""
        return math.exp(self.nats / self.words)

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / self.bytes


@torch.inference_mode()
def surprise(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str], *, length: int = 128) -> Surprise:
    """Measure a model on texts, cut into windows of `length` tokens, each after a <start>.

    A decoder's windows overlap by half, so that each token, but for a text's first ones, has at least half a window
    before it, and each counts once. An encoder's do not; it sees all others of the window but the gaps, every seventh
    token at a time.

    Raises:
        InvalidInputError: there is no text, or the window is longer than the model's context.
    """
    if not 2 <= length <= model.config.context:
        raise InvalidInputError(f"a window has from 2 to {model.config.context} tokens, not {length}")
    windows: list[tuple[list[int], int]] = []  # with how many tokens at the front were counted before
    size = length - 1
    overlap = size // 2 if model.config.causal else 0
    for text in texts:
        ids = tokenizer.encode(text)
        starts = range(0, max(len(ids) - overlap, min(len(ids), 1)), size - overlap)
        windows += [(ids[start : start + size], overlap if start else 0) for start in starts]
    if not windows:
        raise InvalidInputError("there is no text to measure on")
    nats, count = 0.0, 0
    alike: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    for window, counted in windows:  # those of one length go together, so that none needs padding
        alike[len(window), counted].append(window)
    for (size, counted), group in sorted(alike.items()):
        at_once = max(TOKENS_AT_ONCE // (size + 1), 1)
        for start in range(0, len(group), at_once):
            batch = torch.tensor([[START_ID, *window] for window in group[start : start + at_once]])
            nats += float(_decoded(model, batch, counted) if model.config.causal else _filled(model, batch))
            count += (size - counted) * len(batch)
    return Surprise(
        nats,
        count,
        sum(len(text.encode()) for text in texts),
        sum(len(line) for text in texts for line in words(text)),
        exact=model.config.causal,
    )


def _decoded(model: LanguageModel, batch: torch.Tensor, counted: int) -> torch.Tensor:
    logits = model(batch[:, :-1]).predictions[:, counted:]
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1 + counted :].flatten(), reduction="sum").double()


def _filled(model: LanguageModel, batch: torch.Tensor) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64)
    places = torch.arange(batch.shape[1]) - 1  # <start> is never a gap
    for offset in range(min(GAP_EVERY, batch.shape[1] - 1)):
        gap = ((places >= 0) & (places % GAP_EVERY == offset)).expand_as(batch)
        logits = model(batch.masked_fill(gap, MASK_ID), reads=gap).predictions
        total += F.cross_entropy(logits, batch[gap], reduction="sum").double()
    return total
