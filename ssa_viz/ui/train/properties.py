"""Everything that a visitor of the Train page can change, and the runs that it stands for."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

from ssa_viz.errors import SSAVizError
from ssa_viz.jobs import RunConfig
from ssa_viz.model import VARIANTS, ModelConfig
from ssa_viz.model.config import INITS, POSITIONS, READOUTS
from ssa_viz.scoring import SCORING, Parameter
from ssa_viz.tasks import TASKS
from ssa_viz.tasks.base import FORMATS
from ssa_viz.train import TrainConfig
from ssa_viz.train.config import PRECISIONS, SCHEDULES
from ssa_viz.train.devices import check_precision
from ssa_viz.train.presets import PRESETS
from ssa_viz.ui.state import State, choice, names, switch, text

MOST_RUNS = 20  # of one press of Train
MOST_TYPED = 40
FIRST_PRESET, FIRST_TASK, FIRST_CHOSEN = "classroom", "every", ("softmax", "ssa")


@dataclass(frozen=True)
class Setting:
    """A typed number of the form.

    Attributes:
        owner: `model` or `train`, whose field `field` it is.
        whole: whether it counts something.
    """

    label: str
    owner: str
    field: str
    whole: bool
    help: str = ""


SETTINGS = {
    "layers": Setting("Layers", "model", "layers", True),
    "heads": Setting("Heads", "model", "heads", True, "In each layer. Their number must divide the width."),
    "width": Setting("Width", "model", "width", True, "Numbers in the residual stream of a token."),
    "context": Setting("Context", "model", "context", True, "The most tokens that the model can read."),
    "length": Setting("Numbers in a prompt", "train", "length", True),
    "sigma": Setting("σ of the numbers", "train", "input_std", False, "Their standard deviation in training."),
    "steps": Setting("Steps", "train", "steps", True),
    "batch": Setting("Batch", "train", "batch", True, "Prompts in a step."),
    "rate": Setting("Learning rate", "train", "learning_rate", False, "Its peak."),
    "warmup": Setting("Warm-up steps", "train", "warmup", True, "In which the learning rate rises to its peak."),
    "decay": Setting("Weight decay", "train", "weight_decay", False, "AdamW's; with 0 it is plain Adam."),
    "clip": Setting("Gradient clipping", "train", "clip", False, "The largest norm of the gradient."),
    "first": Setting(
        "First length", "train", "first_length", True, "Numbers in the first prompts; 0: all prompts have full length."
    ),
    "grow": Setting("Longer by", "train", "length_step", True),
    "after": Setting("After steps", "train", "length_every", True),
}
CHOICES = {
    "format": ("Prompts", "train", "prompt_format", FORMATS),
    "arch": ("Architecture", "model", "variant", VARIANTS),
    "positions": ("Positions", "model", "positions", POSITIONS),
    "readout": ("Read-out", "model", "readout", READOUTS),
    "init": ("Starting weights", "model", "init", INITS),
    "schedule": ("Schedule", "train", "schedule", SCHEDULES),
    "precision": ("Precision", "train", "precision", PRECISIONS),
}


def train_state() -> State:
    """The page's state."""
    usual = texts(PRESETS[FIRST_PRESET].recipe(FIRST_TASK, "softmax", 0))
    return State(
        "train",
        [
            choice("preset", list(PRESETS), FIRST_PRESET),
            choice("task", list(TASKS), FIRST_TASK),
            names("f", list(SCORING), FIRST_CHOSEN),
            *(text(name, usual[name], MOST_TYPED) for name in SETTINGS),
            *(choice(name, list(options), usual[name]) for name, (_, _, _, options) in CHOICES.items()),
            text("seeds", "0", MOST_TYPED),
            text("device", "cpu", MOST_TYPED),
            text("threads", "1", MOST_TYPED),
            switch("compiled"),
            text("show", "", MOST_TYPED),
            text("head", "L1 H0", MOST_TYPED),
            *(text(start_of(name, p), "", MOST_TYPED) for name, p in parameters()),
            *(switch(learns_of(name, p), True) for name, p in parameters()),
        ],
    )


def parameters() -> list[tuple[str, Parameter]]:
    """Every scoring function's parameters that a run can learn."""
    return [(name, p) for name, cls in SCORING.items() for p in cls.parameters_spec if not p.constant]


def start_of(name: str, parameter: Parameter) -> str:
    """The property that holds what a scoring parameter starts from; empty for its default."""
    return f"{name}.{parameter.name}"


def learns_of(name: str, parameter: Parameter) -> str:
    """The property that says whether a scoring parameter learns."""
    return f"{name}.{parameter.name}.learns"


def texts(config: TrainConfig) -> dict[str, str]:
    """A recipe as the form's fields show it."""
    owners = {"model": config.model, "train": config}
    shown = {name: f"{getattr(owners[s.owner], s.field):.12g}" for name, s in SETTINGS.items()}
    return shown | {name: str(getattr(owners[owner], of)) for name, (_, owner, of, _) in CHOICES.items()}


def fill(state: State, config: TrainConfig) -> None:
    """Show a recipe in the form."""
    state.put(texts(config))


def fill_from_preset(state: State) -> None:
    """Show the chosen preset for the chosen task."""
    if state["preset"] is not None:
        fill(state, PRESETS[state["preset"]].recipe(state["task"], "softmax", 0))


def fill_from_run(state: State, run: RunConfig) -> None:
    """Show the settings of a run, to start another one with changes."""
    train, model = run.train, run.train.model
    fill(state, train)
    state.put({"task": train.task, "f": [model.scoring], "seeds": str(train.seed), "device": run.device})
    state["threads"] = str(run.threads)
    for parameter in SCORING[model.scoring].parameters_spec:
        if not parameter.constant:
            start = model.initial.get(parameter.name)
            state[start_of(model.scoring, parameter)] = "" if start is None else f"{start:.12g}"
            state[learns_of(model.scoring, parameter)] = model.learnable.get(parameter.name, True)


@dataclass
class Wanted:
    """What the form stands for.

    Attributes:
        runs: one for each function and seed; none if anything is wrong.
        errors: field → a sentence.
    """

    runs: list[RunConfig] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def wanted(state: State) -> Wanted:
    """The runs that the form asks for, or what is wrong with it, field by field."""
    result = Wanted()
    numbers = {name: _number(state[name], setting.whole, result.errors, name) for name, setting in SETTINGS.items()}
    threads = _number(state["threads"], True, result.errors, "threads")
    seeds = _seeds(state["seeds"], result.errors)
    if not state["f"]:
        result.errors["f"] = "Choose at least one scoring function."
    if seeds and len(state["f"]) * len(seeds) > MOST_RUNS:
        result.errors["seeds"] = (
            f"{len(state['f'])} functions with {len(seeds)} seeds are {len(state['f']) * len(seeds)} runs, more than "
            f"the {MOST_RUNS} that are started at once."
        )
    if result.errors or seeds is None or threads is None:
        return result
    values: dict[str, dict[str, object]] = {"model": {}, "train": {}}
    for name, setting in SETTINGS.items():
        values[setting.owner][setting.field] = numbers[name]
    for name, (_, owner, of, _) in CHOICES.items():
        values[owner][of] = state[name]
    comparison, now = secrets.token_hex(4), time.time()
    for scoring in state["f"]:
        start = _start(state, scoring, result.errors)
        if start is None:
            continue
        for seed in seeds:
            try:
                model = ModelConfig(**values["model"], scoring=scoring, initial=start[0], learnable=start[1])  # type: ignore[arg-type]
                check_precision(state["precision"], state["device"])
                train = TrainConfig(model=model, task=state["task"], seed=seed, **values["train"])  # type: ignore[arg-type]
                name = f"{SCORING[scoring].label}{f' · seed {seed}' if len(seeds) > 1 else ''}"
                run = RunConfig(
                    train, name, state["device"], int(threads), comparison=comparison,
                    compiled=state["compiled"] and state["device"] != "cpu",
                    created=now + 1e-3 * len(result.runs),
                )  # fmt: skip
            except SSAVizError as error:
                result.errors.setdefault(_field_of(str(error)), str(error))
            else:
                result.runs.append(run)
    if result.errors:
        result.runs = []
    return result


def _start(state: State, scoring: str, errors: dict[str, str]) -> tuple[dict[str, float], dict[str, bool]] | None:
    """A function's starting parameters and which of them are fixed; None if one cannot be."""
    initial, learnable, sound = {}, {}, True
    for name, parameter in parameters():
        if name != scoring:
            continue
        key = start_of(name, parameter)
        learns = state[learns_of(name, parameter)]
        if not learns:
            learnable[parameter.name] = False
        if state[key].strip():
            value = _number(state[key], False, errors, key)
            try:
                if value is not None:
                    initial[parameter.name] = parameter.validate(value, learnable=learns)
            except SSAVizError as error:
                errors[key] = str(error)
            sound = sound and key not in errors
    return (initial, learnable) if sound else None


def _field_of(sentence: str) -> str:
    """The form's field that an error of the configs is about; they begin with the name of theirs."""
    first = sentence.split()[0]
    fields = {setting.field: name for name, setting in SETTINGS.items()}
    fields |= {of: name for name, (_, _, of, _) in CHOICES.items()}
    if first in fields:
        return fields[first]
    if first in ("threads", "device"):
        return first
    if "context" in sentence:
        return "length"
    if "prompt format" in sentence:
        return "format"
    return "steps"


def _number(typed: str, whole: bool, errors: dict[str, str], name: str) -> float | int | None:
    """What a field says; None after telling what is wrong with it."""
    cleaned = typed.strip().replace("\N{MINUS SIGN}", "-").replace("_", "")
    try:
        value = float(cleaned)
    except ValueError:
        errors[name] = f"A number is needed, with a point before its decimals, not {typed!r}."
        return None
    if not abs(value) < 1e15:  # also NaN
        errors[name] = "This number is too large, or none at all."
        return None
    if whole and value != int(value):
        errors[name] = "A whole number is needed."
        return None
    return int(value) if whole else value


def _seeds(typed: str, errors: dict[str, str]) -> list[int] | None:
    found: list[int] = []
    for part in typed.replace(",", " ").split():
        if not part.isdecimal() or int(part) >= 2**31:
            errors["seeds"] = "Seeds are whole numbers from 0, separated by spaces."
            return None
        found += [int(part)] if int(part) not in found else []
    if not found:
        errors["seeds"] = "At least one seed is needed."
        return None
    return found
