"""Several processes that train one model together, as `torchrun` starts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed


@contextmanager
def joined(device: str) -> Iterator[str]:
    """Join the other processes if `torchrun` started this one; yields the device that this one is to use.

    NCCL between GPUs, one a process; gloo between CPUs.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield device
        return
    on_gpu = device.startswith("cuda")
    if on_gpu:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def shared() -> bool:
    """Whether this process trains together with others."""
    return distributed.is_available() and distributed.is_initialized()


def leading() -> bool:
    """Whether this process is the one that writes; true for a process alone."""
    return not shared() or distributed.get_rank() == 0


def agreed(value: int, device: torch.device) -> int:
    """The leader's `value`, in every process; all have to ask at the same step."""
    if not shared():
        return value
    message = torch.tensor([value], device=device)
    distributed.broadcast(message, 0)
    return int(message)
