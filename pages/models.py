"""The Models page: what every trained seed says, and one card a checkpoint."""

import streamlit as st

from ssa_viz.ui import models
from ssa_viz.ui.setup import set_up

palette = set_up("Models")

st.title("Models")
st.markdown(
    "For each seed, a softmax and an SSA model start from the same weights and learn from the same examples; only the "
    "scoring function differs. Yes-or-no tasks count wrong answers, in per cent; Linear has squared errors."
)

st.header("What all seeds say")
models.all_seeds()

st.header("The checkpoints")
entries = models.entries()
models.faults(entries, palette)
models.cards(entries, palette)

own = models.own_entries()
if own:
    st.header("Your own runs")
    models.faults(own, palette)
    models.cards(own, palette)
