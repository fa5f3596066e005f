"""Every registered function: formula, source, parameters, and what its rows are."""

from __future__ import annotations

from html import escape

import streamlit as st

from ssa_viz.figures.palette import Palette
from ssa_viz.scoring import SCORING, Parameter

ACROSS = 2
SUMS = {
    "one": "rows sum to 1",
    "one or zero": "rows sum to 1, or are empty",
    "at most one": "rows sum to 1 at most",
    "any": "rows sum to anything",
}


def all_functions(palette: Palette) -> None:
    """A card for each function of the registry, in its order."""
    st.markdown(
        "All of them keep these rules: a hidden key has weight 0 and no influence, a row without a visible key is all "
        "zeros, and of two keys the one with the larger x, as the formula has it, never gets less weight."
    )
    names = list(SCORING)
    for start in range(0, len(names), ACROSS):
        for column, name in zip(st.columns(ACROSS), names[start : start + ACROSS], strict=False):
            cls = SCORING[name]
            with column, st.container(border=True, height="stretch"):
                st.html(f'<b style="color: {palette.scoring(name)}">{escape(cls.label)}</b> · {SUMS[cls.row_sum]}')
                st.latex(cls.formula)
                for parameter in cls.parameters_spec:
                    st.markdown(f"${parameter.symbol}$: {_described(parameter)}")
                st.markdown(f"[Source]({cls.source})")


def _described(parameter: Parameter) -> str:
    how = "a constant" if parameter.constant else "learned for each head"
    return f"{parameter.meaning}; {how}, starts at {parameter.default:.4g}"
