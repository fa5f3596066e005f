"""A text as the tokens that a model reads, with what people read for each."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ssa_viz.errors import InvalidInputError
from ssa_viz.text.batches import MASK_ID, START_ID
from ssa_viz.text.tokenizer import MASK, START, Tokenizer

WAYS = ("key", "embedding")


@dataclass(frozen=True)
class Loud:
    """One token made to shout.

    Attributes:
        token: its place.
        factor: what its keys in every layer, or its embedding, are multiplied by.
        way: `key` or `embedding`.
    """

    token: int
    factor: float
    way: str = "key"

    def scales(self, count: int) -> dict[str, Tensor]:
        """The model's arguments for it, in a sentence of `count` tokens.

        Raises:
            InvalidInputError: there is no such token, way or factor.
        """
        if self.way not in WAYS or not 0 <= self.token < count or not 0 < self.factor < float("inf"):
            raise InvalidInputError(
                f"one of {count} tokens can shout by its key or its embedding and a factor above 0, not {self}"
            )
        scale = torch.ones(1, count)
        scale[0, self.token] = self.factor
        return {f"{self.way}_scale": scale}


def scales_of(loud: Loud | None, count: int) -> dict[str, Tensor]:
    """`loud.scales`, or nothing where no token shouts."""
    return {} if loud is None else loud.scales(count)


@dataclass(frozen=True)
class Sentence:
    """The tokens that a model reads, <start> first.

    Attributes:
        ids: in the vocabulary, T of them.
        labels: what people read for each.
        ends: where in the text each ends, in characters; 0 for <start>.
        cut: how many tokens of the text did not fit and are left out at its end.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    ends: tuple[int, ...]
    cut: int = 0

    def masked(self, place: int) -> Sentence:
        """The same with a gap at `place`.

        Raises:
            InvalidInputError: there is no such place, or it is <start>'s.
        """
        if not 1 <= place < len(self.ids):
            raise InvalidInputError(f"a gap can be at 1 to {len(self.ids) - 1}, not at {place}")
        ids, labels = list(self.ids), list(self.labels)
        ids[place], labels[place] = MASK_ID, MASK
        return replace(self, ids=tuple(ids), labels=tuple(labels))

    @property
    def punctuation(self) -> tuple[int, ...]:
        """The places whose token is marks alone."""
        return tuple(
            i
            for i, label in enumerate(self.labels)
            if i and (bare := label.strip("·")) and all(unicodedata.category(c).startswith("P") for c in bare)
        )


def sentence_tokens(tokenizer: Tokenizer, text: str, context: int) -> Sentence:
    """The tokens of a text, as many as a model of this context reads.

    Raises:
        InvalidInputError: the text is empty or only spaces, too long, or no text.
    """
    if not text.strip():
        raise InvalidInputError("there is no word in this text; type a sentence")
    pieces = tokenizer.pieces(text)
    kept = pieces[: context - 1]
    return Sentence(
        (START_ID, *(piece.id for piece in kept)),
        (START, *(piece.label for piece in kept)),
        (0, *(piece.end for piece in kept)),
        len(pieces) - len(kept),
    )


def with_word(text: str, sentence: Sentence, place: int, word: str) -> str:
    """The text with `word` after the token at `place`, set apart by spaces.

    Raises:
        InvalidInputError: there is no such place.
    """
    if not 0 <= place < len(sentence.ends):
        raise InvalidInputError(f"a word can come after one of tokens 0 to {len(sentence.ends) - 1}, not {place}")
    before, after = text[: sentence.ends[place]], text[sentence.ends[place] :]
    left = "" if not before or before[-1].isspace() else " "
    right = "" if not after or after[0].isspace() or unicodedata.category(after[0]).startswith("P") else " "
    return f"{before}{left}{word}{right}{after}"


def word_at(text: str, sentence: Sentence, place: int) -> str:
    """The text of the whole word that the token at `place` is a part of; empty for <start>.

    Raises:
        InvalidInputError: there is no such place.
    """
    if not 0 <= place < len(sentence.ends):
        raise InvalidInputError(f"the sentence has tokens 0 to {len(sentence.ends) - 1}, not {place}")
    end = sentence.ends[place]
    words = [found for found in re.finditer(r"\S+", text) if found.start() < end <= found.end()]
    return words[0].group() if place and words else ""
