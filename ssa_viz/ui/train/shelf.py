"""All runs, the newest first, and what can be done with each."""

from __future__ import annotations

import datetime

import streamlit as st

from ssa_viz import jobs
from ssa_viz.errors import SSAVizError
from ssa_viz.jobs import Listed
from ssa_viz.jobs.folder import MOST_NAME
from ssa_viz.jobs.status import FINISHED, STOPPED
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.ui import cache
from ssa_viz.ui.charts import key_of
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.state import State
from ssa_viz.ui.train.properties import fill_from_run
from ssa_viz.ui.train.words import standing, trouble

DISCARDED = "train:discarded"  # session key: the ids that Undo brings back, the last one first
MOST_SHOWN = 40


def all_runs() -> list[Listed]:
    """Every run, after starting those that wait and for which there is room."""
    try:
        jobs.start_waiting(cache.RUNS)
    except (SSAVizError, OSError) as error:
        st.warning(plain(trouble(error)), icon=":material/warning:")
    return jobs.runs(cache.RUNS)


def undo() -> None:
    """Bring back what was just discarded."""
    gone = st.session_state.get(DISCARDED, [])
    if gone:
        st.button(
            f"Undo: bring back {gone[0]}", icon=":material/undo:", key="train_undo", on_click=_restore, type="tertiary"
        )


def shelf(state: State, runs: list[Listed]) -> None:
    """Every run as a row."""
    for each in runs[:MOST_SHOWN]:
        key = key_of(each.id)
        with st.container(border=True, key=f"run_{key}"):
            row = st.columns([4, 5, 3], vertical_alignment="center")
            row[0].markdown(f"**{plain(each.name)}**  \n{plain(_about(each))}")
            row[1].markdown(plain(each.error or standing(each)))
            with row[2].container(horizontal=True, gap="small"):
                if each.run is not None:
                    st.button("Show", key=f"show_{key}", on_click=_show, args=(state, each), type="tertiary")
                with st.popover("More", type="tertiary", key=f"more_{key}"):
                    _more(state, each)
    if len(runs) > MOST_SHOWN:
        st.caption(f"The newest {MOST_SHOWN} of {len(runs)} are shown; `python -m ssa_viz runs` lists all.")


def _about(each: Listed) -> str:
    if each.run is None:
        return each.id
    train = each.run.train
    when = datetime.datetime.fromtimestamp(each.run.created).strftime("%d %b, %H:%M")
    model = train.model
    return (
        f"{SCORING[model.scoring].label} · {TASKS[train.task].label} · {model.layers} × {model.heads} × {model.width} "
        f"· seed {train.seed} · {when}"
    )


def _more(state: State, each: Listed) -> None:
    key = key_of(each.id)
    if each.run is not None:
        name = st.text_input("Name", each.run.name, max_chars=MOST_NAME, key=f"name_{key}")
        st.button(
            "Rename", key=f"rename_{key}", on_click=_rename, args=(each, f"name_{key}"), disabled=not name.strip()
        )
        st.button(
            "Duplicate with changes",
            key=f"duplicate_{key}",
            on_click=_duplicate,
            args=(state, each),
            help="Its settings go into the form.",
        )
    if each.status.state in (FINISHED, STOPPED):
        st.download_button(
            "Export as one file",
            lambda: jobs.export(each.folder),
            f"{each.id}.zip",
            "application/zip",
            key=f"export_{key}",
            on_click="ignore",
        )
    sure = st.checkbox("Discard this run", key=f"sure_{key}", help="It can be brought back with Undo.")
    st.button(
        "Discard", key=f"discard_{key}", on_click=_discard, args=(each,), disabled=not sure, icon=":material/delete:"
    )


def _show(state: State, each: Listed) -> None:
    assert each.run is not None
    state["show"] = each.run.comparison or each.id


def _rename(each: Listed, key: str) -> None:
    _try(lambda: jobs.rename(each.folder, st.session_state[key]))


def _duplicate(state: State, each: Listed) -> None:
    assert each.run is not None
    fill_from_run(state, each.run)
    st.toast("The form now has the settings of this run.", icon=":material/content_copy:")


def _discard(each: Listed) -> None:
    if _try(lambda: jobs.discard(each.folder)):
        st.session_state[DISCARDED] = [each.id, *st.session_state.get(DISCARDED, [])]


def _restore() -> None:
    gone = st.session_state.get(DISCARDED, [])
    if gone:
        st.session_state[DISCARDED] = gone[1:]
        _try(lambda: jobs.restore(cache.RUNS, gone[0]))


def _try(act: object) -> bool:
    try:
        act()  # type: ignore[operator]
    except (SSAVizError, OSError) as error:
        st.toast(plain(trouble(error)), icon=":material/error:")
        return False
    return True
