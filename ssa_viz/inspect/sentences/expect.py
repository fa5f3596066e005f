"""What a language model expects: the next token, the one in a gap, and a whole continuation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.inspect.sentences.tokens import Loud, Sentence, scales_of
from ssa_viz.model.language import LanguageModel
from ssa_viz.text.batches import MASK_ID, PAD_ID, START_ID
from ssa_viz.text.tokenizer import Tokenizer

TOP = 10
MOST_NEW = 200  # tokens of a continuation
NEVER = (START_ID, PAD_ID, MASK_ID)


@dataclass(frozen=True)
class Guess:
    """A token that a model expects, with what people read for it and its probability."""

    id: int
    label: str
    probability: float


@torch.inference_mode()
def expectation(model: LanguageModel, sentence: Sentence, place: int, loud: Loud | None = None) -> NDArray[np.float64]:
    """The probability of every token (V,): after `place` for a decoder, in a gap at `place` for an encoder.

    A `loud` token that a decoder reads only later changes nothing.

    Raises:
        InvalidInputError: there is no such place, or for an encoder no gap can be there.
        NonFiniteError: the predictions are not finite.
    """
    count = len(sentence.ids)
    if not model.config.causal:
        holed = torch.tensor([sentence.masked(place).ids])
        row = model(holed, **scales_of(loud, count)).predictions[0, place]
    else:
        if not 0 <= place < count:
            raise InvalidInputError(f"the sentence has places 0 to {count - 1}, not {place}")
        heard = loud if loud is None or loud.token <= place else None
        read = torch.tensor([sentence.ids[: place + 1]])
        row = model(read, **scales_of(heard, place + 1)).predictions[0, -1]
    return F.softmax(_finite(row).double(), dim=-1).numpy()


def divergence(usual: NDArray[np.float64], changed: NDArray[np.float64]) -> float:
    """KL(usual ‖ changed) in nats, of two expectations (V,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(usual > 0, usual * (np.log(usual) - np.log(changed)), 0.0)
    return float(max(terms.sum(), 0.0))


def likeliest(tokenizer: Tokenizer, probabilities: NDArray[np.float64], top: int = TOP) -> list[Guess]:
    """The `top` tokens of an expectation (V,), the likeliest first."""
    ids = np.argsort(-probabilities, kind="stable")[:top]
    return [Guess(int(id_), tokenizer.label(int(id_)), float(probabilities[id_])) for id_ in ids]


def next_tokens(
    model: LanguageModel, tokenizer: Tokenizer, sentence: Sentence, place: int, *, top: int = TOP
) -> list[Guess]:
    """The tokens that a decoder expects most after `place`, the likeliest first.

    Raises:
        InvalidInputError: the model is an encoder, or there is no such place.
        NonFiniteError: the predictions are not finite.
    """
    if not model.config.causal:
        raise InvalidInputError("an encoder does not write on; ask it for a gap")
    return likeliest(tokenizer, expectation(model, sentence, place), top)


def fills(model: LanguageModel, tokenizer: Tokenizer, sentence: Sentence, place: int, *, top: int = TOP) -> list[Guess]:
    """The tokens that an encoder expects most at a gap at `place`, the likeliest first.

    Raises:
        InvalidInputError: the model is a decoder, or there can be no gap.
        NonFiniteError: the predictions are not finite.
    """
    if model.config.causal:
        raise InvalidInputError("a decoder does not fill gaps; ask it for the next token")
    return likeliest(tokenizer, expectation(model, sentence, place), top)


@torch.inference_mode()
def pseudo_surprisal(model: LanguageModel, sentence: Sentence) -> NDArray[np.float32]:
    """−log₂ p of each token with that token as a gap, in bits, (T,); NaN for <start>. For an encoder.

    Raises:
        InvalidInputError: the model is a decoder.
    """
    if model.config.causal:
        raise InvalidInputError("a decoder's surprisal needs no gaps")
    count = len(sentence.ids)
    found = np.full(count, np.nan, dtype=np.float32)
    for start in range(1, count, 32):
        places = list(range(start, min(start + 32, count)))
        ids = torch.tensor([sentence.masked(place).ids for place in places])
        rows = model(ids, reads=ids == MASK_ID).predictions if MASK_ID not in sentence.ids else None
        if rows is None:  # the sentence has a gap of its own
            rows = model(ids).predictions[range(len(places)), places]
        logged = F.log_softmax(rows.float(), dim=-1) / -math.log(2)
        for i, place in enumerate(places):
            found[place] = float(logged[i, sentence.ids[place]])
    return found


@torch.inference_mode()
def continuation(
    model: LanguageModel,
    sentence: Sentence,
    *,
    count: int,
    seed: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    loud: Loud | None = None,
) -> list[int]:
    """Ids that a decoder writes after the sentence: the same for the same seed, whatever else is going on.

    Args:
        count: how many at most; fewer where the context ends or the model begins another text.
        temperature: divides the logits; 0 takes the likeliest token each time.
        top_p: draws from the likeliest tokens that together have this probability.
        loud: shouts all the while.

    Raises:
        InvalidInputError: the model is an encoder, or a number is out of range.
        NonFiniteError: the predictions are not finite.
    """
    if not model.config.causal:
        raise InvalidInputError("an encoder does not write on")
    if not 1 <= count <= MOST_NEW or not 0 <= temperature <= 10 or not 0 < top_p <= 1:
        raise InvalidInputError(
            f"a continuation takes 1 to {MOST_NEW} tokens, a temperature from 0 to 10 and top-p above 0 up to 1"
        )
    generator = torch.Generator().manual_seed(seed)
    ids = list(sentence.ids)
    for _ in range(min(count, model.config.context - len(ids))):
        logits = _finite(model(torch.tensor([ids]), **scales_of(loud, len(ids))).predictions[0, -1]).double()
        logits[[PAD_ID, MASK_ID]] = -torch.inf
        if temperature == 0:
            token = int(logits.argmax())
        else:
            token = _drawn(F.softmax(logits / temperature, dim=-1), top_p, generator)
        if token == START_ID:
            break
        ids.append(token)
    return ids[len(sentence.ids) :]


def _drawn(probabilities: Tensor, top_p: float, generator: torch.Generator) -> int:
    ordered, order = probabilities.sort(descending=True, stable=True)
    before = ordered.cumsum(0) - ordered
    kept = torch.where(before < top_p, ordered, 0.0)
    return int(order[int(torch.multinomial(kept, 1, generator=generator))])


def _finite(logits: Tensor) -> Tensor:
    if not torch.isfinite(logits).all():
        raise NonFiniteError("the model's predictions became NaN or infinite on this sentence")
    return logits
