"""Where a run computes."""

from __future__ import annotations

import torch

from ssa_viz.errors import InvalidInputError


def devices() -> dict[str, str]:
    """The devices of this machine, name → words for people; the CPU is always there."""
    found = {"cpu": "CPU"}
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        found[f"cuda:{index}"] = (
            f"{torch.cuda.get_device_name(index)}, {free / 2**30:.1f} of {total / 2**30:.1f} GB free"
        )
    if torch.backends.mps.is_available():
        found["mps"] = "Apple GPU (MPS)"
    return found


def check_precision(precision: str, device: str) -> None:
    """Refuse bfloat16 on a processor without instructions for it, where a step takes ten times as long and more.

    Raises:
        InvalidInputError: it is one.
    """
    if precision == "bfloat16" and device == "cpu" and not _has_bfloat16():
        raise InvalidInputError(
            "precision bfloat16 is many times slower than float32 on this processor, which has no instructions for it; "
            "choose float32"
        )


def _has_bfloat16() -> bool:
    return any(bool(value) and name.endswith("_bf16") for name, value in torch.cpu.get_capabilities().items())


def device_named(name: str) -> torch.device:
    """The device called `name`: cpu, cuda, cuda:1, mps.

    Raises:
        InvalidInputError: this machine has no such device.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    there = devices()
    wanted = name if device is None or device.type != "cuda" else f"cuda:{device.index or 0}"
    if device is None or wanted not in there:
        raise InvalidInputError(f"there is no device {name!r} here; there is: {', '.join(there)}")
    return torch.device(wanted)
