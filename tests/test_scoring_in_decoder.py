"""Every scoring function trains in the decoder, in float32 and bfloat16, with causal and padding masks."""

from __future__ import annotations

import pytest
import torch

from ssa_viz.model import Decoder, ModelConfig, build
from ssa_viz.scoring import SCORING

BATCH, TOKENS, STEPS = 7, 11, 20

every_function = pytest.mark.parametrize("name", list(SCORING))


def train(model: Decoder, *, autocast: bool) -> list[float]:
    """Losses while the model learns which numbers are above 0, on one batch of sequences padded to their lengths."""
    generator = torch.Generator().manual_seed(4)
    numbers = torch.randn(BATCH, TOKENS, generator=generator)
    numbers[0, 3] = 70.0
    targets = (numbers > 0).float()
    real = torch.arange(TOKENS) < torch.randint(2, TOKENS + 1, (BATCH,), generator=generator)[:, None]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            predictions = model(numbers, real=real).predictions
        loss = torch.nn.functional.binary_cross_entropy_with_logits(predictions.float()[real], targets[real])
        optimizer.zero_grad()
        loss.backward()
        assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)
        optimizer.step()
        losses.append(loss.item())
    return losses


@every_function
@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("variant", ["attention_only", "transformer"])
def test_learns_without_nan(name: str, autocast: bool, variant: str) -> None:
    model = build(ModelConfig(variant, layers=2, heads=3, width=15, context=TOKENS, scoring=name, init="torch"), 0)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    losses = train(model, autocast=autocast)
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())
    assert losses[-1] < 0.9 * losses[0]
    moved = {key for key, value in model.state_dict().items() if not torch.equal(value, before[key])}
    learned = [p.name for p in SCORING[name].parameters_spec if not p.constant]
    assert {f"blocks.{layer}.attention.scoring.raw_{p}" for layer in range(2) for p in learned} <= moved
