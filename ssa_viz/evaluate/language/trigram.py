"""A word-trigram model: the floor that a language model has to beat on the same text."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable

from ssa_viz.errors import InvalidInputError
from ssa_viz.text.words import words

VOCABULARY = 20_000
UNKNOWN, BEFORE = "<unknown>", "<before>"


class Trigram:
    """Interpolated trigrams over lower-cased words, marks and line ends.

    Every word outside the most frequent ones counts as the same unknown word, which is easier to expect than the word
    itself: the floor is generous to the trigrams. Smoothing: Witten-Bell, in Chen and Goodman 1998, "An empirical study
    of smoothing techniques for language modeling", section 2.6 (https://dash.harvard.edu/handle/1/25104739).

    Args:
        texts: what to count.
        vocabulary: how many words are told apart, the unknown one among them.

    Raises:
        InvalidInputError: there is no word.
    """

    def __init__(self, texts: Iterable[str], vocabulary: int = VOCABULARY) -> None:
        lines = [line for text in texts for line in words(text)]
        if not lines:
            raise InvalidInputError("there is no word to count")
        self._size = vocabulary
        common = Counter(word for line in lines for word in line).most_common(vocabulary - 1)
        self._known = {word for word, _ in common}
        # The counts of what follows no, one and two words.
        self._after: list[dict[tuple[str, ...], Counter[str]]] = [defaultdict(Counter) for _ in range(3)]
        for line in lines:
            for history, word in self._steps(line):
                for order, counts in enumerate(self._after):
                    counts[history[2 - order :]][word] += 1

    def probability(self, word: str, history: tuple[str, str]) -> float:
        """Of a word after two others; the words as `words` gives them, `BEFORE` where the line has not begun."""
        word = word if word in self._known else UNKNOWN
        found = 1 / self._size
        for order, counts in enumerate(self._after):
            followed = counts.get(history[2 - order :])
            if followed is not None:
                total, kinds = followed.total(), len(followed)
                found = (followed[word] + kinds * found) / (total + kinds)
        return found

    def per_word(self, texts: Iterable[str]) -> float:
        """The perplexity a word, mark or line end.

        Raises:
            InvalidInputError: there is no word.
        """
        nats, count = 0.0, 0
        for text in texts:
            for line in words(text):
                for history, word in self._steps(line):
                    nats -= math.log(self.probability(word, history))
                    count += 1
        if not count:
            raise InvalidInputError("there is no word to measure on")
        return math.exp(nats / count)

    def _steps(self, line: list[str]) -> Iterable[tuple[tuple[str, str], str]]:
        """Each word of a line with the two before it."""
        one, two = BEFORE, BEFORE
        for word in line:
            told = word if word in self._known else UNKNOWN
            yield (one, two), told
            one, two = two, told
