"""Scoring functions side by side on one row of logits, and how they behave as the logits grow."""

from ssa_viz.inspect.lab.chosen import MOST_KEYS, Chosen, weigh
from ssa_viz.inspect.lab.gradients import jacobian, reached
from ssa_viz.inspect.lab.meeting import Meeting, meet
from ssa_viz.inspect.lab.real import from_reading
from ssa_viz.inspect.lab.row import Row, row
from ssa_viz.inspect.lab.shape import Shape, shape
from ssa_viz.inspect.lab.theorems import Curve, grow, magnify

__all__ = [
    "MOST_KEYS",
    "Chosen",
    "Curve",
    "Meeting",
    "Row",
    "Shape",
    "from_reading",
    "grow",
    "jacobian",
    "magnify",
    "meet",
    "reached",
    "row",
    "shape",
    "weigh",
]
