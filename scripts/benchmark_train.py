"""A training step against the same model on GPT-2's classes, against its matrix products alone, SSA against softmax.

All take turns in one process with the same number of threads; a ratio is the median over rounds of the ratio within a
round.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from benchmark_forward import in_turns
from benchmark_line import Line
from numpy.typing import NDArray
from torch import Tensor, nn

from ssa_viz.model import ModelConfig
from ssa_viz.tasks import TASKS
from ssa_viz.train import TrainConfig, Training

BATCH, NUMBERS = 64, 41
SHAPES = {(12, 8, 256): (1.5, 3), (2, 4, 64): (2.0, 40)}  # layers, heads, width → our aim against GPT-2, rounds
SSA_AIM = 1.25
LABELLED = 2 * NUMBERS - 1  # tokens


def train(*, quick: bool) -> Iterator[Line]:
    """Float32 steps on labelled prompts of `every`, as the Train page's paper preset has them."""
    for (layers, heads, width), (aim, rounds) in SHAPES.items():
        model = ModelConfig("transformer", layers, heads, width, LABELLED)
        config = TrainConfig(
            model=model, prompt_format="labelled", length=NUMBERS, batch=BATCH, steps=10**6, schedule="constant"
        )
        steps: dict[str, Callable[[], object]] = {
            "ours": Training(config).advance,
            "SSA": Training(replace(config, model=replace(model, scoring="ssa"))).advance,
            "GPT-2": _gpt2_step(config),
            "products": _products(model),
        }
        times = in_turns(steps, max(2, rounds // 10) if quick else rounds)
        name = f"{layers} × {heads} × {width}, batch {BATCH}, {NUMBERS} labelled numbers"
        faster = _ratio(times["GPT-2"], times["ours"])
        yield Line(
            f"training step against GPT-2's classes with eager attention, {name}",
            f"{faster:.2f} × as fast ({_ms(times['ours'])} to {_ms(times['GPT-2'])})",
            f"at least {aim} ×",
            faster >= aim,
        )
        yield Line(
            f"the matrix products' share of our training step, {name}",
            f"{100 * _ratio(times['products'], times['ours']):.0f}% ({_ms(times['products'])})",
        )
        slower = _ratio(times["SSA"], times["ours"])
        yield Line(
            f"training step with SSA against softmax, {name}",
            f"{slower:.2f} × ({_ms(times['SSA'])})",
            f"at most {SSA_AIM} ×",
            slower <= SSA_AIM,
        )


def _gpt2_step(config: TrainConfig) -> Callable[[], object]:
    """One step of the same training on Hugging Face's GPT-2: the same prompts, loss, clipping and AdamW."""
    # By name, since the type checker runs where transformers is not installed.
    transformers = importlib.import_module("transformers")
    model = config.model
    body = transformers.GPT2Model(
        transformers.GPT2Config(
            vocab_size=1, n_positions=model.context, n_embd=model.width, n_layer=model.layers, n_head=model.heads,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, attn_implementation="eager",
            bos_token_id=None, eos_token_id=None,
        )
    ).train()  # fmt: skip
    read_in, read_out = nn.Linear(1, model.width), nn.Linear(model.width, 1)
    parameters = [*body.parameters(), *read_in.parameters(), *read_out.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate)
    task = TASKS[config.task]()
    data = torch.Generator().manual_seed(0)

    def step() -> None:
        prompts = task.sample(config.batch, config.length, data, prompt_format=config.prompt_format)
        hidden = body(inputs_embeds=read_in(prompts.tokens[..., None])).last_hidden_state
        predictions = read_out(hidden).squeeze(-1)[:, prompts.reads]
        loss = task.loss(predictions, prompts.answers).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, config.clip)
        optimizer.step()

    return step


def _products(model: ModelConfig) -> Callable[[], object]:
    """Every matrix product of a step and nothing else: forward once, backward twice as many of the same size."""
    tokens, width = BATCH * LABELLED, model.width
    dense = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    left = {inner: torch.randn(tokens, inner) for inner, _ in dense}
    right = {shape: torch.randn(shape) for shape in dense}
    grads = {outer: torch.randn(tokens, outer) for _, outer in dense}
    pairs = BATCH * model.heads
    query, weights = torch.randn(pairs, LABELLED, model.head_width), torch.randn(pairs, LABELLED, LABELLED)
    key = query.transpose(1, 2)

    def call() -> Tensor:
        for _ in range(model.layers):
            for shape in dense:
                inner, outer = shape
                last = left[inner] @ right[shape]
                grads[outer] @ right[shape].T
                left[inner].T @ grads[outer]
            for _ in range(3):  # forward, and one gradient for each factor
                query @ key
                weights @ query
        return last

    return call


def _ratio(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.median(one / other))


def _ms(times: NDArray[np.float64]) -> str:
    return f"{1000 * float(np.median(times)):.1f} ms"
