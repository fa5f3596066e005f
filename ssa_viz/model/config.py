"""What a decoder is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ssa_viz.errors import InvalidInputError
from ssa_viz.scoring import SCORING

VARIANTS = ("attention_only", "transformer")
POSITIONS = ("learned", "none")
READOUTS = ("residual", "attention")
INITS = ("gpt2", "torch")

MAX_LAYERS, MAX_HEADS, MAX_WIDTH, MAX_CONTEXT = 64, 64, 4096, 4096


@dataclass(frozen=True)
class ModelConfig:
    """A decoder over a sequence of numbers.

    Attributes:
        variant: `attention_only` (no normalisation layers, no MLP) or `transformer` (pre-LayerNorm, GELU MLP of
            4 × width).
        layers, heads, width: sizes L, H and E; the head width D is width / heads.
        context: the most tokens that the model reads.
        scoring: name of a registered scoring function.
        initial: its starting parameters, those that differ from the defaults.
        learnable: which of its parameters learn (all, unless stated).
        positions: `learned` absolute position embeddings, or `none`.
        readout: `residual` reads the answer from the final residual stream, as GPT-2 does; `attention` reads it
            from what the last attention layer wrote, leaving out the token's own way past the attention.

        init: starting weights. `gpt2`: normal with standard deviation 0.02, those that write to the residual stream
            divided by √(writes), biases 0, and a read-in of unit scale, since its input is one number and not a
            one-hot token. `torch`: PyTorch's own for each layer, which are larger at these widths.

    Raises:
        InvalidInputError, UnknownNameError: on construction, for a combination that cannot be built.
    """

    variant: str = "attention_only"
    layers: int = 2
    heads: int = 4
    width: int = 64
    context: int = 41
    scoring: str = "softmax"
    initial: Mapping[str, float] = field(default_factory=dict)
    learnable: Mapping[str, bool] = field(default_factory=dict)
    positions: str = "learned"
    readout: str = "residual"
    init: str = "gpt2"

    def __post_init__(self) -> None:
        for name, choice, valid in (
            ("variant", self.variant, VARIANTS),
            ("positions", self.positions, POSITIONS),
            ("readout", self.readout, READOUTS),
            ("init", self.init, INITS),
        ):
            if choice not in valid:
                raise InvalidInputError(f"{name} must be one of {', '.join(valid)}, not {choice!r}")
        for name, size, most in (
            ("layers", self.layers, MAX_LAYERS),
            ("heads", self.heads, MAX_HEADS),
            ("width", self.width, MAX_WIDTH),
            ("context", self.context, MAX_CONTEXT),
        ):
            if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= most:
                raise InvalidInputError(f"{name} must be a whole number from 1 to {most}, not {size!r}")
        if self.width % self.heads:
            raise InvalidInputError(f"width ({self.width}) must be a multiple of heads ({self.heads})")
        # Builds one head, so that a bad scoring name or parameter is refused here and not at the first use.
        SCORING[self.scoring](1, initial=self.initial, learnable=self.learnable)

    @property
    def head_width(self) -> int:
        return self.width // self.heads
