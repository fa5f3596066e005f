import streamlit as st

from ssa_viz.ui.setup import set_up

set_up("Guide")
st.title("Guide")
