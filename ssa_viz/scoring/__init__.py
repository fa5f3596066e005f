"""Scoring functions: attention logits and a visibility mask in, attention weights out. One file each."""

from ssa_viz.registry import Registry
from ssa_viz.scoring.base import Parameter, ScoringFunction

SCORING: Registry[ScoringFunction] = Registry(
    "ssa_viz.scoring",
    ScoringFunction,  # type: ignore[type-abstract]
    "scoring function",
)

__all__ = ["SCORING", "Parameter", "ScoringFunction"]
