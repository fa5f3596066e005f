"""Undo for what a button replaces on a page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ssa_viz.ui.state import State

MOST = 50  # changes that can be taken back


class Undo:
    """The newest changes of one page, each as the properties' values before it.

    Args:
        page: its name; the changes live in the session.
    """

    def __init__(self, page: str) -> None:
        self._key = f"{page}:before"

    def __bool__(self) -> bool:
        """Whether there is anything to take back."""
        return bool(st.session_state.get(self._key))

    def remember(self, values: dict[str, Any]) -> None:
        """Keep these values of properties for `back`."""
        st.session_state[self._key] = [*st.session_state.get(self._key, []), values][-MOST:]

    def change(self, state: State, **values: Any) -> None:
        """Give properties new values, and keep the old ones of those that differ."""
        before = {name: state[name] for name, value in values.items() if state[name] != value}
        if before:
            self.remember(before)
            state.put(values)

    def back(self, state: State) -> None:
        """Bring back the values before the newest change."""
        remembered = st.session_state.get(self._key, [])
        if remembered:  # a fast second click can come after the last one was used
            *st.session_state[self._key], last = remembered
            state.put(last)
