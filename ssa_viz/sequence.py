"""Typed or pasted text → a sequence of numbers, and back. Nothing is guessed or dropped in silence.

`ssa_viz.items` says what parts two numbers and what a comma means.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.items import NUMBER, split

LARGEST = 1e6  # the largest size of a number in a prompt: squares of it stay exact enough in float32
SMALLEST = 1e-30  # models compute in float32, which would turn much smaller sizes into 0 without a word
MAX_CHARS = 100_000
LABEL_WIDTH = 6
_SHOWN = 24  # characters of an unreadable item that a message repeats
_ITEM = re.compile(rf"[^\s,;|\[\](){{}}].{{0,{_SHOWN}}}", re.DOTALL)  # its start: one character more than is shown

# Why an item that does not look like a number is refused; the first pattern found in it gives the reason.
_REASONS = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (
            r"^[+-]?(?:(?:np|numpy|math|torch|tf)\.)?(?:nan|inf|infinity|∞)$|^(?:#?n/?a|null|none|nat)$"
            r"|^#(?:num|value|ref|name|null|div/0)[!?]$|^[+-]?1\.#(?:inf|ind|qnan)",
            "is refused: NaN and infinity have no place in a sequence",
        ),
        (r"^(?:\.{3,}|…)$", "stands for numbers that are not in the text"),
        (r"[%‰]", "has a percent sign; write it as a plain number"),
        (r"^[+-] ", "has a space after its sign"),
        (r"^[+-]?0x[0-9a-f]+$", "is hexadecimal; write it in decimal"),
        (r"[0-9]_[0-9]", "has an underscore; write 1000, not 1_000"),
        (r"^[+-]?[0-9.]+/[0-9.]+$|[¼½¾⅐-⅞↉]", "is a fraction; write it with a decimal point"),
        (
            r"^[+-]?[0-9][0-9.]*,[0-9.,]+$",
            "has a comma of unclear meaning; for one number write a decimal point (or no comma if it groups "
            "thousands), for two put a space after it",
        ),
    )
)


@dataclass(frozen=True)
class Problem:
    """An item that was not kept.

    Attributes:
        item: its place among the items of the text, counted from 1.
        text: the item as it was typed; a long one is cut and ends in an ellipsis.
        reason: what follows it in a sentence, such as "is not a number".
    """

    item: int
    text: str
    reason: str

    @property
    def sentence(self) -> str:
        """For example: item 7, 'abc', is not a number."""
        return f"item {self.item}, {self.text!r}, {self.reason}"


@dataclass(frozen=True)
class Parsed:
    """What a text says.

    Attributes:
        numbers: the numbers that were read, in order, each finite, of size up to `LARGEST` and never −0.
        problems: the items that were not, in order.
        decimal_comma: whether a comma was read as a decimal comma.
        note: how a text with two likely readings was read, and how to write the other; else None.
        left_out: how many readable numbers lie past the limit.
    """

    numbers: tuple[float, ...]
    problems: tuple[Problem, ...]
    decimal_comma: bool
    note: str | None
    left_out: int = 0


def parse(text: str, *, limit: int | None = None) -> Parsed:
    """Read the numbers in `text` and keep at most the first `limit` of them.

    Only the first `MAX_CHARS` characters are read; that more follow is the last problem.

    Raises:
        InvalidInputError: the limit is negative.
    """
    if limit is not None and limit < 0:
        raise InvalidInputError(f"a limit on the numbers must be at least 0, not {limit}")
    found = split(text, MAX_CHARS)
    numbers: list[float] = []
    problems: list[Problem] = []
    for place, item in enumerate(found.items, 1):
        value = _read(item.plain)
        if isinstance(value, float):
            numbers.append(value)
        else:
            problems.append(Problem(place, _shorten(text[item.start : item.stop]), value))
    rest = _ITEM.search(text, found.read)
    if rest:
        reason = f"and all that follows is left out: only the first {MAX_CHARS:,} characters are read"
        problems.append(Problem(len(found.items) + 1, _shorten(rest[0]), reason))
    kept = tuple(numbers[:limit])
    return Parsed(kept, tuple(problems), found.decimal_comma, found.note, len(numbers) - len(kept))


def format_number(value: float) -> str:
    """The fewest digits that `parse` reads as exactly `value`: ASCII, and no plus sign (a space in a URL).

    Raises:
        NonFiniteError: the value is NaN or infinite.
    """
    if not math.isfinite(value):
        raise NonFiniteError(f"only a finite number can stand in a sequence, not {value}")
    return _tidy(repr(float(value) + 0.0))  # −0.0 + 0.0 is 0.0


def format_numbers(values: Iterable[float]) -> str:
    """`format_number` of each, parted by spaces; `parse` reads it back exactly, for sizes up to `LARGEST`."""
    return " ".join(map(format_number, values))


def label(value: float) -> str:
    """A short text for an axis: at most `LABEL_WIDTH` characters and a minus sign (U+2212), never empty.

    A whole number that fits is exact; another number has three significant digits, or as many as fit.
    """
    if math.isnan(value):
        return "NaN"
    sign, size = ("−" if value < 0 else ""), abs(float(value))
    if math.isinf(size):
        return f"{sign}∞"
    texts = [f"{size:.0f}"] if size >= 100 or size.is_integer() else []
    for digits in (3, 2, 1):
        texts += [_tidy(f"{size:.{digits}g}"), _tidy(f"{size:.{digits - 1}e}")]
    return sign + next(text for text in texts if len(text) <= LABEL_WIDTH)


def _tidy(text: str) -> str:
    """A number as Python writes it, less a final `.0` and the plus sign and zeros that start an exponent."""
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _read(plain: str) -> float | str:
    """The number that an item says, or the reason why it is refused."""
    if NUMBER.fullmatch(plain):
        value = float(plain)
        if abs(value) > LARGEST:
            return f"is too large; the limit is {LARGEST:,.0f}"
        if abs(value) < SMALLEST and re.search("[1-9]", re.split("[eE]", plain)[0]):
            return "is too close to 0 for a model to tell it from 0"
        return value + 0.0  # −0 becomes 0
    if any(unicodedata.category(sign) == "Sc" for sign in plain):
        return "has a currency sign; write it as a plain number"
    for pattern, reason in _REASONS:
        if pattern.search(plain):
            return reason
    if any(sign.isnumeric() and not sign.isascii() for sign in plain):
        return "has digits other than 0 to 9"
    return "is not a number"


def _shorten(text: str) -> str:
    """The start of a text, fit to be sent to a browser: a lone surrogate has no UTF-8 form."""
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return short.encode("utf-8", "replace").decode()
