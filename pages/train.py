"""The Train page: fit the same small model with several scoring functions, and watch."""

import streamlit as st

from ssa_viz.ui.setup import set_up
from ssa_viz.ui.train import form, measure, shelf, watch
from ssa_viz.ui.train.properties import train_state
from ssa_viz.ui.train.watched import shown

palette = set_up("Train")
state = train_state()
unusable = form.unusable(state.restore())
st.html(watch.STYLE)

st.title("Train")
st.markdown(
    "Fit one small model with several scoring functions, from the same starting weights on the same prompts, and "
    "watch where they look. A run goes on when you close this page."
)
if unusable:
    st.warning(f"The address asked for something that does not exist ({', '.join(unusable)}); the default is shown.")

runs = shelf.all_runs()
left, right = st.columns([3, 7], gap="large")
with left:
    asked = form.form(state, palette)
    form.start_button(state, asked)
    if asked.runs:
        measure.estimate(asked.runs, busy=any(each.status.active for each in runs))
with right:
    comparison = shown(state, runs)
    if comparison:
        watch.watch(state, palette, comparison)
    else:
        st.info(
            "Nothing has been trained here yet. Press Train, and watch.",
            icon=":material/arrow_back:",
        )
if runs:
    st.header("All runs")
shelf.undo()
shelf.shelf(state, runs)
state.publish()
