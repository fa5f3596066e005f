"""The same decoder with room for longer sequences than it was trained on."""

from __future__ import annotations

from dataclasses import replace

from ssa_viz.model.config import ModelConfig
from ssa_viz.model.decoder import Decoder, build

SEED = 40_000  # of the positions that no training touched


def lengthened(model: Decoder, context: int) -> Decoder:
    """`model` itself if it reads `context` tokens; else a copy that does.

    A learned position beyond the model's own context has the starting value that any untrained position of its
    recipe has, drawn from one fixed seed. That is what a longer table would hold after training on short prompts, as
    a position that is never read gets no gradient (only weight decay, which would bring it nearer to 0).

    Raises:
        InvalidInputError: more tokens than any model may have.
    """
    if context <= model.config.context:
        return model
    config: ModelConfig = replace(model.config, context=context)
    longer = build(config, SEED)
    own = model.state_dict()
    if model.position is not None and longer.position is not None:
        table = longer.position.weight.detach().clone()
        table[: model.config.context] = own["position.weight"]
        own["position.weight"] = table
    longer.load_state_dict(own)
    longer.to(next(model.parameters()).device, next(model.parameters()).dtype)
    return longer.train(model.training).requires_grad_(any(p.requires_grad for p in model.parameters()))
