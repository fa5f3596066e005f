"""Text → items: where each number should stand, before any is read, and what the commas between them mean.

White space, semicolons, pipes and brackets of any kind part items. What a comma between two digits means:

- inside brackets it parts: `[1,5]`, `[1,2; 3,4]`;
- it parts everywhere if any comma does so beyond doubt (it stands beside white space, a sign, a point or
  another comma, or is one of several in a word) or if a number has a decimal point: `1, 2,5`, `1,-5`,
  `1,2,3 4,5,6`, `1,5; 2.5`;
- it parts if nothing but commas is there to do so: `1,5`;
- else it is a decimal comma: `1,5; 2`, `1,5;`, `1,5 2,5`, a row or a column of a spreadsheet. So is the only
  comma of a number in quotes: `"1,5","2,5"`.

A text that a person may well have meant the other way comes with a note; `1,234,567` does not, since as one
number it is past the limit. Two numbers are so unlikely in `1,05`, `-0,5` and `1,000` that such an item stays
whole where a comma would part it, for the reader to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST = 1_000  # characters: a longer run without white space holds many numbers, so its commas part them
_QUOTES = "\"'"
_MARKS = r"\s;|\[\](){}"  # what ends a word

# One character for one, so that positions stay. Not Unicode's own folding (NFKC): it reads 10² as 102.
_INVISIBLE = [*range(0x2000, 0x2010), *range(0x202A, 0x2030), *range(0x205F, 0x2070)]  # and narrow spaces
_PLAIN = {
    **dict.fromkeys([*_INVISIBLE, *map(ord, "\x1f\xa0\xad\u061c\u1680\u180e\u3000\ufeff")], " "),
    **dict.fromkeys(map(ord, "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), "\n"),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe63"), "-"),  # hyphens, en dash, minus signs
    **dict.fromkeys(map(ord, "“”„«»"), '"'),
    **dict.fromkeys(map(ord, "‘’"), "'"),
    **dict.fromkeys(map(ord, "、､،؛"), ";"),  # other scripts' commas, which only ever part
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms
}
# What Python, numpy, torch, R and MATLAB print around numbers: line continuation, keyword arguments, names of
# constructors, and `name =` at the start of a line.
_DRESSING = re.compile(
    r"\.{3}(?=[ \t]*\n)"
    rf"|(?<!\w)(?:dtype|device|requires_grad|grad_fn|layout)=(?:\w*\([^()]*\)|<[^<>]*>|[^,{_MARKS}]+)"
    r"|(?<!\w)(?:shape|size)=\([^()]*\)"
    r"|(?<![\w.])(?:(?:np|numpy|torch|jnp|tf)\.)?(?:asarray|array|[tT]ensor|matrix|list|tuple|set|deque|c"
    r"|float(?:16|32|64)?|u?int(?:8|16|32|64)?)(?=\()"
    r"|^[ \t]*[A-Za-z_]\w*[ \t]*=(?!=)",
    re.MULTILINE,
)
_QUOTED = re.compile(rf"(?<![^,{_MARKS}])([{_QUOTES}])([+-]?[0-9]+),([0-9]+(?:[eE][+-]?[0-9]+)?)\1(?![^,{_MARKS}])")
# A sign with a space between it and its number stays with it: `- 5` must not be read as 5.
_WORD = re.compile(rf"[;|\t\n\[\](){{}}]|[+-] +\.?[0-9][^{_MARKS}]*|[^{_MARKS}]+")

_DECIMAL = re.compile(r"[+-]? *[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
_WITH_SYMBOL = re.compile(r"[+-]?[^\w\s.,+-]?[+-]?[0-9]+,[0-9]+[^\w\s.,]?")  # €1,5 and 1,5%
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_THOUSANDS_AND_POINT = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3}\.[0-9]+|\.[0-9]{3},[0-9]+)")
_NO_SECOND_NUMBER = re.compile(
    r"[+-]?(?!0[0-9])[0-9]+,0[0-9]+|[+-]?[1-9][0-9]{0,2}(?=.*,0)(?:,[0-9]{3}){1,4}(?:\.[0-9]*)?|-0+,[0-9]+"
)
_SURE_FRACTION = re.compile(r",0[0-9]|,[0-9]{8}|-0+,")
_SPACED_THOUSANDS = re.compile(r"(?<![\w.,])[1-9][0-9]{0,2}(?:[\xa0\u2007\u2009\u202f][0-9]{3}| 0[0-9]{2})(?![0-9])")


@dataclass(frozen=True)
class Item:
    """A stretch of the text from `start` up to `stop`, and what to read there: ASCII signs and digits."""

    start: int
    stop: int
    plain: str


@dataclass(frozen=True)
class Items:
    """The items of a text in order.

    Attributes:
        items: none is empty.
        read: how many characters of the text they come from.
        decimal_comma: whether a comma was taken for a decimal comma; `plain` has a point in its place.
        note: how a text with two likely readings was read, and how to write the other; else None.
    """

    items: tuple[Item, ...]
    read: int
    decimal_comma: bool
    note: str | None


@dataclass(frozen=True)
class _Word:
    """What stands between two separators other than commas; `core` has no quotes and commas at its ends."""

    start: int
    text: str
    core: str
    line: int
    bracketed: bool


def split(text: str, longest: int) -> Items:
    """The items in the first `longest` characters of `text`, each whole, in time linear in `longest`."""
    plain = text[: longest + 1].translate(_PLAIN)
    read = len(text) if len(text) <= longest else _last_end(plain)
    plain = _DRESSING.sub(lambda found: " " * len(found[0]), plain[:read])
    quoted = [found[0].strip(_QUOTES) for found in _QUOTED.finditer(plain)]
    plain = _QUOTED.sub(r" \2.\3 ", plain)
    words: list[_Word] = []
    depth = line = 0
    parted = rows = False  # by more than a space or a line end: outside brackets, inside brackets
    for found in _WORD.finditer(plain):
        match found[0]:
            case "[" | "(" | "{":
                depth += 1
            case "]" | ")" | "}":
                depth = max(depth - 1, 0)
            case "\n":
                line += 1
            case ";" | "|" | "\t":
                parted, rows = parted or depth == 0, rows or (depth > 0 and found[0] == ";")
            case word:
                words.append(_Word(found.start(), word, word.strip(_QUOTES + ","), line, depth > 0))
    outside = [word for word in words if not word.bracketed]
    decimal = _commas_are_decimal(outside, parted)
    words_to_note = words if rows else outside
    note = _decimal_note(outside, parted) if decimal else _parting_note(words_to_note, parted or rows)
    if note is None and quoted and all(map(_THOUSANDS.fullmatch, quoted)):
        note = _decimal_sentence(quoted[0])
    spaced = _SPACED_THOUSANDS.search(text, 0, read)
    notes = [note, _two_numbers(spaced[0], re.sub(r"\D", "", spaced[0])) if spaced else None]
    return Items(
        tuple(chain.from_iterable(_items(word, decimal) for word in words)),
        read,
        decimal or bool(quoted),
        " ".join(filter(None, notes)) or None,
    )


def _last_end(plain: str) -> int:
    """Where the last whole item ends, or 0. Not at a comma near the end: it may be a decimal comma."""
    end = max(map(plain.rfind, " \t\n;|"))
    if len(plain) - end > _LONGEST:
        end = max(end, *map(plain.rfind, ",[](){}"))
    return max(end, 0)


def _commas_are_decimal(words: list[_Word], parted: bool) -> bool:
    """Whether the commas of `words`, all outside brackets, are decimal commas; see the module's rules."""
    if not any(_DECIMAL.fullmatch(word.text.strip(_QUOTES)) for word in words):
        return False
    if any(_surely_parts(word.text.strip(_QUOTES)) for word in words):
        return False
    pointed = any("." in word.core and NUMBER.fullmatch(word.core) for word in words)
    return not pointed and (parted or len(words) > 1)


def _surely_parts(text: str) -> bool:
    """Whether `text` has a comma that can be no decimal comma. One amid what is no number says nothing."""
    if "," not in text or _DECIMAL.fullmatch(text):
        return False
    if text.startswith(",") or text.endswith(",") or text.count(",") > 1:
        return True
    return all(NUMBER.fullmatch(part.strip(_QUOTES)) for part in text.split(","))


def _items(word: _Word, decimal: bool) -> Iterator[Item]:
    """The items of one word: itself, or what its commas part."""
    if "," not in word.text or (decimal and not word.bracketed):
        whole = word.text.strip(_QUOTES)
        if whole:
            start = word.start + word.text.index(whole)
            yield Item(start, start + len(whole), whole.replace(",", "."))
        return
    symbol = _WITH_SYMBOL.fullmatch(word.core) and not _DECIMAL.fullmatch(word.core)
    if symbol or _NO_SECOND_NUMBER.fullmatch(word.core):
        start = word.start + word.text.index(word.core)
        yield Item(start, start + len(word.core), word.core)
        return
    start = word.start
    for part in word.text.split(","):
        plain = part.strip(_QUOTES)
        if plain:
            inner = start + part.index(plain)
            yield Item(inner, inner + len(plain), plain)
        start += len(part) + 1


def _decimal_note(words: list[_Word], parted: bool) -> str | None:
    """A note on decimal commas, unless nothing else can be meant."""
    commas = [word.core for word in words if _DECIMAL.fullmatch(word.core)]
    example = min(commas, key=len)
    if all(map(_THOUSANDS.fullmatch, commas)):
        return _decimal_sentence(example)
    column = len({word.line for word in words}) == len(words)
    ragged = any(NUMBER.fullmatch(word.core) for word in words)  # a line without a second column
    sure = parted or (column and ragged) or any(map(_SURE_FRACTION.search, commas))
    return None if sure else _decimal_sentence(example)


def _decimal_sentence(text: str) -> str:
    other = f"write {text.replace(',', ', ')} for two numbers"
    if _THOUSANDS.fullmatch(text):
        other += f", or {text.replace(',', '')} if the comma groups thousands"
    return f"Each comma is read as a decimal comma: '{text}' is {text.replace(',', '.')}; {other}."


def _parting_note(words: list[_Word], strongly: bool) -> str | None:
    """A note on commas that part, if each word looks like one number, or one that stands `strongly` apart."""
    cores = [word.core for word in words if word.core]
    single = [core for core in cores if _looks_like_one(core)]
    if not single or not (strongly or len(single) == len(cores)):
        return None
    text = min(single, key=len)
    if "." in text:
        decimal_mark = text[max(text.rfind("."), text.rfind(","))]
        grouping = "," if decimal_mark == "." else "."
        return _two_numbers(text, text.replace(grouping, "").replace(",", "."))
    ways = [text.replace(",", ".")]
    if _THOUSANDS.fullmatch(text):
        ways.append(text.replace(",", ""))
    elif len(cores) == 1 and words[0].text == text:
        ways.append(f"'{text};'")
    return _two_numbers(text, " or ".join(ways))


def _looks_like_one(core: str) -> bool:
    if "," not in core or _NO_SECOND_NUMBER.fullmatch(core):
        return False
    return bool(_DECIMAL.fullmatch(core) or _THOUSANDS_AND_POINT.fullmatch(core))


def _two_numbers(text: str, other: str) -> str:
    return f"'{text}' is read as two numbers; for one number write {other}."
