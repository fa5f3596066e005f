"""Every scoring function against the best public implementation of it: time and memory, forward and backward.

Both work behind a causal mask on the same float32 logits, take turns in one process with the same number of threads,
and a ratio is the median over rounds of the ratio within a round. Where a package is published, it is the package;
else it is the formula in PyTorch's own operations, as the function's source writes it.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from benchmark_forward import in_turns
from benchmark_line import Line
from torch import Tensor
from torch.nn import functional as F

from ssa_viz.scoring import SCORING

SHAPE = (64, 8, 82, 82)  # logits (B, H, Q, K)
HEAD_WIDTH = 32  # of the queries and keys that CosFormer compares
ROUNDS = 20
LIMIT = 2.0  # × the time and the memory of the public one
SSA_LIMIT = 1.3  # × torch.softmax
KEYS = SHAPE[-1]

Function = Callable[[Tensor], Tensor]


def scoring(*, quick: bool) -> Iterator[Line]:
    """Each registered function against its public counterpart, then SSA against torch.softmax itself."""
    rounds = max(3, ROUNDS // 5) if quick else ROUNDS
    visible = torch.ones(SHAPE[-2:], dtype=torch.bool).tril()
    shape = " × ".join(map(str, SHAPE))
    for name, (origin, other) in _public(visible).items():
        inputs = _comparable(name)
        ours = partial(SCORING[name](SHAPE[1]), visible=visible)
        if name == "cosformer":
            ours = partial(_cosformer, visible)
        ratios = _ratios({"ours": ours, "other": other}, inputs, rounds)
        yield _line(f"{SCORING[name].label} against {origin}, {shape}", ratios, LIMIT)
    ssa = partial(SCORING["ssa"](SHAPE[1]), visible=visible)
    bare = partial(torch.softmax, dim=-1)
    ratios = _ratios({"ours": ssa, "other": bare}, _comparable("ssa"), rounds)
    yield _line(f"SSA with a mask against torch.softmax without, {shape}", ratios, SSA_LIMIT)


def _public(visible: Tensor) -> dict[str, tuple[str, Function]]:
    """Name → where the other implementation comes from, and the implementation."""
    entmax = importlib.import_module("entmax")
    softmax_n = importlib.import_module("flash_attention_softmax_n.core.functional").softmax_n
    count = visible.sum(-1, keepdim=True)
    per_head = torch.ones(SHAPE[1], 1, 1, requires_grad=True)

    def hidden(x: Tensor) -> Tensor:
        return x.masked_fill(~visible, -torch.inf)

    def published_ssa(x: Tensor) -> Tensor:
        n, b = per_head * 1.5, per_head
        scores = torch.pow(1 + b * x.abs(), x.sign() * n) * visible
        return scores / scores.sum(-1, keepdim=True)

    def adaptive(x: Tensor) -> Tensor:
        p = torch.softmax(hidden(x), -1)
        entropy = -(p * (p + 1e-9).log()).sum(-1, keepdim=True)
        fit = sum(c * entropy**i for i, c in enumerate((-1.791, 4.917, -2.3, 0.481, -0.037)))
        sharper = torch.where(entropy > 0.5, torch.as_tensor(fit).clamp(min=1), 1.0)
        return torch.softmax(hidden(x) * sharper, -1)

    def sink(x: Tensor) -> Tensor:
        column = (per_head * 0).expand(SHAPE[0], -1, SHAPE[2], 1)
        return torch.softmax(torch.cat([hidden(x), column], -1), -1)[..., :-1]

    def softpick(x: Tensor) -> Tensor:
        x = hidden(x)
        most = x.amax(-1, keepdim=True)
        shifted = (x - most).exp() - (-most).exp()
        return shifted.relu() / ((shifted.abs() * visible).sum(-1, keepdim=True) + 1e-8)

    def sa_softmax(x: Tensor) -> Tensor:
        p = torch.softmax(hidden(x), -1)
        low = x.masked_fill(~visible, torch.inf).amin(-1, keepdim=True).clamp(max=0)
        high = hidden(x).amax(-1, keepdim=True).clamp(min=0)
        return ((x - low) / (high - low)).masked_fill(~visible, 0) * p

    def cosformer(both: Tensor) -> Tensor:
        query, key = both.relu()
        places = torch.arange(KEYS)
        scores: Tensor = (query @ key.mT) * torch.cos(math.pi / 2 * (places[:, None] - places) / KEYS) * visible
        return scores / scores.sum(-1, keepdim=True).clamp(min=1e-6)

    return {
        "softmax": ("masked torch.softmax", lambda x: torch.softmax(hidden(x), -1)),
        "ssa": ("the power form that was published", published_ssa),
        "temperature": ("masked torch.softmax(x / T)", lambda x: torch.softmax(hidden(x / per_head), -1)),
        "adaptive_temperature": ("its formula", adaptive),
        "ssmax": ("torch.softmax(s·log n·x)", lambda x: torch.softmax(hidden(per_head * count.log() * x), -1)),
        "softmax_plus_one": ("flash-attention-softmax-n", lambda x: softmax_n(hidden(x), 1.0)),
        "sink": ("a column more, as gpt-oss has it", sink),
        "softpick": ("its reference", softpick),
        "sparsemax": ("entmax.sparsemax", lambda x: entmax.sparsemax(hidden(x), -1)),
        "entmax15": ("entmax.entmax15", lambda x: entmax.entmax15(hidden(x), -1)),
        "entmax": ("entmax.entmax_bisect", lambda x: entmax.entmax_bisect(hidden(x), 1.5 * per_head, -1)),
        "sa_softmax": ("its formula", sa_softmax),
        "sigmoid": ("masked torch.sigmoid", lambda x: torch.sigmoid(hidden(x - math.log(KEYS) * per_head))),
        "relu": ("masked relu(x) / n", lambda x: F.relu(hidden(x)) / count),
        "cosformer": ("its quadratic reference", cosformer),
    }


def _cosformer(visible: Tensor, both: Tensor) -> Tensor:
    function = SCORING["cosformer"](SHAPE[1], initial={"m": KEYS})
    query, key = both
    weights: Tensor = function(function.logits(query, key, torch.arange(KEYS)), visible)
    return weights


def _comparable(name: str) -> Tensor:
    """What a function is timed on: logits, or for CosFormer queries and keys (2, B, H, T, D)."""
    shape = (2, *SHAPE[:3], HEAD_WIDTH) if name == "cosformer" else SHAPE
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _ratios(functions: dict[str, Function], inputs: Tensor, rounds: int) -> tuple[float, float, float]:
    """Ours over the other: forward, forward and backward, and the memory that the latter adds at its peak."""
    upstream = torch.randn(SHAPE, generator=torch.Generator().manual_seed(1))

    def and_back(function: Function) -> None:
        torch.autograd.backward(function(inputs.detach().requires_grad_()), upstream)

    with torch.no_grad():
        there = in_turns({name: partial(function, inputs) for name, function in functions.items()}, rounds)
    back = in_turns({name: partial(and_back, function) for name, function in functions.items()}, rounds)
    peaks = {name: _peak(partial(and_back, function)) for name, function in functions.items()}
    forward, both_ways = (float(np.median(times["ours"] / times["other"])) for times in (there, back))
    return forward, both_ways, peaks["ours"] / peaks["other"]


def _peak(call: Callable[[], None]) -> float:
    """Bytes that a call adds to this process at its peak; NaN where the system does not tell (not Linux)."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # memory that earlier calls left behind would hide what this one needs
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
        before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        call()
        told = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    except (OSError, AttributeError):
        return math.nan
    return max(1024.0 * int(told) - before, 1.0)


def _line(what: str, ratios: tuple[float, float, float], limit: float) -> Line:
    there, back, memory = ratios
    found = f"{there:.2f} × the time forward, {back:.2f} × forward and backward, {memory:.2f} × the memory"
    return Line(what, found, f"at most {limit:g} ×", back <= limit and not memory > limit)
