"""How concentrated an attention row is. Every function works on torch tensors whose last axis is the keys."""

from __future__ import annotations

import torch
from torch import Tensor

COLLAPSE_WEIGHT = 0.9
COLLAPSE_KEYS = 4


def largest_weight(weights: Tensor) -> Tensor:
    """max_k w, (…, K) → (…)."""
    return weights.amax(dim=-1)


def contextual_mass(weights: Tensor) -> Tensor:
    """1 − max_k w: the weight left for everything but the strongest key, (…, K) → (…).

    Meaningful for functions whose rows sum to 1; for others read it as the distance of the largest weight
    from 1. A row with one visible key has none.
    """
    return 1.0 - largest_weight(weights)


def mass_on_others(weights: Tensor) -> Tensor:
    """Σ w over all keys but one of the largest weight, (…, K) → (…).

    For rows that sum to 1 it is the contextual mass, without the rounding of 1 − max_k w: it may be as small as the
    dtype holds.
    """
    strongest = weights.argmax(dim=-1, keepdim=True)
    return weights.scatter(-1, strongest, 0.0).sum(dim=-1)


def mass_off(weights: Tensor, keys: Tensor) -> Tensor:
    """1 − Σ w over the given keys: the mass off the outlier, (…, K) and boolean (K,) → (…)."""
    return 1.0 - mass_on(weights, keys)


def mass_on(weights: Tensor, keys: Tensor) -> Tensor:
    """Σ w over the given keys, (…, K) and boolean (K,) → (…)."""
    return (weights * keys).sum(dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """−Σ w ln w in nats with 0 ln 0 = 0, (…, K) → (…)."""
    # The clamp removes a −0.0 that a one-hot row would give.
    nats: Tensor = torch.special.entr(weights).sum(dim=-1)
    return nats.clamp(min=0.0)


def effective_tokens(weights: Tensor) -> Tensor:
    """exp(entropy): how many equally weighted keys would be as spread out, (…, K) → (…)."""
    return entropy(weights).exp()


def collapsed(weights: Tensor, visible: Tensor) -> Tensor:
    """Where a row with at least 4 visible keys gives one of them more than 0.9, (…, K) → boolean (…)."""
    enough = visible.sum(dim=-1) >= COLLAPSE_KEYS
    return (largest_weight(weights) > COLLAPSE_WEIGHT) & enough
