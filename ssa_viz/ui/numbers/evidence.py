"""What all trained seeds say about the pair on the page, and what no attention function can mend."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from ssa_viz.evaluate.seeds import Comparison, compare
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.train.presets import SCORED
from ssa_viz.ui import cache

QUANTIFIER_ROWS = (
    ("Largest weight in the row of an injected 70", ("injected", "70", "largest_weight")),
    ("Wrong at an injected 70, the answer already settled", ("injected", "70", "at_settled")),
    ("Wrong from an injected 70 on", ("injected", "70", "from")),
    ("Wrong from an injected −70 on", ("injected", "-70", "from")),
    ("Wrong with numbers 10 times as wide (σ = 10)", ("wider_inputs", "10")),
    ("Wrong in distribution", ("in_distribution",)),
)
LINEAR_ROWS = (
    ("Largest weight in the row of an injected 70", ("injected", "70", "largest_weight")),
    ("Squared error after an injected 70", ("injected", "70", "after")),
    ("Squared error at an injected 70", ("injected", "70", "at")),
    ("Squared error with x 10 times as wide (σ = 10)", ("wider_inputs", "10")),
    ("Squared error with steeper lines (σ = 10)", ("wider_functions", "10")),
    ("Squared error in distribution", ("in_distribution",)),
)


def evidence(task: str, variant: str) -> None:
    """The shipped pair's numbers over all seeds, with the seeds that disagree."""
    if variant == "transformer":
        st.info(
            "In this architecture every token also carries its own number past the attention, in its residual "
            "stream. At the injected number's own position that alone can decide the answer, and no scoring "
            "function, SSA included, can mend it. Look at the positions after it.",
            icon=":material/info:",
        )
    entry = cache.seeds().get(f"{task}-{variant}")
    if entry is None:
        st.caption("The numbers over all seeds (models/seeds.json) are missing or cannot be read.")
        return
    boolean = TASKS[task].boolean
    seeds = entry["seeds"]
    found = []
    for name, path in QUANTIFIER_ROWS if boolean else LINEAR_ROWS:
        comparison = compare(*(entry["cards"][scoring] for scoring in SCORED), path, seeds)
        if comparison is not None:
            found.append((name, comparison, boolean or "weight" in name))
    shipped = " and ".join(f"{SCORING[name].label} {seed}" for name, seed in entry["shipped"].items())
    with st.expander(f"These are one seed each. What do all {len(seeds)} say?", icon=":material/fact_check:"):
        st.table(pd.DataFrame([_row(*row) for row in found]).set_index("Lower is better"))
        st.caption(
            f"Mean ± standard deviation over {len(seeds)} seeds of weights and data, on test prompts that no model "
            f"was trained or chosen on. Shown on this page: the seed with the median error in distribution "
            f"({shipped}). models/README.md has the commands."
        )


def _row(name: str, comparison: Comparison, share: bool) -> dict[str, str]:
    first, second = (SCORING[scoring].label for scoring in SCORED)
    worse = ", ".join(map(str, comparison.worse))
    return {
        "Lower is better": name,
        first: _spread(comparison.first.mean, comparison.first.std, share),
        second: _spread(comparison.second.mean, comparison.second.std, share),
        f"{second} lower in": f"{len(comparison.first.values) - len(comparison.worse)} of "
        f"{len(comparison.first.values)} seeds" + (f" (not in seed {worse})" if worse else ""),
    }


def _spread(mean: float, std: float, share: bool) -> str:
    return f"{100 * mean:.2g} ± {100 * std:.1g}%" if share else f"{mean:.3g} ± {std:.2g}"
