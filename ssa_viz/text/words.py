"""Words as a word model counts them: words, marks and line ends."""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*'?|[^\w\s]|_")
END = "\n"  # the word that ends a line; the corpora have a sentence on each


def words(text: str) -> list[list[str]]:
    """The words and marks of each line that is not blank, lower-cased, with `END` after each."""
    return [[*WORD.findall(line.lower()), END] for line in text.splitlines() if line.strip()]
