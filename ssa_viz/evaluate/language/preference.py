"""Which of two sentences a model prefers, and how often it is the grammatical one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from ssa_viz.model.language import LanguageModel
from ssa_viz.text.batches import PAD_ID, START_ID
from ssa_viz.text.pairs import Pair
from ssa_viz.text.tokenizer import Tokenizer

AT_ONCE = 128  # sentences


@dataclass(frozen=True)
class Accuracy:
    """How many of the pairs of a phenomenon a model gets right; a tie is half right."""

    right: float
    count: int

    @property
    def share(self) -> float:
        return self.right / self.count

    @property
    def error(self) -> float:
        """The standard error of the share, from the number of pairs alone."""
        return math.sqrt(self.share * (1 - self.share) / self.count)


@torch.inference_mode()
def scores(model: LanguageModel, tokenizer: Tokenizer, sentences: Sequence[str]) -> list[float]:
    """A sentence's log-probability (decoder), or BabyBERTa's holistic score (encoder): the summed log-probability of
    every token with all of them visible.

    Source of the second: Huebner et al. 2021, "BabyBERTa", https://aclanthology.org/2021.conll-1.49.

    Raises:
        InvalidInputError: a sentence is longer than the model's context.
    """
    encoded = [[START_ID, *tokenizer.encode(sentence)] for sentence in sentences]
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
    found = [0.0] * len(encoded)
    for start in range(0, len(order), AT_ONCE):
        chosen = order[start : start + AT_ONCE]
        longest = len(encoded[chosen[-1]])
        ids = torch.tensor([encoded[i] + [PAD_ID] * (longest - len(encoded[i])) for i in chosen])
        real = ids != PAD_ID
        logits = model(ids, real=real).predictions
        if model.config.causal:
            logits, truth, counted = logits[:, :-1], ids[:, 1:], real[:, 1:]
        else:
            logits, truth, counted = logits[:, 1:], ids[:, 1:], real[:, 1:]
        nats = F.cross_entropy(logits.flatten(0, 1), truth.flatten(), reduction="none").view(truth.shape)
        totals = -(nats.double() * counted).sum(dim=1)
        for i, total in zip(chosen, totals.tolist(), strict=True):
            found[i] = total
    return found


def accuracies(model: LanguageModel, tokenizer: Tokenizer, suite: Mapping[str, Sequence[Pair]]) -> dict[str, Accuracy]:
    """Phenomenon → how often the grammatical sentence has the higher score.

    Raises:
        InvalidInputError: a sentence is longer than the model's context.
    """
    found = {}
    for name, pairs in suite.items():
        every = scores(model, tokenizer, [pair.good for pair in pairs] + [pair.bad for pair in pairs])
        good, bad = every[: len(pairs)], every[len(pairs) :]
        right = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in zip(good, bad, strict=True))
        found[name] = Accuracy(right, len(pairs))
    return found
