"""One language model and one sentence: where it looks, what it expects, and what happens when a token shouts."""

from ssa_viz.inspect.sentences.compare import moved
from ssa_viz.inspect.sentences.expect import (
    Guess,
    continuation,
    divergence,
    expectation,
    fills,
    likeliest,
    next_tokens,
    pseudo_surprisal,
)
from ssa_viz.inspect.sentences.shout import Shouting, factors, shout
from ssa_viz.inspect.sentences.tokens import WAYS, Loud, Sentence, sentence_tokens, with_word, word_at
from ssa_viz.inspect.sentences.view import SentenceReading, Sinks, read_sentence, sinks

__all__ = [
    "WAYS",
    "Guess",
    "Loud",
    "Sentence",
    "SentenceReading",
    "Shouting",
    "Sinks",
    "continuation",
    "divergence",
    "expectation",
    "factors",
    "fills",
    "likeliest",
    "moved",
    "next_tokens",
    "pseudo_surprisal",
    "read_sentence",
    "sentence_tokens",
    "shout",
    "sinks",
    "with_word",
    "word_at",
]
