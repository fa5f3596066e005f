"""The Robustness page: what every function does when the numbers become unlike those of training."""

import streamlit as st

from ssa_viz.ui.robustness import functions, maps, table
from ssa_viz.ui.robustness.properties import robustness_state
from ssa_viz.ui.setup import set_up
from ssa_viz.ui.state import VERSION

palette = set_up("Robustness")
state = robustness_state()
unusable = state.restore()

st.title("Robustness")
st.markdown(
    "Every function learned the same task from the same prompts, with five seeds. Here the test numbers become unlike "
    "those of training: wider, or with one outlier."
)
if unusable:
    st.warning(f"The address asked for something that does not exist ({', '.join(unusable)}); the default is shown.")

task, variant = functions.pick(state)
found = functions.entry(task, variant)
if found is not None:
    entry, every = found
    functions.verdict(every)
    functions.widths(state, task, variant, entry, every, palette)
    there = functions.checkpoints_of(task, variant, state["f"])
    if there:
        address = {"task": task, "arch": variant, "m": ",".join(there), "inject": "1", "v": VERSION}
        label = "Open these in Numbers, with a 70"
        st.page_link("app.py", label=label, icon=":material/grid_on:", query_params=address)
maps.section(state, task, variant, palette)
if found is not None:
    table.section(state, task, variant)
    functions.in_words(every)
functions.traps()
state.publish()
