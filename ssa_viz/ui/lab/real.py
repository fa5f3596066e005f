"""A row of logits as a trained model computes it from a sequence of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from ssa_viz.checkpoints import Listing
from ssa_viz.errors import InvalidInputError, SSAVizError
from ssa_viz.inspect import Problem, lab
from ssa_viz.sequence import label, parse
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import numbers_within
from ssa_viz.ui import cache
from ssa_viz.ui.markdown import plain

SEQUENCE = "0.7 1.2 -0.4 0.9 1.6 0.3 1.1 70 -0.6 1.4 0.5 0.2"
ERROR = "lab:model error"  # session key of why no row was taken
LINE = (1.5, -0.5)  # slope and intercept where a model needs a line: those that the Numbers page starts with
DIGITS = 4  # of a logit, enough to see where the weights go


def picker(take: Callable[[Sequence[float]], None]) -> None:
    """Choose a checkpoint, a sequence, a head and a query; `take` gets the logits that the query gives its keys."""
    usable = _usable()
    if not usable:
        st.info("There is no model in the models folder. Train one, or get the shipped ones.")
        return
    st.selectbox("Model", list(usable), key="lab_model")
    config = usable[st.session_state["lab_model"]].config
    assert config is not None
    model = config.train.model
    st.text_input("Numbers that it reads", SEQUENCE, key="lab_sequence")
    columns = st.columns(3)
    columns[0].number_input("Layer", 0, model.layers - 1, model.layers - 1, key=f"lab_layer_{model.layers}")
    columns[1].number_input("Head", 0, model.heads - 1, 0, key=f"lab_head_{model.heads}")
    columns[2].number_input("Query", 1, 4096, 8, key="lab_query", help="Which number looks back, counted from 1.")
    if not TASKS[config.train.task].boolean:
        st.caption(f"These are the x of points on the line with slope {label(LINE[0])} and intercept {label(LINE[1])}.")
    where = (f"lab_layer_{model.layers}", f"lab_head_{model.heads}")
    st.button("Take this row", key="lab_take", type="primary", width="stretch", on_click=_take, args=(take, where))
    if error := st.session_state.get(ERROR):
        st.error(error, icon=":material/error:")


def _usable() -> dict[str, Listing]:
    """Every checkpoint by its name, the visitor's own as runs/<id>."""
    own = {f"runs/{each.name}": each for each in cache.catalogue(cache.RUNS)}
    found = {each.name: each for each in cache.catalogue()} | own
    return {name: each for name, each in found.items() if each.config is not None}


def _take(take: Callable[[Sequence[float]], None], where: tuple[str, str]) -> None:
    st.session_state.pop(ERROR, None)
    try:
        take(_row(*(int(st.session_state[key]) for key in (*where, "lab_query"))))
    except SSAVizError as error:
        st.session_state[ERROR] = plain(str(error))


def _row(layer: int, head: int, query: int) -> list[float]:
    """Raises SSAVizError for what the model cannot read, or a query that is not there."""
    listing = _usable()[st.session_state["lab_model"]]
    loaded = cache.checkpoint(listing.folder)
    train = loaded.config.train
    most = numbers_within(train.model.context, train.prompt_format)
    parsed = parse(st.session_state["lab_sequence"])
    if parsed.problems:
        raise InvalidInputError(parsed.problems[0].sentence)
    numbers = parsed.numbers
    if not 1 <= len(numbers) <= most:
        raise InvalidInputError(f"this model reads 1 to {most} numbers, not {len(numbers)}")
    if query > len(numbers):
        raise InvalidInputError(f"query {query} is beyond the last of {len(numbers)} numbers")
    function = () if TASKS[train.task].boolean else LINE
    reading = cache.read(loaded, Problem(train.task, train.prompt_format, numbers, function))
    logits = lab.from_reading(reading, layer, head, int(reading.reads[query - 1]))
    return [float(f"{x:.{DIGITS}g}") for x in logits]
