"""A page's state as one typed list of properties: it drives the widgets, the address and the defaults.

Every property lives in the session under its widget key and, where it differs from its default, in the address, so
that opening a copied address in a fresh browser shows the same page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

VERSION = "1"  # of the meaning of the address; raised when a property changes its meaning


@dataclass(frozen=True)
class Property:
    """One thing that a visitor can change.

    Attributes:
        name: in the address.
        default: where the address says nothing.
        parse: text of the address to value; raises ValueError for what is not a value.
        show: value to text, so that parse(show(value)) is the value.
    """

    name: str
    default: Any
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = field(default=str)


def choice(name: str, options: Sequence[str], default: str) -> Property:
    """One of `options`."""

    def parse(text: str) -> str:
        if text not in options:
            raise ValueError
        return text

    return Property(name, default, parse)


def whole(name: str, default: int, low: int, high: int) -> Property:
    """A whole number from `low` to `high`."""

    def parse(text: str) -> int:
        if not low <= (value := int(text)) <= high:
            raise ValueError
        return value

    return Property(name, default, parse)


def real(name: str, default: float, limit: float, least: float = 0.0) -> Property:
    """A number of size up to `limit`, and of at least `least` unless it is 0; a NaN is never one."""

    def parse(text: str) -> float:
        if not abs(value := float(text)) <= limit or 0 < abs(value) < least:
            raise ValueError
        return value

    return Property(name, default, parse, lambda value: f"{value:.17g}")


def switch(name: str, default: bool = False) -> Property:
    """On or off, 1 or 0 in the address."""

    def parse(text: str) -> bool:
        if text not in ("0", "1"):
            raise ValueError
        return text == "1"

    return Property(name, default, parse, lambda value: "1" if value else "0")


def text(name: str, default: str, most: int) -> Property:
    """Free text of up to `most` characters."""

    def parse(value: str) -> str:
        if len(value) > most:
            raise ValueError
        return value

    return Property(name, default, parse)


def names(name: str, options: Sequence[str], default: Sequence[str]) -> Property:
    """Some of `options`, in their order, separated by commas in the address."""

    def parse(text: str) -> list[str]:
        given = text.split(",") if text else []
        if any(each not in options for each in given):
            raise ValueError
        return [each for each in options if each in given]

    return Property(name, list(default), parse, ",".join)


MOST_NAMES = 500  # characters of the ids in an address


def checkpoints(name: str) -> Property:
    """Checkpoints by id, separated by commas; those that do not exist are left out when it is known which do."""

    def parse(text: str) -> list[str]:
        if len(text) > MOST_NAMES:
            raise ValueError
        return [part for part in text.split(",") if part]

    return Property(name, [], parse, ",".join)


LAST_PAGE = "state:last page"  # session key of the page whose state was restored last


class State:
    """The properties of one page."""

    def __init__(self, page: str, properties: Sequence[Property]) -> None:
        self._page = page
        self._properties = {p.name: p for p in properties}

    def key(self, name: str) -> str:
        """The session key of a property, for the widget that shows it."""
        return f"{self._page}.{self._properties[name].name}"

    def __getitem__(self, name: str) -> Any:
        return st.session_state[self.key(name)]

    def __setitem__(self, name: str, value: Any) -> None:
        st.session_state[self.key(name)] = value

    def restore(self) -> list[str]:
        """Give every property its value, before any widget is drawn.

        In order: what the session holds, unless the visitor has just come from another page; the address, on the first
        visit and when a link from another page has one; what the session held when this page was last left (Streamlit
        forgets a widget that is not drawn, or leaves it empty); the default.

        Returns:
            The names of what the address gave and could not be used.
        """
        kept: dict[str, Any] | None = st.session_state.get(self._kept)
        unusable: list[str] = []
        arrived = st.session_state.get(LAST_PAGE) != self._page
        if kept is None or (arrived and st.query_params.to_dict()):
            kept, unusable = self._from_address()
            st.session_state[self._kept] = kept
        st.session_state[LAST_PAGE] = self._page
        for name, prop in self._properties.items():
            if arrived or st.session_state.get(self.key(name)) is None:
                self[name] = kept.get(name, prop.default)
        # Now already, since a click on another page may end this run before it publishes.
        st.session_state[self._kept] = {**kept, **self.snapshot()}
        return unusable

    def publish(self) -> None:
        """Write what differs from its default into the address, and keep everything for the page's next visit."""
        values = self.snapshot()
        st.session_state[self._kept] = {**st.session_state.get(self._kept, {}), **values}
        address = {
            name: prop.show(values[name])
            for name, prop in self._properties.items()
            if values[name] is not None and values[name] != prop.default
        }
        if address:
            address["v"] = VERSION
        if st.query_params.to_dict() != address:
            st.query_params.from_dict(address)

    def reset(self) -> None:
        """Give every property its default."""
        for name, prop in self._properties.items():
            self[name] = prop.default

    def snapshot(self) -> dict[str, Any]:
        """Every property's value, for `put` to bring back."""
        return {name: self[name] for name in self._properties}

    def put(self, values: dict[str, Any]) -> None:
        """Give properties the values of a snapshot."""
        for name, value in values.items():
            self[name] = value

    @property
    def _kept(self) -> str:
        return f"{self._page}:kept"

    def _from_address(self) -> tuple[dict[str, Any], list[str]]:
        given = st.query_params.to_dict()
        if given and given.get("v", VERSION) != VERSION:
            return {}, ["v"]
        values, unusable = {}, []
        for name, prop in self._properties.items():
            if name in given:
                try:
                    values[name] = prop.parse(given[name])
                except ValueError:
                    unusable.append(name)
        return values, unusable
