"""The table of all scoring functions on all measures: what stands in each cell, for the page and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.constant import constant_card
from ssa_viz.evaluate.functions import Functions, Measure, all_functions
from ssa_viz.evaluate.report import amount, number_at, spread
from ssa_viz.scoring import SCORING
from ssa_viz.tasks import TASKS
from ssa_viz.train.presets import shipped

MAIN = (("every", "attention_only"), ("some", "attention_only"), ("linear", "transformer"))  # that have every function
CONSTANT = {True: "Always yes", False: "Always no"}
HEADS = {
    ("injected", "70", "largest_weight"): "Weight at 70",
    ("injected", "70", "at_settled"): "At 70",
    ("injected", "70", "at"): "At 70",
    ("injected", "70", "from"): "From 70 on",
    ("injected", "-70", "from"): "From −70 on",
    ("injected", "1000", "from"): "From 1000 on",
    ("injected", "70", "after"): "After 70",
    ("injected", "-70", "after"): "After −70",
    ("injected", "1000", "after"): "After 1000",
    ("wider_inputs", "10"): "σ = 10",
    ("wider_functions", "10"): "Lines σ = 10",
    ("in_distribution",): "In distribution",
}


@dataclass(frozen=True)
class Cell:
    """A number to sort by (per cent for shares), what is shown for it, and whether it is clearly the lowest."""

    number: float | None
    text: str
    best: bool = False


NOTHING = Cell(None, "–")


@dataclass(frozen=True)
class Table:
    """Rows are functions by their labels, and constant answers; `cells` is row → column → cell."""

    columns: tuple[str, ...]
    cells: Mapping[str, Mapping[str, Cell]]


@dataclass(frozen=True)
class Part:
    """The functions of one task and architecture."""

    task: str
    variant: str
    found: Functions


def parts(seeds: Mapping[str, Any], pairs: Sequence[tuple[str, str]], *, only_shipped: bool = False) -> list[Part]:
    """What models/seeds.json has on the pairs of task and architecture; of the shipped seeds only, or of all.

    Raises:
        InvalidInputError: an entry is missing, or not of the form that scripts/zoo.py writes.
    """
    done = []
    for task, variant in pairs:
        entry = seeds.get(f"{task}-{variant}")
        if not isinstance(entry, Mapping):
            raise InvalidInputError(f"there are no numbers on {task} with {variant}")
        done.append(Part(task, variant, all_functions(task, of_shipped(entry) if only_shipped else entry)))
    return done


def of_shipped(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with the shipped seed of each function alone.

    Raises:
        InvalidInputError: it is not of the form that scripts/zoo.py writes.
    """
    try:
        cards = {name: [entry["cards"][name][entry["seeds"].index(seed)]] for name, seed in entry["shipped"].items()}
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        raise InvalidInputError(f"the shipped seeds cannot be used: {error}") from error
    return {"seeds": [0], "shipped": dict.fromkeys(cards, 0), "cards": cards}


def table(of: Sequence[Part], constants: Mapping[str, Mapping[bool, Mapping[str, Any]]]) -> Table:
    """One table of all parts; their columns are told apart by the task where there are several.

    `constants` holds for each yes-or-no task the cards of both constant answers (`constants_of`).
    """
    columns: list[str] = []
    rows = [SCORING[name].label for name in SCORING if any(name in part.found.names for part in of)]
    rows += [CONSTANT[answer] for answer in CONSTANT] if any(TASKS[part.task].boolean for part in of) else []
    cells: dict[str, dict[str, Cell]] = {row: {} for row in rows}
    for part in of:
        for measure in part.found.measures:
            head = HEADS.get(measure.path, measure.name)
            column = f"{TASKS[part.task].label}: {head}" if len(of) > 1 else head
            columns.append(column)
            for row in rows:
                cells[row][column] = NOTHING
            for name in part.found.names:
                cells[SCORING[name].label][column] = _cell(measure, name)
            for answer, card in constants.get(part.task, {}).items():
                value = number_at(card, measure.path)
                if value is not None:
                    cells[CONSTANT[answer]][column] = Cell(100 * value, f"{100 * value:.3g}%")
    return Table(tuple(columns), cells)


def constants_of(task: str, variant: str) -> dict[bool, dict[str, Any]]:
    """The cards of both constant answers, on the prompts of the shipped recipe; none for a task that asks no yes-or-no
    question."""
    if not TASKS[task].boolean:
        return {}
    run = shipped(task, variant, "softmax", 0)
    return {answer: constant_card(task, run.prompt_format, run.length, answer=answer) for answer in CONSTANT}


def _cell(measure: Measure, name: str) -> Cell:
    found = measure.found[name]
    if found is None:
        return NOTHING
    single = len(found.values) == 1
    text = amount(found.mean, measure.share) if single else spread(found.mean, found.std, measure.share)
    return Cell((100 if measure.share else 1) * found.mean, text, not single and measure.best == name)
