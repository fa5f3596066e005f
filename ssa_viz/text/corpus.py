"""Corpora: documents from files, folders or a dataset by name, without repeats, split into training and validation."""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ssa_viz.errors import InvalidInputError

MOST_LINES = 40  # of a document without blank lines, such as a list of single sentences
LONG = 40  # characters of a sentence that may not occur twice; shorter ones ("Yes, he said.") may
DATASET = "datasets:"  # begins the name of a dataset

REPLACED = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": " -- ", "\u00a0": " "}
)
SPACES = re.compile(r"[ \t]+")
# The test suites have a space before every mark; text that people write has none.
BEFORE_MARK = re.compile(r" +([.,;:?!])")


@dataclass(frozen=True)
class Split:
    """Documents to train and to validate on; none is in both."""

    training: tuple[str, ...]
    validation: tuple[str, ...]


def normalised(text: str) -> str:
    """One way of writing for training text and for tests: composed letters, straight quotes, single spaces, none before
    a mark."""
    composed = unicodedata.normalize("NFC", text).translate(REPLACED)
    return BEFORE_MARK.sub(r"\1", SPACES.sub(" ", composed)).strip()


def documents(source: str | Path, *, most: int | None = None) -> Iterator[str]:
    """The documents of a text file, of all .txt files below a folder, or of a dataset.

    A blank line ends a document of a file; one without blank lines is cut every 40 lines. A dataset is named as
    `datasets:NAME`, `datasets:NAME:CONFIG` or `datasets:NAME:CONFIG:COLUMN`, is streamed, and needs the package
    `datasets` and a network.

    Args:
        most: how many documents at most.

    Raises:
        InvalidInputError: there is no such file or folder, it has no text, or it is not UTF-8.
    """
    if isinstance(source, str) and source.startswith(DATASET):
        return islice(_dataset(source.removeprefix(DATASET)), most)
    path = Path(source)
    if not path.exists():
        raise InvalidInputError(f"there is no file or folder {path}")
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise InvalidInputError(f"there is no .txt file below {path}")
    return islice((document for file in files for document in _of_file(file)), most)


def _of_file(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as lines:
            gathered: list[str] = []
            for line in lines:
                text = normalised(line)
                if text:
                    gathered.append(text)
                if gathered and (not text or len(gathered) >= MOST_LINES):
                    yield "\n".join(gathered)
                    gathered = []
            if gathered:
                yield "\n".join(gathered)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path.name} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InvalidInputError(f"{path.name} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _dataset(name: str) -> Iterator[str]:
    try:
        import datasets  # type: ignore[import-not-found]
    except ImportError:
        raise InvalidInputError("a dataset by name needs the package datasets: pip install datasets") from None
    path, _, rest = name.partition(":")
    config, _, column = rest.partition(":")
    try:
        rows = datasets.load_dataset(path, config or None, split="train", streaming=True)
        for row in rows:
            text = "\n".join(filter(None, map(normalised, str(row[column or "text"]).splitlines())))
            if text:
                yield text
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInputError(f"the dataset {path} cannot be read: {error}") from error


def split(texts: Iterable[str], *, validation: float, seed: int, apart_from: Iterable[str] = ()) -> Split:
    """Documents without repeats, shuffled by the seed, the given share of them for validation.

    A document that occurs twice is kept once. A sentence (a line) of more than 40 characters is kept where it occurs
    first, and left out of training where it is in a validation document or in `apart_from`, the texts to test on.

    Raises:
        InvalidInputError: the share is not from 0 to below 1, or nothing is left to train on.
    """
    if not 0 <= validation < 1:
        raise InvalidInputError(f"the share for validation is from 0 to below 1, not {validation}")
    unique = list(dict.fromkeys(texts))
    random.Random(seed).shuffle(unique)
    count = round(validation * len(unique))
    held = tuple(unique[:count])
    seen = {_digest(line) for text in (*held, *apart_from) for line in text.splitlines() if len(line) > LONG}
    training = []
    for text in unique[count:]:
        kept = []
        for line in text.splitlines():
            if len(line) > LONG:
                digest = _digest(line)
                if digest in seen:
                    continue
                seen.add(digest)
            kept.append(line)
        if kept:
            training.append("\n".join(kept))
    if not training:
        raise InvalidInputError("nothing is left to train on: the text is empty, or all of it is in the tests")
    return Split(tuple(training), held)


def _digest(line: str) -> bytes:
    """A sentence's fingerprint, case and marks aside."""
    letters = "".join(c for c in line.lower() if c.isalnum())
    return hashlib.blake2b(letters.encode(), digest_size=8).digest()
