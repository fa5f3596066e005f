"""`ssa-viz maps`: a checkpoint's error over every combination of two shifts, alone or with other processes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import distributed

from ssa_viz import checkpoints
from ssa_viz.checkpoints import Checkpoint
from ssa_viz.cli.evaluate import first_difference
from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.grids import COUNTINGS, MODEL, SEQUENCES, Grid, Measured, Store, assembled, cells, grids
from ssa_viz.evaluate.grids.cell import Cell
from ssa_viz.evaluate.grids.measured import to_document
from ssa_viz.train.ranks import joined, leading, shared

PROGRESS = "cells"  # begins a line that says how many are done, and of how many


def add_maps(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_maps)
    command.add_argument("folders", nargs="+", type=Path, metavar="folder")
    command.add_argument("--kind", help="only this map: width_length, functions_inputs or value_position")
    command.add_argument("--sequences", type=int, default=SEQUENCES, help=f"for each cell, default {SEQUENCES}")
    command.add_argument("--progress", action="store_true", help="say how many cells are done, a line each time")
    action = command.add_mutually_exclusive_group()
    action.add_argument("--to", type=Path, metavar="FOLDER", help="write the maps there, and do not print them")
    action.add_argument(
        "--check", type=Path, metavar="FOLDER", help="compare with the maps there, to six digits; exit 1 if they differ"
    )


def _maps(arguments: argparse.Namespace) -> int:
    code = 0
    # The cells are shared among threads here; more of PyTorch's own within each would change the last bits.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with joined("cpu"):
        for folder in arguments.folders:
            checkpoint = checkpoints.load(folder)
            for grid in _chosen(checkpoint, arguments.kind, arguments.sequences):
                measured = measure(checkpoint, grid, threads=threads, progress=arguments.progress)
                if measured is not None:
                    code = max(code, _told(checkpoint, measured, arguments))
    return code


def measure(checkpoint: Checkpoint, grid: Grid, *, threads: int = 1, progress: bool = False) -> Measured | None:
    """The map, with the cells shared among the processes that `torchrun` started; None in all but the leading one."""
    rank, world = (distributed.get_rank(), distributed.get_world_size()) if shared() else (0, 1)
    count = grid.shape[0] * grid.shape[1]
    places = range(rank, count, world)
    run = checkpoint.config.train
    found: dict[int, Cell] = {}
    for place, cell in cells(checkpoint.model, run, grid, places, threads=threads):
        found[place] = cell
        if progress and leading():
            print(PROGRESS, min(len(found) * world, count), count, flush=True)
    if shared():
        parts: list[dict[int, Cell]] = [{} for _ in range(world)]
        distributed.all_gather_object(parts, found)
        found = {place: cell for part in parts for place, cell in part.items()}
    return assembled(run, grid, found) if leading() else None


def _chosen(checkpoint: Checkpoint, kind: str | None, sequences: int) -> list[Grid]:
    there = grids(checkpoint.config.train, sequences=sequences)
    if kind is None:
        return list(there.values())
    if kind not in there:
        raise InvalidInputError(f"{checkpoint.config.name} has no map {kind!r}; it has: {', '.join(there)}")
    return [there[kind]]


def _told(checkpoint: Checkpoint, measured: Measured, arguments: argparse.Namespace) -> int:
    """Write, compare or print one map; 1 if it differs from what it should be."""
    config, grid = checkpoint.config, measured.grid
    if arguments.to is not None:
        print(f"{config.name}: {Store(arguments.to, arguments.to).keep(config, measured).name}", flush=True)
        return 0
    if arguments.check is not None:
        saved = Store(arguments.check, arguments.check).find(config, grid)
        if saved is None:
            print(f"{config.name}, {grid.name}: there is no map of these weights in {arguments.check}")
            return 1
        new, old = (json.loads(json.dumps(to_document(config, each))) for each in (measured, saved))
        differs = first_difference(new, old, "map")
        print(f"{config.name}, {grid.name}: {f'DIFFERS: {differs}' if differs else 'the same'}", flush=True)
        return 1 if differs else 0
    _print(config.name, measured)
    return 0


def _print(name: str, measured: Measured) -> None:
    grid = measured.grid
    for who in (MODEL, *measured.rivals):
        for kind in measured.countings:
            values = measured.found[who].get(kind)
            if values is None:
                continue
            print(f"\n{name if who == MODEL else who}: {COUNTINGS[kind]}")
            print(f"{grid.rows.label} down, {grid.columns.label} across")
            print("".join(f"{text:>10}" for text in ("", *(f"{value:g}" for value in grid.columns.values))))
            for row, numbers in zip(grid.rows.values, values, strict=True):
                print("".join(f"{text:>10}" for text in (f"{row:g}", *(f"{number:.6g}" for number in numbers))))
