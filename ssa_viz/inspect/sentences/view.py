"""What a language model computed from one sentence, and where its heads let their weight rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from ssa_viz import metrics
from ssa_viz.inspect.sentences.tokens import Loud, Sentence, scales_of
from ssa_viz.model.language import LanguageModel

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class SentenceReading:
    """L layers, H heads, T tokens (queries Q and keys K).

    Attributes:
        sentence: what was read.
        logits, weights: (L, H, Q, K); a hidden key's weight is 0.
        visible: boolean (Q, K).
        surprisal: −log₂ p of each token, in bits, (T,): for a decoder from what stands before it (NaN for the first),
            for an encoder with the token itself in sight, which says little (`pseudo_surprisal` hides it).
        contextual_mass, effective_tokens: of each row, (L, H, Q).
    """

    sentence: Sentence
    logits: Floats
    weights: Floats
    visible: NDArray[np.bool_]
    surprisal: Floats
    contextual_mass: Floats
    effective_tokens: Floats


@torch.inference_mode()
def read_sentence(model: LanguageModel, sentence: Sentence, loud: Loud | None = None) -> SentenceReading:
    """Let a model read a sentence once, with one token shouting if there is a `loud` one.

    Raises:
        InvalidInputError: it is longer than the context, has a token outside the vocabulary, or lacks the loud one.
        NonFiniteError: something became NaN or infinite.
    """
    ids = torch.tensor([sentence.ids])
    predictions, trace = model(ids, trace=True, **scales_of(loud, len(sentence.ids)))
    assert trace is not None
    trace.check_finite()
    weights = trace.weights()[:, 0]
    logged = F.log_softmax(predictions[0].float(), dim=-1) / -np.log(2)
    surprisal = torch.full((len(sentence.ids),), torch.nan)
    if model.config.causal:
        surprisal[1:] = logged[:-1].gather(1, ids[0, 1:, None])[:, 0]
    else:
        surprisal[1:] = logged[1:].gather(1, ids[0, 1:, None])[:, 0]
    return SentenceReading(
        sentence=sentence,
        logits=trace.logits()[:, 0].numpy(),
        weights=weights.numpy(),
        visible=trace.visible.numpy().copy(),
        surprisal=surprisal.numpy(),
        contextual_mass=metrics.contextual_mass(weights).numpy(),
        effective_tokens=metrics.effective_tokens(weights).numpy(),
    )


@dataclass(frozen=True)
class Sinks:
    """Mean weight over the queries that see another key too, by head, (L, H): on <start>, and on marks."""

    first: Floats
    punctuation: Floats


def sinks(reading: SentenceReading) -> Sinks:
    """How much of each head's weight goes to the first token, and to punctuation."""
    rows = reading.weights[:, :, 1:] if len(reading.sentence.ids) > 1 else reading.weights
    marks = np.zeros(rows.shape[-1], dtype=np.float32)
    marks[list(reading.sentence.punctuation)] = 1
    return Sinks(rows[..., 0].mean(axis=-1), (rows * marks).sum(axis=-1).mean(axis=-1))
