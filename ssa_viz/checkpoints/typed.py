"""Values of a JSON document, each of the type that was asked for, or a sentence that names the one that is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args, get_origin

from ssa_viz.errors import InvalidInputError

Document = dict[str, Any]
LARGEST_INT = 2**53  # beyond it JSON readers elsewhere lose digits

T = TypeVar("T")


def fields_of(section: str, values: Document, hints: Mapping[str, Any]) -> Document:
    """`values` with exactly the keys of `hints`, each of its type."""
    exactly(section, values, hints)
    return {name: hinted(f"{section}.{name}", values[name], hint) for name, hint in hints.items()}


def hinted(where: str, value: Any, hint: Any) -> Any:
    """`value` if it is what `hint` says: int, float, str, bool, or a mapping from str to one."""
    if get_origin(hint) is Mapping:
        (_, inner) = get_args(hint)
        entries = typed(where, value, dict)
        return {name: typed(f"{where}.{brief(name)}", each, inner) for name, each in entries.items()}
    return typed(where, value, hint)


def typed(where: str, value: Any, kind: type[T]) -> T:
    """`value` if it is of `kind`; a whole number passes as a float too, but no boolean as a number."""
    words = {
        int: "a whole number",
        float: "a number",
        str: "text in quotes",
        bool: "true or false",
        dict: "an object in braces",
        list: "a list",
    }
    accepted = (int, float) if kind is float else kind
    number = kind is int or kind is float
    fits = isinstance(value, accepted) and not (number and isinstance(value, bool))
    if fits and isinstance(value, int) and number and abs(value) > LARGEST_INT:
        raise InvalidInputError(f"{where} is too large")
    if not fits:
        raise InvalidInputError(f"{where} must be {words[kind]}, not {brief(value)}")
    return kind(value)  # type: ignore[call-arg]


def list_of(where: str, value: Any, length: int) -> list[Any]:
    items: list[Any] = typed(where, value, list)
    if len(items) != length:
        raise InvalidInputError(f"{where} must have {length} layers or heads, not {len(items)}")
    return items


def exactly(section: str, values: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse `values` if it lacks one of `names` or has another."""
    wanted = list(names)
    missing = [name for name in wanted if name not in values]
    unknown = [name for name in values if name not in wanted]
    prefix = f"{section}." if section else ""
    if missing:
        raise InvalidInputError(f"{prefix}{missing[0]} is missing")
    if unknown:
        raise InvalidInputError(f"{prefix}{brief(unknown[0])} is not a known field")


def plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def brief(value: Any) -> str:
    """`value` for a message, cut so that a large one does not drown it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
