"""What only a GPU can show. Without one these say that they did not run."""

import dataclasses

import pytest
import torch

from ssa_viz.model import ModelConfig
from ssa_viz.train import Progress, TrainConfig, Training, train

CONFIG = TrainConfig(
    model=ModelConfig("transformer", layers=2, heads=4, width=32, context=15, scoring="ssa"),
    prompt_format="labelled",
    length=8,
    steps=200,
    batch=64,
    learning_rate=3e-3,
)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here: training on one was not tested")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_learns_on_a_gpu_and_goes_on_exactly_from_a_state(precision: str) -> None:
    config = dataclasses.replace(CONFIG, precision=precision)
    losses = [e.loss for e in train(config, every=50, device="cuda") if isinstance(e, Progress)]
    assert losses[-1] < 0.8 * losses[0]
    run = Training(config, device="cuda")
    for _ in range(5):
        run.advance()
    again = Training(config, device="cuda", state=run.state())
    run.advance()
    again.advance()
    for name, tensor in run.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)
