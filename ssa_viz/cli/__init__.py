"""The command line: train a model, measure a checkpoint, list what is there, and look after runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

from ssa_viz.cli.evaluate import add_evaluate, add_list, first_difference
from ssa_viz.cli.language import add_language
from ssa_viz.cli.maps import add_maps
from ssa_viz.cli.options import OWN, train_config
from ssa_viz.cli.runs import add_runs
from ssa_viz.cli.table import add_table
from ssa_viz.cli.train import add_train
from ssa_viz.errors import SSAVizError

__all__ = ["OWN", "first_difference", "main", "train_config"]

MOST_THREADS = 1024


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 on success, 1 on one of our errors or a failed check, 2 on bad usage."""
    arguments = _parser().parse_args(argv)
    torch.set_num_threads(getattr(arguments, "threads", 1))
    try:
        code: int = arguments.run(arguments)
    except SSAVizError as error:
        print(f"ssa-viz: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"ssa-viz: {error.filename or 'a file'}: {(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nssa-viz: stopped", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ssa-viz", description=__doc__)
    parser.add_argument(
        "--threads",
        type=_threads,
        default=argparse.SUPPRESS,
        help="CPU threads, default 1; results depend on it in the last bits",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    add_train(commands.add_parser("train", help="train a model and save it, or go on with a run"))
    add_evaluate(commands.add_parser("evaluate", help="measure checkpoints and print their cards"))
    add_maps(commands.add_parser("maps", help="measure checkpoints over every combination of two shifts"))
    add_table(commands.add_parser("table", help="every scoring function on every measure"))
    add_list(commands.add_parser("list", help="list the checkpoints in a folder"))
    add_runs(commands.add_parser("runs", help="list, pause, resume, stop, discard, export runs"))
    add_language(commands.add_parser("language", help="make text ready and train language models"))
    return parser


def _threads(text: str) -> int:
    if not 1 <= (count := int(text)) <= MOST_THREADS:
        raise argparse.ArgumentTypeError(f"must be from 1 to {MOST_THREADS}, not {count}")
    return count
