"""Everything that a visitor of the Sentences page can change."""

from __future__ import annotations

from dataclasses import replace

from ssa_viz.figures.scale import Scale
from ssa_viz.inspect.sentences import WAYS
from ssa_viz.model.language import KINDS
from ssa_viz.ui.state import State, checkpoints, choice, real, switch, text, whole

MOST_CHARACTERS = 120_000  # of a typed text: more than a tokenizer takes, so that it is told and not cut
MOST_IN_ADDRESS = 2000  # browsers and proxies refuse much longer addresses
MOST_TOKEN = 4096
LAST, NOWHERE = 0, -1  # what `at` holds for the last token, and for no gap
FACTORS = [f"{step * 10**power:g}" for power in range(3) for step in (1, 2, 5)] + ["1000"]
PREDICT, SHOUT = "predict", "shout"  # what a click on a token chooses
EXAMPLES = {
    "A little story": "Once upon a time there was a little girl who lived in a house in the woods with her mother.",
    "Far from its subject": "The flowers that the old woman put on the table in the kitchen were red.",
    "Who is she": "The king had a daughter. She was very beautiful, and everyone in the land loved her.",
    "Said twice": "The wolf said good morning to the girl. The girl said good morning to the wolf.",
    "A number in a story": "The farmer had 70 sheep, and one day he sold them all at the market.",
    "Other writing": "Les élèves lisent 😀 un livre. שלום עולם! नमस्ते",
}
PAIRS = {
    "Agreement across a phrase": ("The boys near the tree are happy.", "The boys near the tree is happy."),
    "Agreement across a clause": (
        "The books that the girl found are old.",
        "The books that the girl found is old.",
    ),
    "Determiner and noun": ("He saw these flowers.", "He saw these flower."),
    "Who did it to what": ("The man opened the door.", "The door opened the man."),
    "Oneself": ("The girl hurt herself.", "The girl hurt himself."),
}
INSERTS = {"70": "70", "70000": "70000", "A rare word": "quixotic", "ALL CAPS": "LISTEN", "!!!!": "!!!!"}
VIEWS = {
    "shout": ":material/volume_up: Louder and louder",
    "write": ":material/edit_note: Writes on",
    "lines": ":material/timeline: Lines between tokens",
    "sinks": ":material/water_drop: Where weight rests",
    "pair": ":material/balance: Minimal pair",
    "difference": ":material/compare: Difference map",
}
FIRST_PAIR = next(iter(PAIRS.values()))


def sentences_state() -> State:
    """The page's state.

    `at`: the token whose prediction is looked at, and for an encoder the gap (0: the last one; −1: no gap); `click`:
    what a click on a token chooses; `on`, `loud`, `way`, `times`: whether a token shouts, which, how, and by what
    factor; `one`, `two`: the minimal pair; `count`, `seed`, `temp`, `top`: the continuation.
    """
    return State(
        "sentences",
        [
            choice("kind", KINDS, KINDS[0]),
            checkpoints("m"),
            replace(text("text", next(iter(EXAMPLES.values())), MOST_CHARACTERS), show=_in_address),
            whole("at", LAST, NOWHERE, MOST_TOKEN),
            choice("click", (PREDICT, SHOUT), PREDICT),
            switch("on"),
            whole("loud", 8, 0, MOST_TOKEN),
            choice("way", WAYS, WAYS[0]),
            choice("times", FACTORS, "20"),
            whole("layer", 1, 0, 63),
            whole("head", 0, 0, 63),
            choice("scale", [scale.value for scale in Scale], Scale.LINEAR.value),
            choice("view", list(VIEWS), "shout"),
            replace(text("one", FIRST_PAIR[0], MOST_CHARACTERS), show=_in_address),
            replace(text("two", FIRST_PAIR[1], MOST_CHARACTERS), show=_in_address),
            whole("count", 30, 1, 100),
            whole("seed", 0, 0, 2**31 - 1),
            real("temp", 0.8, 2.0),
            real("top", 0.9, 1.0, least=0.05),
        ],
    )


def _in_address(typed: str) -> str:
    return typed[:MOST_IN_ADDRESS]
