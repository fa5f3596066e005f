"""The Numbers page: type a sequence, inject an outlier, see where softmax and SSA look."""

import streamlit as st

from ssa_viz.ui.numbers import evidence, inputs, more, views
from ssa_viz.ui.numbers.answers import answers
from ssa_viz.ui.numbers.properties import numbers_state
from ssa_viz.ui.numbers.sides import chosen_sides, offers, read_sides, reads_up_to, variants
from ssa_viz.ui.setup import set_up

palette = set_up("Numbers")
state = numbers_state()
unusable = state.restore()

st.title("Watch attention collapse")
st.markdown(
    "Models learned the same task from the same examples; only the function that turns attention logits into "
    "weights differs. Type numbers, inject a 70, and see where each one looks."
)
if unusable:
    st.warning(f"The address asked for something that does not exist ({', '.join(unusable)}); the default is shown.")

inputs.task(state)
offered = offers(state["task"])
inputs.sidebar(state, variants(state["task"], offered), offered)
sides = chosen_sides(state["task"], state["arch"], state["m"], offered, palette)
most, prompt_format = reads_up_to(sides, state["task"])

left, right = st.columns(2, gap="large")
with left:
    numbers = inputs.sequence(state, most)
with right, st.container(border=True):
    problem = inputs.problem(state, numbers, most, prompt_format)

if numbers:
    view = views.scene(state, palette, problem, read_sides(sides, problem))
    views.verdict(view)
    if view.read:
        views.maps(view)
        if not state["m"]:
            evidence.evidence(state["task"], state["arch"])
        views.overviews(view)
        views.masses(view)
        answers(view)
        if problem.outlier is not None:
            evidence.residual_note()
        more.more(view)
state.publish()
