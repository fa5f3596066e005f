"""How many sequences a second an error map is measured with."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from benchmark_line import Line

from ssa_viz import checkpoints
from ssa_viz.evaluate.grids import cells, grids

MODELS = Path(__file__).resolve().parents[1] / "models"
NAMES = ("every-attention_only-softmax", "every-attention_only-ssa", "every-transformer-softmax")
LENGTH = 40.0
AIM = 20_000


def maps(threads: int, *, quick: bool) -> Iterator[Line]:
    """Cells of 40 numbers, drawing the prompts, the rivals and the counting included."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as `ssa-viz maps` does: a thread a cell
    try:
        for name in NAMES:
            loaded = checkpoints.load(MODELS / name)
            grid = grids(loaded.config.train, sequences=256 if quick else 2048)["width_length"]
            grid = replace(grid, rows=replace(grid.rows, values=(LENGTH,)))
            places = range(grid.shape[1])
            for _ in cells(loaded.model, loaded.config.train, replace(grid, sequences=64), places, threads=threads):
                pass  # compiles the loops
            began = time.perf_counter()
            for _ in cells(loaded.model, loaded.config.train, grid, places, threads=threads):
                pass
            found = len(places) * grid.sequences / (time.perf_counter() - began)
            what = f"sequences of {LENGTH:.0f} numbers in an error map, {name}, {threads} threads"
            yield Line(what, f"{found:,.0f} a second", f"at least {AIM:,} a second", found >= AIM)
    finally:
        torch.set_num_threads(before)
