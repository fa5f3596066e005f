"""The estimate under the form: measured in the background by a process of its own, and remembered."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field, replace

import streamlit as st

from ssa_viz.errors import InvalidInputError, as_sentence
from ssa_viz.jobs import RunConfig, runs_at_once
from ssa_viz.jobs.estimate import Estimate, ask
from ssa_viz.ui.markdown import plain
from ssa_viz.ui.train.words import duration

MOST_REMEMBERED = 200


@dataclass
class _Bench:
    """Measures one setting after the other; only the last one asked for is still wanted."""

    results: dict[str, Estimate | str] = field(default_factory=dict)
    waiting: tuple[str, RunConfig] | None = None
    busy: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, key: str, run: RunConfig, *, begin: bool) -> Estimate | str | None:
        with self.lock:
            if key in self.results or not begin:
                return self.results.get(key)
            self.waiting = (key, run)
            if not self.busy:
                self.busy = True
                threading.Thread(target=self._work, daemon=True).start()
        return None

    def _work(self) -> None:
        while True:
            with self.lock:
                if self.waiting is None:
                    self.busy = False
                    return
                (key, run), self.waiting = self.waiting, None
            try:
                result: Estimate | str = ask(run.train, device=run.device, threads=run.threads)
            except (InvalidInputError, OSError) as error:
                result = str(error)
            with self.lock:
                self.results[key] = result
                for old in list(self.results)[:-MOST_REMEMBERED]:
                    del self.results[old]


@st.cache_resource(show_spinner=False)
def _bench() -> _Bench:
    return _Bench()


def estimate(wanted: list[RunConfig], *, busy: bool) -> None:
    """Time and memory of the runs that the form asks for, measured for each function, one after the other.

    Args:
        busy: whether anything is being trained here: a measurement would slow it and be wrong, so none is begun.
    """
    once = {run.train.model.scoring: run for run in wanted}

    def results() -> dict[str, Estimate | str | None]:
        return {name: _bench().look(_key(run), run, begin=not busy) for name, run in once.items()}

    pending = any(result is None for result in results().values()) and not busy

    @st.fragment(run_every=1.0 if pending else None, key="train_estimate")
    def draw() -> None:
        found = results()
        faults = [result for result in found.values() if isinstance(result, str)]
        known = {name: result for name, result in found.items() if isinstance(result, Estimate)}
        if faults:
            st.warning(plain(as_sentence(faults[0])), icon=":material/warning:")
        elif len(known) == len(found):
            st.caption(f":material/timer: {_sentence(wanted, known)}")
        elif busy:
            st.caption(":material/timer: No estimate while something is training: it would be wrong.")
        else:
            st.caption(":material/timer: Measuring a few steps on this machine …")
            return
        if pending:
            st.rerun()  # so that the clock stops

    draw()


def _sentence(wanted: list[RunConfig], known: dict[str, Estimate]) -> str:
    together = min(len(wanted), _at_once())
    seconds = [known[run.train.model.scoring].seconds for run in wanted]
    # Each place works on one run after the other.
    ends = [0.0] * together
    for each in seconds:
        ends[ends.index(min(ends))] += each
    memory = max(each.megabytes for each in known.values())
    held = memory * together if wanted[0].device == "cpu" else memory
    where = "memory" if wanted[0].device == "cpu" else "of the device's memory"
    text = f"About {duration(max(ends))}, measured just now on this machine, and {_amount(held)} {where}."
    room = _physical_megabytes()
    if wanted[0].device == "cpu" and room and held > 0.9 * room:
        text += f" **This machine has {_amount(room)}: choose a smaller batch or model.**"
    return text


def _at_once() -> int:
    try:
        return runs_at_once()
    except InvalidInputError:  # the page has said so already
        return 1


def _amount(megabytes: float) -> str:
    return f"{megabytes / 1024:.1f} GB" if megabytes >= 1000 else f"{megabytes:.0f} MB"


def _physical_megabytes() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    except (AttributeError, ValueError, OSError):
        return None


def _key(run: RunConfig) -> str:
    """What an estimate depends on: not on the seed, nor on when it was asked for."""
    return repr((replace(run.train, seed=0), run.device, run.threads))
