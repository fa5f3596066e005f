"""Minimal pairs: two sentences that differ in what makes one of them ungrammatical, from files or our own templates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ssa_viz.errors import InvalidInputError
from ssa_viz.text import lexicon as lex
from ssa_viz.text.corpus import normalised

EACH = 200  # pairs of a phenomenon
TRIES = 1000  # in vain, after which there is no further pair


@dataclass(frozen=True)
class Pair:
    """Two sentences of one phenomenon, as the models' training text would write them."""

    good: str
    bad: str


Maker = Callable[[Random], tuple[str, str]]


def _agreement_simple(r: Random) -> tuple[str, str]:
    noun, plural = r.choice(lex.PEOPLE + lex.THINGS), r.random() < 0.5
    return _being(r, noun[plural], plural)


def _agreement_prepositional(r: Random) -> tuple[str, str]:
    noun, other, plural = r.choice(lex.PEOPLE), r.choice(lex.THINGS), r.random() < 0.5
    # The noun nearer to the verb has the other number, so that counting on a neighbour fails.
    phrase = f"{noun[plural]} {r.choice(lex.PLACES)} the {other[not plural]}"
    return _being(r, phrase, plural)


def _agreement_relative(r: Random) -> tuple[str, str]:
    noun, other, plural = r.choice(lex.THINGS), r.choice(lex.PEOPLE), r.random() < 0.5
    phrase = f"{noun[plural]} that the {other[not plural]} {r.choice(lex.HANDLED)}"
    return _being(r, phrase, plural)


def _agreement_verb(r: Random) -> tuple[str, str]:
    noun, verb, plural = r.choice(lex.PEOPLE), r.choice(lex.INTRANSITIVE), r.random() < 0.5
    start = f"The {r.choice(lex.ADJECTIVES)} {noun[plural]}"
    return f"{start} {verb[plural]} every day.", f"{start} {verb[not plural]} every day."


def _agreement_question(r: Random) -> tuple[str, str]:
    noun, plural = r.choice(lex.THINGS + lex.PEOPLE), r.random() < 0.5
    be = ("is", "are")
    rest = f"the {r.choice(lex.ADJECTIVES)} {noun[plural]}?"
    return f"Where {be[plural]} {rest}", f"Where {be[not plural]} {rest}"


def _determiner(r: Random) -> tuple[str, str]:
    noun, plural, far = r.choice(lex.THINGS + lex.PEOPLE), r.random() < 0.5, r.random() < 0.5
    word = (("this", "that"), ("these", "those"))
    who = r.choice(lex.MEN_NAMES + lex.WOMEN_NAMES)
    verb = r.choice(lex.SEEN)
    return (
        f"{who} {verb} {word[plural][far]} {noun[plural]}.",
        f"{who} {verb} {word[plural][far]} {noun[not plural]}.",
    )


def _determiner_adjective(r: Random) -> tuple[str, str]:
    noun, plural, far = r.choice(lex.THINGS + lex.PEOPLE), r.random() < 0.5, r.random() < 0.5
    word = (("this", "that"), ("these", "those"))
    start = f"We {r.choice(lex.SEEN)} {word[plural][far]} {r.choice(lex.ADJECTIVES)}"
    return f"{start} {noun[plural]}.", f"{start} {noun[not plural]}."


def _swapped(r: Random) -> tuple[str, str]:
    who, what, verb = r.choice(lex.PEOPLE)[0], r.choice(lex.THINGS)[0], r.choice(lex.HANDLED)
    old, new = r.sample(lex.ADJECTIVES, 2)
    return f"The {old} {who} {verb} the {new} {what}.", f"The {new} {what} {verb} the {old} {who}."


def _principle_a(r: Random) -> tuple[str, str]:
    man, woman = r.choice(lex.MEN_NAMES), r.choice(lex.WOMEN_NAMES)
    first, second, own, wrong = (man, woman, "herself", "himself")
    if r.random() < 0.5:
        first, second, own, wrong = woman, man, "himself", "herself"
    start = f"{first} said that {second} {r.choice(lex.SEEN)}"
    end = r.choice(("in the garden", "in the house", "there", "at last"))
    return f"{start} {own} {end}.", f"{start} {wrong} {end}."


def _reflexive_number(r: Random) -> tuple[str, str]:
    plural, male = r.random() < 0.5, r.random() < 0.5
    subject = r.choice(lex.MEN if male else lex.WOMEN)[plural]
    words = ("himself" if male else "herself", "themselves")
    start = f"The {r.choice(lex.ADJECTIVES)} {subject} {r.choice(lex.SEEN)}"
    return f"{start} {words[plural]}.", f"{start} {words[not plural]}."


def _reflexive_gender(r: Random) -> tuple[str, str]:
    male = r.random() < 0.5
    words = ("herself", "himself")
    start = f"The {r.choice(lex.ADJECTIVES)} {r.choice(lex.MEN if male else lex.WOMEN)[0]} {r.choice(lex.SEEN)}"
    return f"{start} {words[male]}.", f"{start} {words[not male]}."


def _subject_case(r: Random) -> tuple[str, str]:
    good, bad = r.choice((("He", "Him"), ("She", "Her"), ("They", "Them"), ("We", "Us"), ("I", "Me")))
    rest = f"{r.choice(lex.HANDLED)} the {r.choice(lex.ADJECTIVES)} {r.choice(lex.THINGS)[0]}."
    return f"{good} {rest}", f"{bad} {rest}"


def _object_case(r: Random) -> tuple[str, str]:
    good, bad = r.choice((("him", "he"), ("them", "they"), ("us", "we"), ("me", "I")))
    start = f"The {r.choice(lex.ADJECTIVES)} {r.choice(lex.PEOPLE)[0]} {r.choice(lex.SEEN)}"
    return f"{start} {good}.", f"{start} {bad}."


def _superlative(r: Random) -> tuple[str, str]:
    start = f"No {r.choice(lex.PEOPLE)[0]} {r.choice(lex.HANDLED)}"
    rest = f"{r.choice(lex.NUMBERS)} {r.choice(lex.THINGS)[1]}."
    return f"{start} more than {rest}", f"{start} at least {rest}"


def _existential(r: Random) -> tuple[str, str]:
    good, bad = r.choice((("many", "most"), ("some", "most"), ("two", "all"), ("three", "all"), ("no", "all")))
    where = r.choice(("there", "here", "in the garden"))
    rest = f"{r.choice(lex.ADJECTIVES)} {r.choice(lex.THINGS + lex.PEOPLE)[1]} {where}."
    return f"There were {good} {rest}", f"There were {bad} {rest}"


def _polarity(r: Random) -> tuple[str, str]:
    noun = r.choice(lex.PEOPLE)[0]
    rest = f"{noun} has ever {r.choice(lex.TRANSITIVE)[1]} the {r.choice(lex.THINGS)[0]}."
    return f"No {rest}", f"{r.choice(('The', 'This', 'That'))} {rest}"


def _participle(r: Random) -> tuple[str, str]:
    past, participle = r.choice(lex.TRANSITIVE)
    start = f"The {r.choice(lex.PEOPLE)[0]} had"
    rest = f"the {r.choice(lex.ADJECTIVES)} {r.choice(lex.THINGS)[0]}."
    return f"{start} {participle} {rest}", f"{start} {past} {rest}"


def _being(r: Random, subject: str, plural: bool) -> tuple[str, str]:
    be = r.choice((("is", "are"), ("was", "were")))
    start, rest = f"The {subject}", f"very {r.choice(lex.STATES)}."
    return f"{start} {be[plural]} {rest}", f"{start} {be[not plural]} {rest}"


PHENOMENA: Mapping[str, Maker] = {
    "agreement_subject_verb-simple": _agreement_simple,
    "agreement_subject_verb-across_prepositional_phrase": _agreement_prepositional,
    "agreement_subject_verb-across_relative_clause": _agreement_relative,
    "agreement_subject_verb-full_verb": _agreement_verb,
    "agreement_subject_verb-in_simple_question": _agreement_question,
    "agreement_determiner_noun-between_neighbors": _determiner,
    "agreement_determiner_noun-across_1_adjective": _determiner_adjective,
    "argument_structure-swapped_arguments": _swapped,
    "binding-principle_a": _principle_a,
    "binding-reflexive_number": _reflexive_number,
    "binding-reflexive_gender": _reflexive_gender,
    "case-subjective_pronoun": _subject_case,
    "case-objective_pronoun": _object_case,
    "quantifiers-superlative": _superlative,
    "quantifiers-existential_there": _existential,
    "npi_licensing-ever": _polarity,
    "irregular-past_participle": _participle,
}


def own_pairs(phenomenon: str, *, count: int = EACH, seed: int = 0) -> list[Pair]:
    """`count` different pairs of one of our own phenomena.

    Raises:
        InvalidInputError: there is no such phenomenon, or not so many different pairs of it.
    """
    if phenomenon not in PHENOMENA:
        raise InvalidInputError(f"there is no phenomenon {phenomenon!r}; there are: {', '.join(PHENOMENA)}")
    random = Random(f"{phenomenon} {seed}")
    found: dict[str, Pair] = {}
    vain = 0
    while len(found) < count:
        good, bad = PHENOMENA[phenomenon](random)
        vain = vain + 1 if good in found else 0
        if vain > TRIES:
            raise InvalidInputError(f"{phenomenon} has only {len(found)} different pairs, not {count}")
        found.setdefault(good, Pair(good, bad))
    return list(found.values())


def read_pairs(path: Path) -> dict[str, list[Pair]]:
    """Phenomenon → pairs, of a folder or file in the layout of Zorro (.txt) or BLiMP (.jsonl).

    Zorro: one phenomenon a file, an ungrammatical line before each grammatical one. BLiMP: a JSON object a line with
    sentence_good, sentence_bad and UID. Sentences are written as in the training text (`as_written`).

    Raises:
        InvalidInputError: there is no such file, or it is of neither layout.
    """
    if not path.exists():
        raise InvalidInputError(f"there is no file or folder {path}")
    files = sorted([*path.glob("*.txt"), *path.glob("*.jsonl")]) if path.is_dir() else [path]
    found: dict[str, list[Pair]] = {}
    for file in files:
        try:
            lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
            if file.suffix == ".jsonl":
                for line in lines:
                    item = json.loads(line)
                    pair = Pair(as_written(item["sentence_good"]), as_written(item["sentence_bad"]))
                    found.setdefault(str(item["UID"]), []).append(pair)
            else:
                if len(lines) % 2:
                    raise ValueError("an odd number of lines")
                sentences = [as_written(line) for line in lines]
                found[file.stem] = [Pair(*both) for both in zip(sentences[1::2], sentences[::2], strict=True)]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{file.name} has neither Zorro's nor BLiMP's layout ({error})") from None
    if not found:
        raise InvalidInputError(f"there is no .txt or .jsonl file in {path}")
    return found


def as_written(sentence: str) -> str:
    """A sentence of a test suite as the training text would write it: a capital first, no space before marks.

    Zorro is lower-case apart from names, and has a space before its marks.
    """
    text = normalised(sentence)
    words = ["I" if word == "i" else word for word in text.split(" ")]
    joined = " ".join(words)
    return joined[:1].upper() + joined[1:]
