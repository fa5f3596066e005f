"""What every part of the lab draws from, and its first look: one panel of weights for each function."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ssa_viz.figures import export
from ssa_viz.figures.palette import Palette
from ssa_viz.figures.row_panels import Panel, row_panels
from ssa_viz.inspect import lab
from ssa_viz.sequence import label
from ssa_viz.ui.charts import chart
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.state import State

SMALLEST_SHARE = 0.001  # below it a mass is written as a power of ten


@dataclass(frozen=True)
class Scene:
    """One row and the chosen functions with their parameters."""

    state: State
    palette: Palette
    logits: tuple[float, ...]
    chosen: tuple[lab.Chosen, ...]

    @property
    def labels(self) -> list[str]:
        """The keys by their logits."""
        return [label(x) for x in self.logits]

    def colour(self, chosen: lab.Chosen) -> str:
        """The function's own colour."""
        return self.palette.scoring(chosen.scoring)


def said(mass: float) -> str:
    """A share of weight in words: per cent, or a power of ten where that would be 0."""
    if mass < SMALLEST_SHARE:
        return f"{mass:.1g}"
    return f"{mass:.1%}" if mass < 0.995 or mass >= 1.005 else "100%"


def verdict(scene: Scene, rows: dict[lab.Chosen, lab.Row]) -> None:
    """One sentence: who leaves least and who most for all keys but the strongest."""
    masses = {chosen.label: row.contextual_mass for chosen, row in rows.items() if row.strongest is not None}
    if len(scene.logits) < 2 or not masses:
        st.markdown("### One key alone leaves nothing to compare" if masses else "### Every row here is empty")
        return
    least, most = min(masses, key=masses.__getitem__), max(masses, key=masses.__getitem__)
    sentence = f"{plain(least)} leaves **{said(masses[least])}** for all keys but the strongest"
    if least != most:
        sentence += f", {plain(most)} leaves **{said(masses[most])}**"
    st.markdown(f"### {sentence}")


def panels(scene: Scene, rows: dict[lab.Chosen, lab.Row]) -> None:
    """The weights of every chosen function under each other."""
    figure = row_panels(
        {
            chosen.label: Panel(row.weights, scene.colour(chosen), _line(row), _beside(row))
            for chosen, row in rows.items()
        },
        scene.labels,
        palette=scene.palette,
        title="Weights of this row",
    )  # fmt: skip
    columns = {f"weight {chosen.label}": row.weights for chosen, row in rows.items()}
    chart(
        figure,
        "panels",
        alt="For each scoring function, the weight of every key of the row as a bar",
        data=lambda: export.csv({"logit": scene.logits, **columns}),
    )
    st.caption(
        "Contextual mass is the weight on all keys but the strongest. The effective number of tokens is the "
        "exponential of the entropy; where a row does not sum to 1, that of its shares. What goes to no key is part "
        "of the function: nothing is scaled up to hide it."
    )


def _line(row: lab.Row) -> str:
    if row.strongest is None:
        return "no key gets any weight"
    return (
        f"contextual mass {said(row.contextual_mass)} · entropy {row.entropy:.2f} · {row.effective_tokens:.2f} tokens"
    )


def _beside(row: lab.Row) -> str:
    """What a row of this function does not sum to 1 for."""
    if row.nowhere > 1e-9:
        return f"· {said(row.nowhere)} to no key"
    return f"· sum {row.total:.3g}" if abs(row.total - 1) > 1e-6 else ""
