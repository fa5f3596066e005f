"""The decoder of the synthetic tasks, with a pluggable scoring function and a trace of everything it computes."""

from ssa_viz.model.config import VARIANTS, ModelConfig
from ssa_viz.model.decoder import Decoder, build
from ssa_viz.model.lengthen import lengthened
from ssa_viz.model.trace import LayerTrace, Trace

__all__ = ["VARIANTS", "Decoder", "LayerTrace", "ModelConfig", "Trace", "build", "lengthened"]
