"""Everything on a language model's card, measured in one go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.language.preference import Accuracy, accuracies
from ssa_viz.evaluate.language.surprise import Surprise, surprise
from ssa_viz.model.language import LanguageModel
from ssa_viz.text.pairs import PHENOMENA, Pair, own_pairs
from ssa_viz.text.tokenizer import Tokenizer

WINDOWS = (64, 128, 256)  # tokens; those beyond the training length say how a model stands longer text
ENCODER_EVERY = 4  # documents: an encoder reads each seven times over, so it is measured on every fourth
OWN = "own"


def language_card(
    model: LanguageModel,
    tokenizer: Tokenizer,
    texts: Mapping[str, Sequence[str]],
    suites: Mapping[str, Mapping[str, Sequence[Pair]]],
) -> dict[str, Any]:
    """Perplexities and preferences as plain JSON numbers.

    Args:
        texts: name → documents to measure the perplexity on, at every window that the context allows; for an encoder
            every fourth of them.
        suites: name → phenomenon → pairs; our own are measured too. Pairs longer than the context are left out, and
            counted.

    Raises:
        InvalidInputError: a text is empty, or no pair of a phenomenon fits the context.
    """
    windows = [window for window in WINDOWS if window <= model.config.context]
    own = {name: own_pairs(name) for name in PHENOMENA}
    return {
        "text": {
            name: {str(window): _surprise(surprise(model, tokenizer, chosen, length=window)) for window in windows}
            for name, documents in texts.items()
            if (chosen := documents if model.config.causal else documents[::ENCODER_EVERY])
        },
        "pairs": {name: _suite(model, tokenizer, suite) for name, suite in {OWN: own, **suites}.items()},
    }


def _surprise(found: Surprise) -> dict[str, Any]:
    return {
        "nats_per_token": found.nats / found.tokens,
        "bits_per_byte": found.bits_per_byte,
        "perplexity_per_word": found.per_word,
        "tokens": found.tokens,
        "exact": found.exact,
    }


def _suite(model: LanguageModel, tokenizer: Tokenizer, suite: Mapping[str, Sequence[Pair]]) -> dict[str, Any]:
    most = model.config.context - 1
    fitting = {
        name: [pair for pair in pairs if max(len(tokenizer.encode(s)) for s in (pair.good, pair.bad)) <= most]
        for name, pairs in suite.items()
    }
    if empty := [name for name, pairs in fitting.items() if not pairs]:
        raise InvalidInputError(f"no pair of {empty[0]} fits the model's context")
    found = accuracies(model, tokenizer, fitting)
    return {
        "macro": sum(each.share for each in found.values()) / len(found),
        "left_out": sum(map(len, suite.values())) - sum(map(len, fitting.values())),
        "phenomena": {name: _accuracy(each) for name, each in found.items()},
    }


def _accuracy(found: Accuracy) -> dict[str, Any]:
    return {"share": found.share, "error": found.error, "count": found.count}
