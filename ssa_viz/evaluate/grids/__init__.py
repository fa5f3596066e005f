"""Error maps: one model over every combination of two shifts, beside rivals that need no training."""

from ssa_viz.evaluate.grids.cell import COUNTINGS, MODEL, countings
from ssa_viz.evaluate.grids.grid import SEQUENCES, Along, Grid, grids
from ssa_viz.evaluate.grids.measured import Measured, assembled, cells, key
from ssa_viz.evaluate.grids.store import Store, usual

__all__ = [
    "COUNTINGS",
    "MODEL",
    "SEQUENCES",
    "Along",
    "Grid",
    "Measured",
    "Store",
    "assembled",
    "cells",
    "countings",
    "grids",
    "key",
    "usual",
]
