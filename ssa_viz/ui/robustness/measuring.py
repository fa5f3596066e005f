"""The button that measures error maps in the background, its progress and its cancel button."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ssa_viz.checkpoints import CheckpointConfig
from ssa_viz.evaluate.grids import Grid, Store, key
from ssa_viz.jobs.measuring import DESK, DONE, FAILED, WAITING, Measuring
from ssa_viz.ui.markdown import plain

Wanted = tuple[str, CheckpointConfig, Grid]  # a name for people, the model, what to measure it over


def offer(wanted: Sequence[Wanted], store: Store) -> None:
    """Say which maps are missing, offer to measure them, and follow those that are being measured."""
    missing = list({key(config, grid): (name, config, grid) for name, config, grid in wanted}.values())  # each once
    going = any(each is not None and each.active for each in map(_found, missing))

    @st.fragment(run_every=0.7 if going else None, key="robustness_measuring")
    def draw() -> None:
        if not missing:
            return
        found = [_found(each) for each in missing]
        done = (each is not None and each.state == DONE for each in found)
        arrived = any(over and store.find(config, grid) for over, (_, config, grid) in zip(done, missing, strict=True))
        if arrived or (going and not any(each is not None and each.active for each in found)):
            st.rerun()  # a map is there, or the reason why none is
        idle = [one for one, each in zip(missing, found, strict=True) if each is None or not each.active]
        for (name, config, grid), each in zip(missing, found, strict=True):
            if each is None:
                continue
            if each.active:
                _progress(name, config, grid, each)
            elif each.state == FAILED:
                st.error(plain(f"{name} could not be measured. {each.error}"), icon=":material/error:")
        if idle:
            names = " and ".join(name for name, _, _ in idle)
            words, button = st.columns([3, 1], vertical_alignment="center")
            words.info(
                f"This map of {plain(names)} has not been measured yet. A small model takes about half a minute on two "
                "cores; it goes on when you leave the page, and is kept.",
                icon=":material/info:",
            )
            if button.button("Measure", type="primary", icon=":material/play_arrow:", width="stretch"):
                for _, config, grid in idle:
                    DESK.start(key(config, grid), config.folder, grid.name, grid.sequences, store.own)
                st.rerun()

    draw()


def _found(wanted: Wanted) -> Measuring | None:
    _, config, grid = wanted
    return DESK.find(key(config, grid))


def _progress(name: str, config: CheckpointConfig, grid: Grid, each: Measuring) -> None:
    count = grid.shape[0] * grid.shape[1]
    bar, button = st.columns([3, 1], vertical_alignment="center")
    waits = each.state == WAITING
    words = "waits for another one" if waits else f"{each.done} of {count} cells" if each.done else "starting"
    bar.progress(each.done / count, text=f"{plain(name)}: {words}")
    if button.button("Cancel", key=f"cancel_{key(config, grid)}", icon=":material/close:", width="stretch"):
        each.cancel()
        st.rerun()
