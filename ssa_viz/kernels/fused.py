"""The fused passes as functions of tensors. numba is imported at the first use, not with the library."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ssa_viz.kernels.launch import blocks, masks, run, usable

# With a larger power the rounding of log₂, times n, would show in SSA's weights.
MOST_N = 16.0

__all__ = ["MOST_N", "softmax", "softmax_gradient", "ssa", "ssa_gradients", "usable"]


def softmax(logits: Tensor, visible: Tensor) -> Tensor:
    """Weights (B, H, Q, K) of float32 logits; `visible` broadcasts to them."""
    from ssa_viz.kernels.loops import softmax_forward

    weights = torch.empty_like(logits, memory_format=torch.contiguous_format)
    cells, mask_of = masks(visible, logits.shape)
    run(softmax_forward, blocks(logits), cells, mask_of, blocks(weights), count=len(mask_of))
    return weights


def softmax_gradient(weights: Tensor, upstream: Tensor) -> Tensor:
    """The gradient by the logits, from weights (B, H, Q, K) that `softmax` gave and the gradient by them."""
    from ssa_viz.kernels.loops import softmax_backward

    by_logits = torch.empty_like(weights)
    into = blocks(by_logits)
    run(softmax_backward, blocks(weights), blocks(upstream), into, count=len(into))
    return by_logits


def ssa(logits: Tensor, visible: Tensor, n: Tensor, b: Tensor) -> Tensor:
    """Weights (B, H, Q, K) of float32 logits; n ≤ `MOST_N` and b hold one value per head."""
    from ssa_viz.kernels.loops import ssa_forward

    weights = torch.empty_like(logits, memory_format=torch.contiguous_format)
    cells, mask_of = masks(visible, logits.shape)
    parameters = (_per_head(n), _per_head(b))
    run(ssa_forward, blocks(logits), cells, mask_of, *parameters, blocks(weights), count=len(mask_of))
    return weights


def ssa_gradients(
    logits: Tensor, weights: Tensor, upstream: Tensor, n: Tensor, b: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by the logits (B, H, Q, K), and by n and b in the shape of n."""
    from ssa_viz.kernels.loops import ssa_backward

    batch, heads = weights.shape[:2]
    by_logits = torch.empty_like(weights)
    shares = np.empty((2, batch * heads), dtype=np.float32)
    parameters = (_per_head(n), _per_head(b))
    arrays = (blocks(logits), blocks(weights), blocks(upstream), *parameters, blocks(by_logits))
    run(ssa_backward, *arrays, *shares, count=batch * heads)
    by_n, by_b = torch.from_numpy(shares).view(2, batch, heads).sum(1).view(2, *n.shape)
    return by_logits, by_n, by_b


def _per_head(values: Tensor) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return values.detach().contiguous().view(-1).numpy()
