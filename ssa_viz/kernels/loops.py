"""The compiled loops: one block of a batch item and a head at a time, (Q, K) float32.

All are in one file, because numba keeps compiled code until the file that holds the loop changes, and would not see
a change in another file that the loop calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

# a·b + c may be rounded once. NaN and infinity keep their meaning.
CONTRACTED = {"contract", "arcp", "nsz"}
# Sums may be reordered too, which lets a loop that adds up run on 8 numbers at a time.
REORDERED = {*CONTRACTED, "reassoc"}

LN2 = np.float32(np.log(2.0))
LARGEST = np.float32(3e38)


def kernel(function: F) -> F:
    """Compile loops over arrays. They run without the interpreter's lock; the code is kept on disk where one can."""
    return _compiled(function, REORDERED)


def exact_kernel(function: F) -> F:
    """`kernel` for a loop without sums whose arithmetic must not be reordered."""
    return _compiled(function, CONTRACTED)


def _compiled(function: F, fastmath: set[str]) -> F:
    settings: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **settings)(function))
    except RuntimeError:  # no folder for the cache: compiled once per process instead
        return cast(F, numba.njit(**settings)(function))


def inlined(function: F) -> F:
    """Compile a function of single numbers into every kernel that calls it."""
    return cast(F, numba.njit(inline="always")(function))


def _bitcast(kind: Any) -> Any:
    def typed(context: Any, value: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], target.get_value_type(signature.return_type))

        return kind(value), generate

    return intrinsic(typed)


as_int = _bitcast(numba.types.int32)  # the bits of a float32, as an int32
as_float = _bitcast(numba.types.float32)  # and back


@inlined
def log2(y: Any) -> Any:
    """log₂(y) of a float32 y ≥ 1, with 128 for infinity; error below 5e-8 of a polynomial on [√½, √2], and rounding.

    y = 2^e·(1 + m); the polynomial is m times the one of degree 7 that has the least largest error.
    """
    bits = as_int(y)
    exponent = np.int32(np.int32(bits - np.int32(0x3F3504F3)) >> np.int32(23))
    m = as_float(np.int32(bits - np.int32(exponent << np.int32(23)))) - np.float32(1)
    p = np.float32(-1.457575863e-01)
    p = p * m + np.float32(2.368826049e-01)
    p = p * m + np.float32(-2.500612194e-01)
    p = p * m + np.float32(2.867085259e-01)
    p = p * m + np.float32(-3.600881157e-01)
    p = p * m + np.float32(4.809393924e-01)
    p = p * m + np.float32(-7.213571215e-01)
    p = p * m + np.float32(1.442694773e00)
    return p * m + np.float32(exponent)


@inlined
def exp2(t: Any) -> Any:
    """2^t of a float32 −126 < t < 127; relative error below 1e-7, and rounding.

    t = k + r with |r| ≤ ½; the polynomial of degree 5 in r has the least largest relative error.
    """
    k = np.float32(np.floor(t + np.float32(0.5)))
    r = t - k
    p = np.float32(1.327647174e-03)
    p = p * r + np.float32(9.675541540e-03)
    p = p * r + np.float32(5.550713276e-02)
    p = p * r + np.float32(2.402211972e-01)
    p = p * r + np.float32(6.931469671e-01)
    p = p * r + np.float32(1.000000072e00)
    return as_float(np.int32(as_int(p) + np.int32(np.int32(k) << np.int32(23))))


# Scores from 2^−86 to 2^86 can be added up in float32 without a common factor taken out first.
SAFE_LOG2 = np.float32(86)
LEAST = np.float32(-3e38)  # stands for −∞ in a row of log₂ scores, since arithmetic on it stays finite


@kernel
def outside(logits: Any, visible: Any, most: Any) -> Any:
    """How many visible logits are larger than `most` in size, or NaN; both arrays (N,)."""
    count = np.float32(0)
    for i in range(logits.shape[0]):
        count += np.float32(0) if abs(logits[i]) <= most else visible[i]
    return count


@kernel
def divide_by_sum(scores: Any) -> None:
    """Scores (Q, K) to weights, in place; an empty row stays empty."""
    for q in range(scores.shape[0]):
        row = scores[q]
        total = np.float32(0)
        for k in range(row.shape[0]):
            total += row[k]
        factor = np.float32(1) / total if total > np.float32(0) else np.float32(0)
        for k in range(row.shape[0]):
            row[k] *= factor


@kernel
def normalise_log2(logits: Any, visible: Any, powers: Any) -> None:
    """Log₂ scores (Q, K) of any size to weights, in place, each row by its own largest.

    A visible −∞ among the logits counts as hidden; a visible NaN or +∞ makes its row NaN.
    """
    for q in range(logits.shape[0]):
        most, broken = LEAST, False
        for k in range(logits.shape[1]):
            x = logits[q, k]
            if visible[q, k] > 0 and x != -np.inf:
                broken = broken or not x < np.inf
                most = max(most, powers[q, k])
            else:
                powers[q, k] = LEAST
        total = np.float32(0)
        for k in range(logits.shape[1]):
            distance = powers[q, k] - most
            seen = visible[q, k] > 0 and logits[q, k] != -np.inf
            weight = exp2(distance) if seen and distance > np.float32(-125) else np.float32(0)
            powers[q, k] = np.float32(np.nan) if broken and seen else weight
            total += weight
        if not broken and total > 0:
            for k in range(logits.shape[1]):
                powers[q, k] /= total


@kernel
def through_normalising(weights: Any, upstream: Any, by_power: Any) -> None:
    """The gradient by each natural-log score: w·(g − Σ g·w), (Q, K)."""
    for q in range(weights.shape[0]):
        w, g, d = weights[q], upstream[q], by_power[q]
        mean = np.float32(0)
        for k in range(w.shape[0]):
            mean += g[k] * w[k]
        for k in range(w.shape[0]):
            d[k] = w[k] * (g[k] - mean)


@kernel
def _ssa_powers(x: Any, visible: Any, n: Any, b: Any, out: Any) -> Any:
    """Log₂ scores, and how many visible ones are too large or small to be added up, or NaN."""
    outside = np.float32(0)
    for i in range(x.shape[0]):
        logit = x[i]
        power = n * log2(np.float32(1) + b * abs(logit))
        outside += np.float32(0) if power <= SAFE_LOG2 else visible[i]
        out[i] = power if logit >= np.float32(0) else -power
    return outside


@kernel
def _exponentials(powers: Any, visible: Any) -> None:
    """2^power where visible, in place."""
    for i in range(powers.shape[0]):
        score = exp2(powers[i])
        powers[i] = score if visible[i] > np.float32(0) else np.float32(0)


@kernel
def ssa_forward(logits: Any, visible: Any, mask_of: Any, n: Any, b: Any, weights: Any, start: int, stop: int) -> None:
    """Weights of the blocks from `start` to `stop`.

    Args:
        logits, weights: float32 (B·H, Q, K), contiguous.
        visible: float32 1 or 0, (M, Q, K), contiguous; `mask_of` (B·H,) says which of them a block has.
        n, b: float32 (H,).
    """
    heads, cells = n.shape[0], logits.shape[1] * logits.shape[2]
    for i in range(start, stop):
        x, w, seen = logits[i].reshape(cells), weights[i].reshape(cells), visible[mask_of[i]].reshape(cells)
        head = i % heads
        if _ssa_powers(x, seen, n[head], b[head], w) == 0:
            _exponentials(w, seen)
            divide_by_sum(weights[i])
        else:
            normalise_log2(logits[i], visible[mask_of[i]], weights[i])


# Two loops, since one that does both needs more registers than there are and takes twice as long.
@kernel
def _ssa_by_n(x: Any, w: Any, b: Any, by_power: Any) -> Any:
    total = np.float32(0)
    for i in range(x.shape[0]):
        logit = x[i]
        seen = logit if w[i] > np.float32(0) else np.float32(0)
        power = log2(np.float32(1) + b * abs(seen))
        total += by_power[i] * (power if seen >= np.float32(0) else -power)
    return total * LN2


@kernel
def _ssa_by_logits_and_b(x: Any, w: Any, n: Any, b: Any, dx: Any) -> Any:
    total, slope = np.float32(0), n * b
    for i in range(x.shape[0]):
        logit = x[i]
        seen = logit if w[i] > np.float32(0) else np.float32(0)
        through = dx[i] / (np.float32(1) + b * abs(seen))
        total += through * seen
        dx[i] = through * slope
    return total * n


@kernel
def ssa_backward(
    logits: Any, weights: Any, upstream: Any, n: Any, b: Any, dx: Any, dn: Any, db: Any, start: int, stop: int
) -> None:
    """Gradients by the logits (B·H, Q, K), and each block's share of those by n and b, (B·H,)."""
    heads, cells = n.shape[0], logits.shape[1] * logits.shape[2]
    for i in range(start, stop):
        through_normalising(weights[i], upstream[i], dx[i])
        head = i % heads
        x, w, d = logits[i].reshape(cells), weights[i].reshape(cells), dx[i].reshape(cells)
        dn[i] = _ssa_by_n(x, w, b[head], d)
        db[i] = _ssa_by_logits_and_b(x, w, n[head], b[head], d)


# 1 / ln 2 in two parts, so that a large logit times it is not rounded where the exponential would show it.
HIGH = np.float32(1 / np.log(2.0))
LOW = np.float32(1 / np.log(2.0) - float(HIGH))
SAFE = np.float32(SAFE_LOG2 * float(LN2))


@exact_kernel
def _softmax_scores(x: Any, visible: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        whole = np.float32(np.floor(x[i] * HIGH + np.float32(0.5)))
        part = (x[i] * HIGH - whole) + x[i] * LOW
        score = exp2(part) * as_float(np.int32(np.int32(np.int32(whole) + np.int32(127)) << np.int32(23)))
        out[i] = score if visible[i] > np.float32(0) else np.float32(0)


@kernel
def _softmax_powers(x: Any, visible: Any, out: Any) -> None:
    """(x − the row's largest) / ln 2, (Q, K): taken before multiplying, so that close large logits stay apart."""
    for q in range(x.shape[0]):
        most = -np.float32(3e38)
        for k in range(x.shape[1]):
            if visible[q, k] > 0 and x[q, k] > most:
                most = x[q, k]
        for k in range(x.shape[1]):
            out[q, k] = max((x[q, k] - most) * HIGH, -LARGEST)


@kernel
def softmax_forward(logits: Any, visible: Any, mask_of: Any, weights: Any, start: int, stop: int) -> None:
    """Weights of the blocks from `start` to `stop`; arguments as in `ssa_forward`."""
    cells = logits.shape[1] * logits.shape[2]
    for i in range(start, stop):
        x, w, seen = logits[i].reshape(cells), weights[i].reshape(cells), visible[mask_of[i]].reshape(cells)
        if outside(x, seen, SAFE) == 0:
            _softmax_scores(x, seen, w)
            divide_by_sum(weights[i])
        else:
            _softmax_powers(logits[i], visible[mask_of[i]], weights[i])
            normalise_log2(logits[i], visible[mask_of[i]], weights[i])


@kernel
def softmax_backward(weights: Any, upstream: Any, dx: Any, start: int, stop: int) -> None:
    """The gradient by the logits, (B·H, Q, K)."""
    for i in range(start, stop):
        through_normalising(weights[i], upstream[i], dx[i])
