"""What a language model sees at each step: the same for every scoring function, from a seed and the step alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssa_viz.errors import InvalidInputError
from ssa_viz.text.tokenizer import Tokenizer

START_ID, PAD_ID, MASK_ID = 0, 1, 2


@dataclass(frozen=True)
class Masking:
    """How gaps are made for an encoder.

    Attributes:
        share: of the tokens that are to be predicted.
        masked, random: of those, the shares that are replaced by <mask> and by any token; the rest stays as it is.
            BabyBERTa never has it predict a token that it can see: 0.9 and 0.1, where BERT has 0.8, 0.1 and 0.1.

    Raises:
        InvalidInputError: shares that are none.
    """

    share: float = 0.15
    masked: float = 0.9
    random: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 or min(self.masked, self.random) < 0 or self.masked + self.random > 1 + 1e-9:
            raise InvalidInputError("masking takes a share between 0 and 1, and two of it that sum to at most 1")


def packed(tokenizer: Tokenizer, texts: tuple[str, ...]) -> NDArray[np.uint16]:
    """All documents in a row, each after a <start>; ids as 16 bits, which a vocabulary of 65 536 fits."""
    found: list[int] = []
    for text in texts:
        found.append(START_ID)
        for start in range(0, len(text), 50_000):  # one text may be longer than a page takes
            found.extend(tokenizer.encode(text[start : start + 50_000]))
    return np.array(found, dtype=np.uint16)


class Blocks:
    """Blocks of `length` tokens in an order that follows from the seed; every epoch has its own order and its own cuts.

    Args:
        stream: token ids in a row, (M,).
        length: of a block, without the one more that a decoder predicts.
        batch: blocks in a step.
        seed: of the order.

    Raises:
        InvalidInputError: the text has too few tokens for one batch.
    """

    def __init__(self, stream: NDArray[np.uint16], length: int, batch: int, seed: int) -> None:
        self._stream, self._length, self._batch, self._seed = stream, length, batch, seed
        self._per_epoch = (len(stream) - 1 - length) // (length * batch)
        if self._per_epoch < 1:
            raise InvalidInputError(
                f"the text has {len(stream):,} tokens, too few for a batch of {batch} times {length}; use more text"
            )
        self._epoch, self._starts = -1, np.zeros(0, dtype=np.int64)

    @property
    def steps_per_epoch(self) -> int:
        return self._per_epoch

    def at(self, step: int) -> Tensor:
        """The blocks of a step with one token more at their end, (B, length + 1)."""
        epoch, index = divmod(step, self._per_epoch)
        if epoch != self._epoch:
            rng = np.random.default_rng([self._seed, epoch])
            shift = int(rng.integers(0, self._length))
            count = (len(self._stream) - 1 - shift) // self._length
            self._starts = shift + self._length * rng.permutation(count)
            self._epoch = epoch
        chosen = self._starts[index * self._batch : (index + 1) * self._batch]
        blocks = np.stack([self._stream[start : start + self._length + 1] for start in chosen])
        return torch.from_numpy(blocks.astype(np.int64))


def gaps(tokens: Tensor, masking: Masking, vocabulary: int, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Tokens (B, T) with gaps for an encoder, and where it is to predict, boolean (B, T); <start> is never a gap.

    At least one token of the batch is a gap.
    """
    generator = torch.Generator().manual_seed((seed << 24) + step)
    draw = torch.rand(tokens.shape, generator=generator)
    own = tokens > PAD_ID
    reads = (draw < masking.share) & own
    if not reads.any():
        reads.view(-1)[int(draw.masked_fill(~own, 2.0).argmin())] = True
    kind = torch.rand(tokens.shape, generator=generator)
    anything = torch.randint(MASK_ID + 1, vocabulary, tokens.shape, generator=generator)
    given = torch.where(reads & (kind < masking.masked), MASK_ID, tokens)
    replaced = reads & (kind >= masking.masked) & (kind < masking.masked + masking.random)
    return torch.where(replaced, anything, given), reads
