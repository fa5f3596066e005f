"""Text that somebody else wrote, in a Markdown field: it stays what it is."""

from __future__ import annotations

import re

SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&])")
# Addresses become links even when their characters are escaped; an invisible word joiner inside them prevents it.
LINKED = re.compile(r"(?i)(https?|ftp|mailto|xmpp|www|@)")
WORD_JOINER = "\N{WORD JOINER}"


def plain(text: str) -> str:
    """`text` with everything escaped that Markdown would turn into something else."""
    parted = LINKED.sub(lambda found: f"{found[0][:-1]}{WORD_JOINER}{found[0][-1]}{WORD_JOINER}", text)
    return SPECIAL.sub(r"\\\1", parted)
