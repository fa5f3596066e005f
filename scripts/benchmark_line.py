"""One measured line of the benchmark: a sentence for people, a row for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Line:
    """What was measured.

    Attributes:
        what: the quantity and the size it was measured at.
        found: the numbers, with their units.
        aim: what we want, with its unit; empty where there is no aim.
        met: whether `found` reaches the aim; None without one.
    """

    what: str
    found: str
    aim: str = ""
    met: bool | None = None

    def sentence(self) -> str:
        """For example: forward pass: 9.1 ms (aim: under 10 ms, met)."""
        return f"{self.what}: {self.found}" + (f" (aim: {self.aim}, {self._verdict})" if self.aim else "")

    def row(self) -> str:
        """A row of the table that `markdown` heads."""
        return f"| {self.what} | {self.found} | {self.aim or '—'} | {self._verdict or '—'} |"

    @property
    def _verdict(self) -> str:
        return "" if self.met is None else "met" if self.met else "NOT met"


def markdown(lines: Sequence[Line]) -> str:
    """All lines as one table."""
    return "\n".join(["| what | measured | aim | |", "|---|---|---|---|", *(line.row() for line in lines)])


def seconds(what: str, measured: Sequence[float], limit: float) -> Line:
    """Median and 95th percentile of times in seconds; the aim is on the latter."""
    p50, p95 = np.percentile(measured, [50, 95])
    found = f"p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms of {len(measured)}"
    return Line(what, found, f"p95 under {1000 * limit:.0f} ms", bool(p95 < limit))


def size(what: str, measured: Sequence[int], limit: float | None) -> Line:
    """Median and largest of sizes in bytes; the aim, if there is one, is on the largest."""
    found = f"median {_bytes(float(np.median(measured)))}, at most {_bytes(max(measured))}"
    if limit is None:
        return Line(what, found)
    return Line(what, found, f"under {_bytes(limit)}", max(measured) < limit)


def _bytes(count: float) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
