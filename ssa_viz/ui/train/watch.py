"""One comparison as it trains: what each run is doing, the curves, and the attention on one fixed sequence.

It is drawn by a fragment each second while anything goes on; of the records only what is new is read.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

import streamlit as st

from ssa_viz import jobs
from ssa_viz.errors import SSAVizError
from ssa_viz.figures.palette import Palette
from ssa_viz.jobs import Listed
from ssa_viz.jobs.status import FAILED, FINISHED, INTERRUPTED, PAUSED, QUEUED, STOPPED
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.numbers.sides import MOST_SIDES, OWN
from ssa_viz.ui.state import VERSION, State
from ssa_viz.ui.train import pictures
from ssa_viz.ui.train.watched import Watched, boolean, error_said, read
from ssa_viz.ui.train.words import standing, trouble

# What is drawn again each second would else turn grey each second.
STYLE = """
<style>
[data-stale="true"] { opacity: 1 !important; transition: none !important; }
</style>
"""
REFUSED = "train:refused control"  # session key: why a button did nothing
GOING = (*jobs.ACTIVE, QUEUED)


def watch(state: State, palette: Palette, comparison: list[Listed]) -> None:
    """The comparison, drawn again each second while one of its runs is going."""
    going = any(each.status.state in GOING for each in comparison)

    @st.fragment(run_every=1.0 if going else None, key="train_watch")
    def draw() -> None:
        now = [jobs.listed(each.folder) for each in comparison]
        still = any(each.status.state in GOING for each in now)
        if going and not still:
            st.rerun()  # the clock stops, and the rest of the page learns of the end
        watched = [read(each, palette) for each in now]
        _verdict(watched, still)
        _cards(watched)
        if refused := st.session_state.pop(REFUSED, None):
            st.error(plain(refused), icon=":material/error:")
        if still:
            pictures.moving(state, watched, palette)
        else:
            _open(watched)
            pictures.curves(watched, palette)
            pictures.attention(state, watched, palette)

    draw()


def _verdict(watched: list[Watched], going: bool) -> None:
    """One sentence to look at first: how far the runs are apart where it matters."""
    latest = {each.name: each.records.probed[-1] for each in watched if each.records.probed}
    if not latest:
        st.markdown("### Starting …" if going else "### Nothing has been recorded")
        return
    share = boolean(watched)
    parts = [f"{plain(name)} **{error_said(record['outlier_error'], share)}**" for name, record in latest.items()]
    what = "Wrong from an injected 70 on" if share else "Squared error from an injected 70 on"
    st.markdown(f"### {what}: {', '.join(parts)}")
    weights = ", ".join(f"{plain(name)} {record['largest_weight']:.0%}" for name, record in latest.items())
    st.caption(
        f"Largest weight in the row of the 70, mean over all heads: {weights}. Held-out prompts, the same for all."
    )


def _cards(watched: list[Watched]) -> None:
    columns = st.columns(min(len(watched), 4))
    for i, each in enumerate(watched):
        with columns[i % len(columns)]:
            _card(each)


def _card(each: Watched) -> None:
    listed, run, status = each.listed, each.listed.run, each.listed.status
    lines = [standing(listed)]
    if each.records.trained:
        last = each.records.trained[-1]
        lines.append(f"Loss {last['loss']:.4g} · gradient norm {last['gradient_norm']:.2g}")
    if each.records.probed:
        last = each.records.probed[-1]
        lines.append(f"In distribution {error_said(last['error'], boolean([each]))}")
    st.html(
        f'<div class="ssa-card" style="--ssa-colour: {each.colour}"><div class="name">{escape(each.name)}</div>'
        + "".join(f'<div class="line">{escape(line)}</div>' for line in lines)
        + "</div>"
    )
    if run is not None:
        st.progress(min(1.0, status.step / run.train.steps))
    if listed.error or status.sentence:
        st.warning(plain(listed.error or status.sentence), icon=":material/warning:")
    with st.container(horizontal=True, gap="small", key=f"controls_{each.key}"):
        if status.state in GOING:
            _button("Pause", "pause", each, jobs.pause)
        if status.state in (PAUSED, INTERRUPTED, FAILED):
            _button("Resume", "resume", each, jobs.resume)
        if status.active or status.state in (PAUSED, INTERRUPTED, FAILED):
            _button("Stop and keep", "stop", each, jobs.stop)


def _open(watched: list[Watched]) -> None:
    """Into the Numbers page with every model that is finished, up to four."""
    done = [each for each in watched if each.listed.status.state in (FINISHED, STOPPED) and each.listed.run is not None]
    if not done or done[0].listed.run is None:
        return
    train = done[0].listed.run.train
    st.page_link(
        "app.py",
        label="Open in Numbers, with a 70" if len(done) == 1 else "Open these in Numbers, with a 70",
        icon=":material/grid_on:",
        query_params={
            "task": train.task,
            "arch": train.model.variant,
            "m": ",".join(f"{OWN}{each.listed.id}" for each in done[:MOST_SIDES]),
            "inject": "1",
            "v": VERSION,
        },
    )


def _button(text: str, icon: str, each: Watched, act: Callable[[Path], None]) -> None:
    st.button(
        text,
        key=f"{icon}_{each.key}",
        icon={"pause": ":material/pause:", "resume": ":material/play_arrow:", "stop": ":material/stop:"}[icon],
        on_click=_do,
        args=(act, each.listed.folder),
        type="tertiary",
    )


def _do(act: Callable[[Path], None], folder: Path) -> None:
    try:
        act(folder)
    except (SSAVizError, OSError) as error:
        st.session_state[REFUSED] = trouble(error)
