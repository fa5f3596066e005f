"""What all trained seeds say about the pair on the page, and what no attention function can mend."""

from __future__ import annotations

import streamlit as st

from ssa_viz.scoring import SCORING
from ssa_viz.train.presets import SCORED
from ssa_viz.ui.evidence import over_seeds, table


def residual_note() -> None:
    """Why an answer at the injected number itself can be wrong however the attention is spread."""
    st.info(
        "Every token also carries its own number past the attention, in its residual stream. At the injected number "
        "itself that alone can decide the answer, and no scoring function, SSA included, can mend it. Judge the "
        "attention by its maps, and the answers by those after the injected number.",
        icon=":material/info:",
    )


def evidence(task: str, variant: str) -> None:
    """The shipped pair's numbers over all seeds, with the seeds that disagree."""
    found = over_seeds(task, variant)
    if found is None:
        st.caption("The numbers over all seeds (models/seeds.json) are missing or cannot be read.")
        return
    shipped = " and ".join(f"{SCORING[name].label} {seed}" for name, seed in found.shipped.items() if name in SCORED)
    with st.expander(f"These are one seed each. What do all {len(found.seeds)} say?", icon=":material/fact_check:"):
        table(found)
        st.caption(
            f"Mean ± standard deviation over {len(found.seeds)} seeds of weights and data, on test prompts that no "
            f"model was trained or chosen on. Shown on this page: the seed with the median error in distribution "
            f"({shipped}). The Models page has every pair, models/README.md the commands."
        )
