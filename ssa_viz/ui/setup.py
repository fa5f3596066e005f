"""What every page does first: its title, the look that all pages share, and the menu."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ssa_viz.figures.palette import Palette, palette
from ssa_viz.ui.state import LAST_PAGE

# A picture of our own: Streamlit would fetch a named icon or an emoji for the tab from another host.
ICON = Path(__file__).with_name("icon.png")
PAGES = (
    ("app.py", "Numbers", ":material/grid_on:"),
    ("pages/scoring.py", "Scoring lab", ":material/function:"),
    ("pages/train.py", "Train", ":material/model_training:"),
    ("pages/robustness.py", "Robustness", ":material/shield:"),
    ("pages/guide.py", "Guide", ":material/menu_book:"),
    ("pages/models.py", "Models", ":material/deployed_code:"),
)

STYLE = """
<style>
.stMainBlockContainer { padding-top: 2.2rem; padding-bottom: 4rem; max-width: 1500px; }
.stMain h1 { font-size: 1.9rem; letter-spacing: -0.01em; padding-bottom: 0; }
.stMain h2 { font-size: 1.25rem; padding-top: 1.2rem; }
.stMain h3 { font-size: 1.05rem; }
.ssa-card { border-left: 4px solid var(--ssa-colour); padding: .1rem 0 .1rem .8rem; min-height: 6.4rem;
  font-variant-numeric: tabular-nums; }
.ssa-card .name { font-weight: 600; color: var(--ssa-colour); }
.ssa-card .big { font-size: 1.75rem; font-weight: 650; line-height: 1.2; }
.ssa-card .line { opacity: .82; font-size: .95rem; }
.ssa-card .wrong, .ssa-card .right { font-weight: 600; opacity: 1; }
@media (max-width: 640px) { .stMainBlockContainer { padding-left: 1rem; padding-right: 1rem; } }
</style>
"""


def set_up(title: str, page: str | None = None) -> Palette:
    """Configure the page and draw the menu; returns the colours for the visitor's light or dark theme.

    A page without a state of its own still counts as another page for those that have one.

    Args:
        page: the name that the page's state has; the title in lower case unless stated.
    """
    if st.session_state.get(LAST_PAGE) not in (None, page or title.lower()):
        st.session_state[LAST_PAGE] = None
    st.set_page_config(
        page_title=f"{title} · SSA-Viz",
        page_icon=str(ICON),
        layout="wide",
        initial_sidebar_state="auto",
    )
    st.html(STYLE)
    with st.sidebar:
        st.markdown("**SSA-Viz**")
        for path, label, icon in PAGES:
            st.page_link(path, label=label, icon=icon)
    return palette(dark=st.context.theme.type == "dark")
