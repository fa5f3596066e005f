"""A field of typed numbers: what could not be read in it, and how the address holds it."""

from __future__ import annotations

from ssa_viz.sequence import Parsed, format_numbers, parse
from ssa_viz.ui.markdown import plain

MOST_SHOWN = 5
MOST_IN_ADDRESS = 2000  # characters of a sequence; browsers and proxies refuse much longer addresses


def problem_list(parsed: Parsed) -> str:
    """The first problems, a Markdown list; empty if everything was read."""
    shown = [f"- {plain(p.sentence)}" for p in parsed.problems[:MOST_SHOWN]]
    more = len(parsed.problems) - len(shown)
    return "\n".join([*shown, *([f"- and {more} more"] if more > 0 else [])])


def in_address(typed: str) -> str:
    """A typed sequence as the address holds it: as it is, or, if it is too long, its first numbers."""
    if len(typed) <= MOST_IN_ADDRESS:
        return typed
    numbers = format_numbers(parse(typed).numbers)
    return numbers if len(numbers) <= MOST_IN_ADDRESS else numbers[:MOST_IN_ADDRESS].rpartition(" ")[0]
