"""The Scoring lab page: one row of logits, every scoring function."""

import streamlit as st

from ssa_viz.inspect import lab
from ssa_viz.ui.lab import closer, inputs, scene
from ssa_viz.ui.lab.properties import chosen, lab_state
from ssa_viz.ui.setup import set_up

palette = set_up("Scoring lab", "lab")
state = lab_state()
unusable = state.restore()

st.title("Scoring lab")
st.markdown(
    "One query looks at a few keys, and each key has a logit. A scoring function turns the logits into weights. "
    "Make one logit shout, and see who still listens to the others."
)
if unusable:
    st.warning(f"The address asked for something that does not exist ({', '.join(unusable)}); the default is shown.")

left, right = st.columns([2, 3], gap="large")
with left:
    logits = inputs.logits(state)
    inputs.functions(state, palette)
    st.button("Reset parameters", icon=":material/restart_alt:", type="tertiary", on_click=inputs.reset, args=(state,))

if not state["f"]:
    right.info("Choose a scoring function on the left.", icon=":material/function:")
elif logits:
    view = scene.Scene(state, palette, logits, tuple(chosen(state)))
    with right:
        rows = {each: lab.row(each, logits) for each in view.chosen}
        scene.verdict(view, rows)
        above = st.container()
        scene.panels(view, rows)
        with above:
            inputs.bars(state, logits, palette)
    closer.closer(view)
state.publish()
