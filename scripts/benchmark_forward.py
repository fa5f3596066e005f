"""The forward pass with its trace against the one without, and against GPT-2.

What is compared is run in turns, in one process and with the same number of threads, so that a busy moment of the
machine meets all of them alike; a ratio is the median over rounds of the ratio within a round.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from benchmark_line import Line
from numpy.typing import NDArray
from torch import Tensor

from ssa_viz.model import ModelConfig, build

LAYERS, HEADS, WIDTH, CONTEXT = 12, 8, 256, 82
TRACE_LIMIT = 1.15  # × the time without a trace
GPT2_AIM = 1.3  # × as fast as GPT-2
# GPT-2's own activation is a tanh formula, ours the exact GELU; it is timed with either.
ACTIVATIONS = {"GPT-2": "gelu_new", "GPT-2 with exact GELU": "gelu"}
WARM_UP = 3  # rounds that are not measured


@dataclass(frozen=True)
class Batch:
    """A size of input and how many rounds it is timed for."""

    sequences: int
    tokens: int
    rounds: int

    def __str__(self) -> str:
        return f"{LAYERS} × {HEADS} × {WIDTH}, {self.sequences} × {self.tokens} tokens"


BATCHES = (Batch(1, CONTEXT, rounds=200), Batch(64, 41, rounds=15))


def forward(*, quick: bool) -> Iterator[Line]:
    """The forward pass of our `transformer` at GPT-2's shape."""
    config = ModelConfig("transformer", LAYERS, HEADS, WIDTH, CONTEXT)
    model = build(config, seed=0).eval()
    others = {name: _gpt2(activation) for name, activation in ACTIVATIONS.items()}
    for batch in BATCHES:
        generator = torch.Generator().manual_seed(0)
        numbers = torch.randn(batch.sequences, batch.tokens, generator=generator)
        embedded = torch.randn(batch.sequences, batch.tokens, WIDTH, generator=generator)
        with torch.no_grad():
            times = in_turns(
                {
                    "traced": partial(model, numbers, trace=True),
                    "plain": partial(model, numbers),
                    **{name: partial(other, embedded) for name, other in others.items()},
                },
                _rounds(batch.rounds, quick),
            )
        traced, plain = times["traced"], times["plain"]
        slower = float(np.median(traced / plain))
        yield Line(
            f"forward pass with the full trace against without, {batch}",
            f"{slower:.2f} × ({_ms(traced)} to {_ms(plain)})",
            f"at most {TRACE_LIMIT} ×",
            slower <= TRACE_LIMIT,
        )
        for name in others:
            faster = float(np.median(times[name] / traced))
            yield Line(
                f"forward pass with the full trace against {name} with attentions, {batch}",
                f"{faster:.2f} × as fast ({_ms(traced)} to {_ms(times[name])})",
                f"at least {GPT2_AIM} ×",
                faster >= GPT2_AIM,
            )


def in_turns(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, NDArray[np.float64]]:
    """Seconds of every call in every round, (rounds,) each; who goes first changes from round to round."""
    times = {name: np.empty(rounds) for name in calls}
    names = list(calls)
    for index in range(-WARM_UP, rounds):
        first = index % len(names)
        for name in names[first:] + names[:first]:
            start = time.perf_counter()
            calls[name]()
            if index >= 0:
                times[name][index] = time.perf_counter() - start
    return times


def _gpt2(activation: str) -> Callable[[Tensor], Tensor]:
    """Hugging Face's GPT-2, from embeddings (B, T, E) to its attentions, eager and without a cache."""
    # By name, since the type checker runs where transformers is not installed.
    transformers = importlib.import_module("transformers")
    config = transformers.GPT2Config(
        vocab_size=1,
        n_positions=CONTEXT,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        activation_function=activation,
        use_cache=False,
        attn_implementation="eager",
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.GPT2Model(config).eval()

    def call(embedded: Tensor) -> Tensor:
        output = model(inputs_embeds=embedded, output_attentions=True)
        if len(output.attentions) != LAYERS:
            raise RuntimeError("GPT-2 did not return its attentions")
        last: Tensor = output.last_hidden_state
        return last

    return call


def _rounds(full: int, quick: bool) -> int:
    return max(3, full // 10) if quick else full


def _ms(times: NDArray[np.float64]) -> str:
    return f"{1000 * float(np.median(times)):.1f} ms"
