"""What a forward pass computed on the way to its predictions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ssa_viz.errors import NonFiniteError


@dataclass(frozen=True)
class LayerTrace:
    """One layer's attention.

    Attributes:
        logits: x before the scoring function, (B, H, Q, K): q·k/√D, or the function's own comparison of the two;
            hidden keys hold their logit too.
        weights: after normalising, (B, H, Q, K), 0 where a key is hidden.
        head_outputs: each head's weighted sum of values, before the output projection, (B, H, Q, D).
        implementation: how the weights were computed, `torch` or `fused`; the definition is one.
    """

    logits: Tensor
    weights: Tensor
    head_outputs: Tensor
    implementation: str


@dataclass(frozen=True)
class Trace:
    """The inside of one forward pass: the very tensors it used, not copies, so tracing costs next to nothing.

    Attributes:
        layers: one `LayerTrace` per layer, first to last.
        residual: the residual stream (B, T, E) before the first layer and after each, L + 1 tensors.
        visible: which keys each query sees, boolean, broadcasting against (B, H, Q, K).
        predictions: what the model answers at each token, (B, T).
    """

    layers: tuple[LayerTrace, ...]
    residual: tuple[Tensor, ...]
    visible: Tensor
    predictions: Tensor

    def logits(self) -> Tensor:
        """All layers' logits, (L, B, H, Q, K)."""
        return torch.stack([layer.logits for layer in self.layers])

    def weights(self) -> Tensor:
        """All layers' weights, (L, B, H, Q, K)."""
        return torch.stack([layer.weights for layer in self.layers])

    def head_outputs(self) -> Tensor:
        """All layers' head outputs, (L, B, H, Q, D)."""
        return torch.stack([layer.head_outputs for layer in self.layers])

    def residual_stream(self) -> Tensor:
        """The residual stream at every layer, (L + 1, B, T, E)."""
        return torch.stack(self.residual)

    def check_finite(self) -> Trace:
        """Return self if every visible logit, every weight, residual and prediction is finite.

        Raises:
            NonFiniteError: naming the first layer where it is not, or the read-out.
        """
        for index, layer in enumerate(self.layers):
            logits = layer.logits.masked_fill(~self.visible, 0.0)
            finite = torch.isfinite(logits).all() and torch.isfinite(layer.weights).all()
            if not (finite and torch.isfinite(self.residual[index + 1]).all()):
                raise NonFiniteError(_overflow(f"layer {index}"))
        if not torch.isfinite(self.predictions).all():
            raise NonFiniteError(_overflow("the read-out"))
        return self


def _overflow(where: str) -> str:
    return f"{where} produced NaN or infinity; the numbers are too large for this model, try smaller ones"
