"""From tensors to kernels: when a fused pass can be used, and its work shared among threads."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Below this many logits PyTorch's own operations are as fast, and nothing has to be compiled.
LEAST_SIZE = 2**15


# The environment variable that switches the kernels off: they round the last bits differently, and weights that were
# trained without them come out bit for bit only without them.
SWITCH = "SSA_VIZ_KERNELS"


@cache
def installed() -> bool:
    """Whether numba is there; without it every scoring function still works, more slowly."""
    return importlib.util.find_spec("numba") is not None


def usable(logits: Tensor) -> bool:
    """Whether the kernels can work on these logits (B, H, Q, K): float32 on a CPU, and large enough to gain."""
    return (
        logits.ndim == 4
        and logits.dtype == torch.float32
        and logits.device.type == "cpu"
        and logits.numel() >= LEAST_SIZE
        and installed()
        and os.environ.get(SWITCH) != "0"
        and not torch.compiler.is_compiling()
    )


def blocks(tensor: Tensor) -> NDArray[np.float32]:
    """(B, H, Q, K) as a contiguous array (B·H, Q, K), a view where possible."""
    array: NDArray[np.float32] = tensor.detach().contiguous().flatten(0, 1).numpy()
    return array


def masks(visible: Tensor, shape: torch.Size) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A mask that broadcasts to (B, H, Q, K) as its distinct blocks (M, Q, K), 1 or 0, and the block of each (B·H,)."""
    own = visible.view((1,) * (4 - visible.ndim) + visible.shape)
    of_batch, of_head = (size > 1 for size in own.shape[:2])
    cells = own.expand(*own.shape[:2], *shape[2:]).to(torch.float32).flatten(0, 1).contiguous()
    batch, head = np.arange(shape[0])[:, None] * of_batch, np.arange(shape[1])[None] * of_head
    return cells.numpy(), (batch * own.shape[1] + head).ravel()


def run(kernel: Callable[..., None], *arguments: Any, count: int) -> None:
    """`kernel(*arguments, start, stop)` over `count` blocks, an even share for each of PyTorch's threads.

    A block's result does not depend on how many threads there are.
    """
    threads = min(torch.get_num_threads(), count)
    edges = [count * i // threads for i in range(threads + 1)]
    others = [_pool(threads).submit(kernel, *arguments, *edges[i : i + 2]) for i in range(1, threads)]
    kernel(*arguments, *edges[:2])
    for other in others:
        other.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="ssa-viz-kernel")


# Threads do not survive a fork; the child makes its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
