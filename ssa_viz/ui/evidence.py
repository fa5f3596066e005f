"""What all trained seeds say about one task and architecture, as the pages show it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate import report
from ssa_viz.evaluate.report import Evidence, agreement, spread
from ssa_viz.scoring import SCORING
from ssa_viz.train.presets import SCORED
from ssa_viz.ui import cache


def over_seeds(task: str, variant: str) -> Evidence | None:
    """What models/seeds.json holds on a task and architecture; None if it has nothing or nothing usable."""
    try:
        return report.over_seeds(task, cache.seeds(cache.MODELS)[f"{task}-{variant}"])
    except (KeyError, InvalidInputError):
        # The file may be missing, of another version, or edited by hand; the pages do without it and say so.
        return None


def table(found: Evidence) -> None:
    """Draw one line a measure: mean ± standard deviation of each function, and the seeds that disagree."""
    first, second = (SCORING[scoring].label for scoring in SCORED)
    count = len(found.seeds)
    st.table(
        pd.DataFrame(
            [
                {
                    "Lower is better": row.name,
                    first: spread(row.comparison.first.mean, row.comparison.first.std, row.share),
                    second: spread(row.comparison.second.mean, row.comparison.second.std, row.share),
                    f"{second} lower in": agreement(row, count),
                }
                for row in found.rows
            ]
        ).set_index("Lower is better")
    )
