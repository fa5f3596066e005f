"""Everything that a visitor of the Scoring lab can change."""

from __future__ import annotations

from dataclasses import replace

from ssa_viz.inspect.lab import MOST_KEYS, Chosen
from ssa_viz.scoring import SCORING, Parameter
from ssa_viz.ui.state import Property, State, choice, names, switch, text, whole
from ssa_viz.ui.typed import in_address

START = "4 1 0.8 0.5 -0.2"
PRESETS = {
    "One shouts": "70 1 0.8 0.5 -0.2",
    "One leads": START,
    "Two close": "3 2.9 0.5 0 -1",
    "All equal": "1 1 1 1 1",
    "None positive": "-0.5 -1 -2 -3 -4",
    "Many small, one large": "6 0.3 0.1 0.4 0.2 0 0.3 0.1 0.2 0.4 0 0.1",
}
FIRST_CHOSEN = ("softmax", "ssa", "softmax_plus_one", "sparsemax")
MOST_CHARACTERS = 5000
STEPS = (1, 2, 5)
FACTORS = ["0.1", "0.2", "0.5", *(str(s * 10**e) for e in range(4) for s in STEPS), "10000"]  # λ
GROWN = ["0", "0.5", "1", "2", "3", "5", "7", "10", "15", "20", "30", "50", "70", "100", "200", "500", "1000", "10000"]
POWERS = [*(str(s * 10**e) for e in range(6) for s in STEPS), "1000000"]  # m
VIEWS = {
    "magnify": ":material/zoom_out_map: Magnify all",
    "grow": ":material/north: One grows",
    "meet": ":material/merge: SSA becomes softmax",
    "shape": ":material/show_chart: Shapes",
    "gradient": ":material/grid_4x4: Gradients",
    "functions": ":material/menu_book: All functions",
}
SHAPES = {
    "score": "Score s(x)",
    "score_slope": "Its slope",
    "weight": "Weight beside 7 zeros",
    "weight_slope": "Slope of that",
}
DEFAULT_FACTOR, DEFAULT_T, DEFAULT_M = "50", "70", "10"


def lab_state() -> State:
    """The page's state."""
    return State(
        "lab",
        [
            replace(text("x", START, MOST_CHARACTERS), show=in_address),
            names("f", list(SCORING), FIRST_CHOSEN),
            choice("view", list(VIEWS), "magnify"),
            choice("factor", FACTORS, DEFAULT_FACTOR),
            choice("t", GROWN, DEFAULT_T),
            whole("key", 1, 1, MOST_KEYS),
            choice("m", POWERS, DEFAULT_M),
            choice("shape", list(SHAPES), "score"),
            switch("log", True),
            *(_parameter(name, p) for name, cls in SCORING.items() for p in cls.parameters_spec),
        ],
    )


def property_of(name: str, parameter: Parameter) -> str:
    """The property that holds a parameter of a scoring function, such as `ssa.n`."""
    return f"{name}.{parameter.name}"


def chosen(state: State) -> list[Chosen]:
    """The chosen functions with their parameters, in the registry's order."""
    return [_chosen(state, name) for name in SCORING if name in state["f"]]


def _chosen(state: State, name: str) -> Chosen:
    values = {p.name: (float(state[property_of(name, p)]), p.default) for p in SCORING[name].parameters_spec}
    return Chosen(name, tuple(sorted((key, value) for key, (value, default) in values.items() if value != default)))


def _parameter(name: str, parameter: Parameter) -> Property:
    low, high = parameter.slider

    def parse(given: str) -> float:
        if not low <= (value := float(given)) <= high:
            raise ValueError
        return value

    return Property(property_of(name, parameter), parameter.default, parse, lambda value: f"{value:.6g}")
