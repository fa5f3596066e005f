"""One language model and one sentence: where it looks, what it expects, and what happens when a token shouts."""

from ssa_viz.inspect.sentences.compare import moved
from ssa_viz.inspect.sentences.expect import Guess, continuation, fills, next_tokens, pseudo_surprisal
from ssa_viz.inspect.sentences.shout import Shouting, factors, shout
from ssa_viz.inspect.sentences.tokens import Sentence, sentence_tokens
from ssa_viz.inspect.sentences.view import SentenceReading, Sinks, read_sentence, sinks

__all__ = [
    "Guess",
    "Sentence",
    "SentenceReading",
    "Shouting",
    "Sinks",
    "continuation",
    "factors",
    "fills",
    "moved",
    "next_tokens",
    "pseudo_surprisal",
    "read_sentence",
    "sentence_tokens",
    "shout",
    "sinks",
]
