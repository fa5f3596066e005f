"""One token shouts: what its loudness does to the attention and to the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from ssa_viz import metrics
from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.inspect.sentences.tokens import WAYS, Sentence
from ssa_viz.model.language import LanguageModel

AT_ONCE = 8  # factors in one pass
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Shouting:
    """A model over F factors by which one token is louder, at one place that is predicted.

    Attributes:
        factors: (F,).
        contextual_mass: of the predicting query's row, (F, L, H).
        on_token: weight of that row on the loud token, (F, L, H).
        probability: of the token that the undisturbed model expects most there, (F,).
        divergence: of the prediction from the undisturbed one, KL(undisturbed ‖ loud) in nats, (F,).
        expected: that token.
    """

    factors: NDArray[np.float64]
    contextual_mass: Floats
    on_token: Floats
    probability: Floats
    divergence: Floats
    expected: int


def factors(count: int = 25, most: float = 1000.0) -> NDArray[np.float64]:
    """Factors from 1 to `most`, evenly spaced on a log axis."""
    return np.logspace(0, np.log10(most), count)


@torch.inference_mode()
def shout(
    model: LanguageModel, sentence: Sentence, token: int, loudness: Sequence[float] | NDArray[np.float64], *,
    way: str = "key", at: int | None = None,
) -> Shouting:  # fmt: skip
    """Scale one token's keys in every layer, or its embedding, by each factor.

    Args:
        token: the place of the loud token.
        way: `key` or `embedding`.
        at: the query whose prediction is looked at; the last one unless stated. For an encoder it becomes a gap.

    Raises:
        InvalidInputError: there is no such place, way or factor, or a decoder's query cannot see the token.
        NonFiniteError: something became NaN or infinite; the message says at which factor.
    """
    count = len(sentence.ids)
    at = count - 1 if at is None else at
    if way not in WAYS or not 0 <= token < count or not 0 <= at < count or (model.config.causal and token > at):
        raise InvalidInputError(f"a token at 0 to {at} can shout by its key or its embedding, not {token} by {way}")
    loud = np.asarray(loudness, dtype=np.float64)
    if not loud.size or not np.isfinite(loud).all() or (loud <= 0).any():
        raise InvalidInputError("a factor is a finite number above 0")
    read = sentence.ids[: at + 1] if model.config.causal else sentence.masked(at).ids
    rows, predicted = [], []
    for start in range(-1, len(loud), AT_ONCE):  # the undisturbed one is the first of all
        chosen = [1.0 if i < 0 else float(loud[i]) for i in range(start, min(start + AT_ONCE, len(loud)))]
        ids = torch.tensor([read]).expand(len(chosen), -1)
        scale, here = torch.ones(ids.shape), torch.zeros(ids.shape, dtype=torch.bool)
        scale[:, token] = torch.tensor(chosen)
        here[:, at] = True
        predictions, trace = model(ids, reads=here, trace=True, **{f"{way}_scale": scale})
        assert trace is not None
        rows.append(trace.weights()[:, :, :, at])  # (L, F, H, K)
        predicted.append(F.log_softmax(predictions.double(), dim=-1))
    weights, logged = torch.cat(rows, dim=1).transpose(0, 1), torch.cat(predicted)  # (F + 1, L, H, K), (F + 1, V)
    bad = ~(torch.isfinite(weights).flatten(1).all(1) & torch.isfinite(logged).all(1))
    if bad.any():
        place = int(bad.float().argmax()) - 1
        where = f"at a factor of {loud[place]:g}" if place >= 0 else "already undisturbed"
        raise NonFiniteError(f"the model's numbers became NaN or infinite {where}; choose smaller factors")
    usual = logged[0]
    expected = int(usual.argmax())
    return Shouting(
        factors=loud,
        contextual_mass=metrics.contextual_mass(weights[1:]).numpy(),
        on_token=weights[1:, ..., token].numpy(),
        probability=logged[1:, expected].exp().float().numpy(),
        divergence=(usual.exp() * (usual - logged[1:])).sum(dim=-1).clamp(min=0).float().numpy(),
        expected=expected,
    )
