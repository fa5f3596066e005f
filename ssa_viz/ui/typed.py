"""What could not be read in a field of typed numbers, as a list."""

from __future__ import annotations

from ssa_viz.sequence import Parsed
from ssa_viz.ui.markdown import plain

MOST_SHOWN = 5


def problem_list(parsed: Parsed) -> str:
    """The first problems, a Markdown list; empty if everything was read."""
    shown = [f"- {plain(p.sentence)}" for p in parsed.problems[:MOST_SHOWN]]
    more = len(parsed.problems) - len(shown)
    return "\n".join([*shown, *([f"- and {more} more"] if more > 0 else [])])
