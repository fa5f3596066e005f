"""One byte-level BPE tokenizer for all language models: every text has tokens, and every token has readable words."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from ssa_viz.errors import InvalidInputError

START, PAD, MASK = "<start>", "<pad>", "<mask>"  # ids 0, 1, 2
SPECIAL = (START, PAD, MASK)
LEAST_VOCABULARY = 256 + len(SPECIAL)
MOST_CHARACTERS = 100_000  # of one text
SPACE = "·"  # shows a space at the beginning of a piece


@dataclass(frozen=True)
class Piece:
    """One token of a text.

    Attributes:
        id: in the vocabulary.
        label: what people read: a space at its beginning is `·`, a line end `⏎`, a part of a character its bytes in
            hexadecimal, a mark that combines with the letter before has a dotted circle under it.
        start, end: where its characters are in the text; equal for a token that ends no character.
    """

    id: int
    label: str
    start: int
    end: int


class Tokenizer:
    """Text to token ids and back, without loss.

    Args:
        document: the tokenizer's JSON, as `tokenizers` writes it.

    Raises:
        InvalidInputError: it is not such a document, or lacks the special tokens.
    """

    def __init__(self, document: str) -> None:
        try:
            self._inner = tokenizers.Tokenizer.from_str(document)
        except Exception as error:  # the library raises Exception itself
            raise InvalidInputError(f"this is not a tokenizer ({error})") from error
        # A special token's name that somebody types is text like any other.
        self._inner.encode_special_tokens = True
        for i, name in enumerate(SPECIAL):
            if self._inner.token_to_id(name) != i:
                raise InvalidInputError(f"the tokenizer has no {name} as its token {i}")
        self.document = document

    @property
    def vocabulary(self) -> int:
        """How many token ids there are."""
        return int(self._inner.get_vocab_size())

    @cached_property
    def sha256(self) -> str:
        """Of its document: models say which tokenizer they were trained with."""
        return hashlib.sha256(self.document.encode()).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without any special token; a special token's name in the text is plain characters.

        Raises:
            InvalidInputError: it is too long, or has a lone surrogate, which no file of text can hold.
        """
        return [int(id_) for id_ in self._encoded(text).ids]

    def pieces(self, text: str) -> list[Piece]:
        """The tokens of a text with what people read for each.

        Raises:
            InvalidInputError: as `encode`.
        """
        found = self._encoded(text)
        return [
            Piece(int(id_), self.label(int(id_)), int(start), int(end))
            for id_, (start, end) in zip(found.ids, found.offsets, strict=True)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that make no character become �. Special tokens are left out.

        Raises:
            InvalidInputError: an id is outside the vocabulary.
        """
        given = list(ids)
        for id_ in given:
            self._check(id_)
        return str(self._inner.decode(given, skip_special_tokens=True))

    def label(self, id_: int) -> str:
        """What people read for a token.

        Raises:
            InvalidInputError: the id is outside the vocabulary.
        """
        self._check(id_)
        if id_ < len(SPECIAL):
            return SPECIAL[id_]
        content = _bytes_of(str(self._inner.id_to_token(id_)))
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            return " ".join(f"{byte:02X}" for byte in content)
        return readable(text)

    def _check(self, id_: int) -> None:
        if not 0 <= id_ < self.vocabulary:
            raise InvalidInputError(f"token {id_} is outside the vocabulary of 0 to {self.vocabulary - 1}")

    def _encoded(self, text: str) -> tokenizers.Encoding:
        if len(text) > MOST_CHARACTERS:
            raise InvalidInputError(f"the text has {len(text):,} characters, more than the {MOST_CHARACTERS:,} allowed")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidInputError(
                f"character {error.start + 1} is half of a surrogate pair, which is no text; remove it"
            ) from None
        return self._inner.encode(text, add_special_tokens=False)


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """A byte-level BPE of `vocabulary` tokens, the 256 bytes and three special ones among them.

    Raises:
        InvalidInputError: so few tokens that not even all bytes have one.
    """
    if vocabulary < LEAST_VOCABULARY:
        raise InvalidInputError(f"a vocabulary has at least {LEAST_VOCABULARY} tokens, not {vocabulary}")
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    return Tokenizer(inner.to_str())


def readable(text: str) -> str:
    """A piece of text so that it can stand alone: spaces, line ends and control characters visible, marks on a circle.

    Right-to-left letters are set apart (Unicode's isolates), so that they do not turn what stands beside them.
    """
    shown = []
    for i, character in enumerate(text):
        if character == " ":
            shown.append(SPACE)
        elif character == "\n":
            shown.append("⏎")
        elif character == "\t":
            shown.append("⇥")
        elif unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp"):
            shown.append(f"U+{ord(character):04X}")
        elif unicodedata.combining(character) and i == 0:
            shown.append(f"◌{character}")
        else:
            shown.append(character)
    joined = "".join(shown)
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in text):
        return f"\u2068{joined}\u2069"
    return joined


def _byte_characters() -> dict[str, int]:
    """The character that stands for each byte in a byte-level vocabulary, as GPT-2 chose them."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return {chr(byte): byte for byte in kept} | {chr(256 + i): byte for i, byte in enumerate(others)}


BYTE_OF = _byte_characters()


def _bytes_of(token: str) -> bytes:
    return bytes(BYTE_OF[character] for character in token)
