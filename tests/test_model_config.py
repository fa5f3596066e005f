"""What a decoder can be built from, and that its starting weights follow from the seed alone."""

import math

import pytest
import torch

from ssa_viz.errors import InvalidInputError, UnknownNameError
from ssa_viz.model import VARIANTS, ModelConfig, build
from ssa_viz.scoring import SCORING

every_variant = pytest.mark.parametrize("variant", VARIANTS)


@pytest.mark.parametrize("scoring", list(SCORING))
@every_variant
def test_build_follows_the_seed_and_leaves_the_global_state_alone(scoring: str, variant: str) -> None:
    config = ModelConfig(scoring=scoring, variant=variant, width=20)
    torch.manual_seed(17)
    state = torch.get_rng_state()
    first = build(config, seed=5).state_dict()
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(18)
    second, other = build(config, seed=5).state_dict(), build(config, seed=6).state_dict()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())
    moved = {name for name, tensor in first.items() if not torch.equal(tensor, other[name])}
    assert moved == {n for n, t in first.items() if t.ndim == 2}


@every_variant
def test_starting_scale_is_that_of_the_docstring(variant: str) -> None:
    model = build(ModelConfig(variant=variant, width=128, context=97), seed=0)
    writes = 2 * (2 if variant == "transformer" else 1)
    for name, parameter in model.named_parameters():
        if name.endswith(("norm.weight", "mlp.0.weight")):
            assert bool((parameter == 1).all())
        elif name.endswith("bias"):
            assert bool((parameter == 0).all())
        else:
            std = 1.0 if name == "read_in.weight" else 0.02
            if name.endswith(("attention.out.weight", "mlp.3.weight")):
                std /= math.sqrt(writes)
            spread = 4 / math.sqrt(2 * parameter.numel())  # four standard errors
            assert float(parameter.detach().std() / std) == pytest.approx(1, abs=spread), name


def test_causal_mask_is_not_part_of_the_state() -> None:
    assert not any("causal" in name for name in build(ModelConfig(), seed=0).state_dict())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "mamba"}, "variant must be one of attention_only, transformer, not 'mamba'"),
        ({"positions": "rotary"}, "positions must be one of learned, none"),
        ({"readout": "mean"}, "readout must be one of residual, attention"),
        ({"layers": 0}, "layers must be a whole number from 1 to 64, not 0"),
        ({"layers": 65}, "layers must be a whole number"),
        ({"heads": True}, "heads must be a whole number"),
        ({"heads": 2.0}, "heads must be a whole number"),
        ({"width": -4}, "width must be a whole number from 1 to 4096"),
        ({"context": 4097}, "context must be a whole number"),
        ({"width": 62}, r"width \(62\) must be a multiple of heads \(4\)"),
        ({"scoring": "ssa", "initial": {"b": -1.0}}, "b must be a number from"),
    ],
)
def test_impossible_config_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ModelConfig(**changes)  # type: ignore[arg-type]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown scoring function 'nope'.*softmax, ssa"):
        ModelConfig(scoring="nope")
    with pytest.raises(UnknownNameError, match="softmax has no parameter 'n'"):
        ModelConfig(scoring="softmax", initial={"n": 2.0})
    with pytest.raises(UnknownNameError, match="ssa has no parameter 'c'; it has: n, b"):
        ModelConfig(scoring="ssa", learnable={"c": False})


def test_initial_and_fixed_parameters_reach_every_layer() -> None:
    config = ModelConfig(scoring="ssa", layers=3, initial={"n": 2.0, "b": 0.5}, learnable={"b": False})
    model = build(config, seed=0)
    for block in range(3):
        values = model.get_submodule(f"blocks.{block}.attention.scoring").values()  # type: ignore[operator]
        assert values["n"] == pytest.approx([2.0] * 4)
        assert values["b"] == [0.5] * 4
    names = {name.rsplit(".", 1)[1] for name, _ in model.named_parameters() if ".scoring." in name}
    assert names == {"raw_n"}
