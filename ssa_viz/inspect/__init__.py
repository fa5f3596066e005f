"""Looking inside a model on one sequence."""

from ssa_viz.inspect.random_numbers import random_numbers
from ssa_viz.inspect.reading import (
    Concentration,
    Problem,
    Reading,
    concentration,
    contextual_mass,
    predicted_line,
    read,
)
from ssa_viz.inspect.sweep import Sweep, magnitudes, sweep

__all__ = [
    "Concentration",
    "Problem",
    "Reading",
    "Sweep",
    "concentration",
    "contextual_mass",
    "magnitudes",
    "predicted_line",
    "random_numbers",
    "read",
    "sweep",
]
