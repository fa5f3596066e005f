"""The Guide page: the few ideas and words that the other pages need."""

import streamlit as st

from ssa_viz.ui import guide
from ssa_viz.ui.setup import set_up

palette = set_up("Guide")
state = guide.guide_state()
state.restore()

with guide.page():
    st.title("Guide")
    st.markdown("Five minutes, then everything on the other pages can be read.")

    st.header("What attention does")
    guide.attention()

    st.header("Two functions, one growing logit")
    guide.formulas(palette)
    st.slider("Logit t of the first key", 0, guide.MOST_T, key=state.key("t"), help=guide.SLIDER_HELP)
    guide.growing_logit(state["t"], palette)
    st.page_link("pages/scoring.py", label="All scoring functions, and logits of your own", icon=":material/function:")

    st.header("Words")
    guide.words()

    st.header("The tasks")
    guide.tasks()

    st.header("What the pictures can tell, and what they cannot")
    guide.limits()
    with st.container(horizontal=True):
        st.page_link("app.py", label="Inject a 70", icon=":material/grid_on:")
        st.page_link("pages/models.py", label="All numbers of all models", icon=":material/deployed_code:")

    st.header("Source")
    guide.source()

state.publish()
