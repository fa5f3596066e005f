"""Softmax against PyTorch's own, plain and inside its fused attention."""

import torch
from torch.nn import functional as F

from ssa_viz.scoring import SCORING

BATCH, HEADS, TOKENS, WIDTH = 2, 3, 7, 5


def test_equals_torch_softmax() -> None:
    logits = 20 * torch.randn(BATCH, HEADS, TOKENS, 11, generator=torch.Generator().manual_seed(0))
    weights = SCORING["softmax"](HEADS)(logits, torch.ones(11, dtype=torch.bool))
    torch.testing.assert_close(weights, logits.softmax(dim=-1), rtol=0, atol=0)


def test_equals_fused_attention_under_a_mask() -> None:
    generator = torch.Generator().manual_seed(1)
    query, key, value = torch.randn(3, BATCH, HEADS, TOKENS, WIDTH, generator=generator, dtype=torch.float64)
    visible = torch.rand(BATCH, 1, TOKENS, TOKENS, generator=generator) < 0.5
    visible[1, 0, 3] = False
    logits = query @ key.transpose(-2, -1) / WIDTH**0.5
    heads = SCORING["softmax"](HEADS)(logits, visible) @ value
    fused = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
    torch.testing.assert_close(heads, fused, rtol=1e-12, atol=1e-14)


def test_adding_a_constant_changes_nothing() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64).view(1, 1, 1, 3)
    function, visible = SCORING["softmax"](1), torch.ones(3, dtype=torch.bool)
    torch.testing.assert_close(function(logits + 100, visible), function(logits, visible))
