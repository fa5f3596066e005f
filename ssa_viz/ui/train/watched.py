"""The runs of one comparison with what has been read of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from ssa_viz.figures.palette import Palette
from ssa_viz.figures.training import Course
from ssa_viz.jobs import Listed, Records
from ssa_viz.tasks import TASKS
from ssa_viz.ui.charts import key_of
from ssa_viz.ui.state import State

READ = "train:records"  # session key: run → its records as far as they have been read


@dataclass(frozen=True)
class Watched:
    """One run of the comparison with what has been read of it."""

    listed: Listed
    records: Records
    colour: str

    @property
    def name(self) -> str:
        return self.listed.name

    @property
    def key(self) -> str:
        return key_of(self.listed.id)

    @property
    def comparison(self) -> str:
        return (self.listed.run.comparison if self.listed.run else "") or self.listed.id

    def course(self, kind: str, quantity: str, scale: float = 1.0) -> Course:
        found = self.records.trained if kind == "trained" else self.records.probed
        known = [r for r in found if isinstance(r.get(quantity), (int, float))]
        return Course([r["step"] for r in known], [scale * r[quantity] for r in known], self.colour)


def shown(state: State, runs: list[Listed]) -> list[Listed]:
    """The runs of the comparison that the page shows, in the order in which they were asked for: the chosen one if it
    still exists, else the newest."""
    chosen = [each for each in runs if each.run is not None and state["show"] in (each.run.comparison, each.id)]
    if not state["show"] or not chosen:
        newest = next((each for each in runs if each.run is not None), None)
        if newest is None or newest.run is None:
            return []
        of = newest.run.comparison
        chosen = [each for each in runs if each is newest or (of and each.run and each.run.comparison == of)]
    return chosen[::-1]


def read(each: Listed, palette: Palette) -> Watched:
    kept: dict[Path, Records] = st.session_state.setdefault(READ, {})
    records = kept.setdefault(each.folder, Records(each.folder))
    records.update()
    scoring = each.run.train.model.scoring if each.run else ""
    return Watched(each, records, palette.scoring(scoring))


def steps(watched: list[Watched]) -> int:
    return max(each.listed.run.train.steps for each in watched if each.listed.run is not None)


def boolean(watched: list[Watched]) -> bool:
    return all(TASKS[each.listed.run.train.task].boolean for each in watched if each.listed.run is not None)


def error_said(value: float, share: bool) -> str:
    return f"{value:.2%}" if share else f"{value:.3g}"
