"""A text as the tokens that a model reads, with what people read for each."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace

from ssa_viz.errors import InvalidInputError
from ssa_viz.text.batches import MASK_ID, START_ID
from ssa_viz.text.tokenizer import MASK, START, Tokenizer


@dataclass(frozen=True)
class Sentence:
    """The tokens that a model reads, <start> first.

    Attributes:
        ids: in the vocabulary, T of them.
        labels: what people read for each.
        cut: how many tokens of the text did not fit and are left out at its end.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
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
        len(pieces) - len(kept),
    )
