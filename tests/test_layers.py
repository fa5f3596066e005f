"""The layers: each module imports only what stands below it. Read from the sources, not at run time."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From the bottom up. A module belongs to the longest name here that it starts with, and imports only from
# lower lines and from its own unit: two units on one line do not know each other.
LAYERS = (
    ("ssa_viz", "ssa_viz.version", "ssa_viz.errors"),
    ("ssa_viz.registry", "ssa_viz.items", "ssa_viz.kernels"),
    ("ssa_viz.scoring", "ssa_viz.sequence"),
    ("ssa_viz.model", "ssa_viz.tasks", "ssa_viz.metrics", "ssa_viz.text"),
    ("ssa_viz.train.config", "ssa_viz.train.language.config"),
    ("ssa_viz.train.state",),
    ("ssa_viz.checkpoints",),
    ("ssa_viz.train",),
    ("ssa_viz.evaluate", "ssa_viz.inspect"),
    ("ssa_viz.jobs",),
    ("ssa_viz.cli", "ssa_viz.figures"),
    ("ssa_viz.__main__", "ssa_viz.ui"),
    ("app", "pages"),
)
HEIGHT = {unit: height for height, units in enumerate(LAYERS) for unit in units}

# Who may import what from outside, by unit; a package that is not named here is free to all.
ONLY = {
    "streamlit": {"ssa_viz.ui", "app", "pages"},
    "plotly": {"ssa_viz.figures", "ssa_viz.ui"},
    "pandas": {"ssa_viz.ui"},
    "safetensors": {"ssa_viz.checkpoints"},
    "numba": {"ssa_viz.kernels"},
    "tokenizers": {"ssa_viz.text"},
    "datasets": {"ssa_viz.text"},
}
NEVER = {
    "ssa_viz.figures": {"torch"},
    "app": {"torch", "numpy", "plotly"},
    "pages": {"torch", "numpy", "plotly"},
}
UNSAFE = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"torch.load", "st.navigation", "streamlit.navigation"}
RETIRED_ARGUMENTS = {"use_container_width", "allow_pickle"}

LONGEST_MODULE = 300
LONGEST_PAGE = 120
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def sources() -> list[Path]:
    """Every source file of the product, relative to the root."""
    found = [*ROOT.glob("ssa_viz/**/*.py"), *ROOT.glob("app.py"), *ROOT.glob("pages/**/*.py")]
    return sorted(path.relative_to(ROOT) for path in found)


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit_of(module: str) -> str | None:
    """The unit of LAYERS that a module belongs to; None for a module outside the product.

    Below the package itself nothing is implied: a new module must be given its place.
    """
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in HEIGHT and (name != "ssa_viz" or module == name)), None)


def imported(tree: ast.AST, path: Path, modules: set[str]) -> Iterator[str]:
    """The full name of every module that the source imports, wherever in the file it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = list(path.parent.parts)[: len(path.parent.parts) - node.level + 1] if node.level else []
            base = ".".join([*package, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                # `from ssa_viz import metrics` imports a module, `from ssa_viz.tasks import TASKS` a name.
                yield submodule if submodule in modules else base


def faults(path: Path, source: str, modules: set[str]) -> list[str]:
    """What one source file does that its layer does not allow, a sentence each."""
    tree = ast.parse(source, filename=str(path))
    module = module_name(path)
    unit = unit_of(module)
    if unit is None:
        return [f"{module} has no place in LAYERS"]
    return [
        *_import_faults(module, unit, set(imported(tree, path, modules))),
        *_use_faults(module, tree),
        *_size_faults(path, unit, source),
    ]


def _import_faults(module: str, unit: str, names: set[str]) -> Iterator[str]:
    for name in sorted(names):
        package = name.split(".")[0]
        if unit not in ONLY.get(package, {unit}) or package in NEVER.get(unit, set()):
            yield f"{module} must not import {package}"
        if package in UNSAFE:
            yield f"{module} imports {package}, which can run what it reads"
        if package not in ("ssa_viz", "app", "pages"):
            continue
        target = unit_of(name)
        if target is None:
            yield f"{module} imports {name}, which has no place in LAYERS"
        elif target != unit and HEIGHT[target] >= HEIGHT[unit]:
            yield f"{module} imports {name}, which does not stand below it"


def _use_faults(module: str, tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in UNSAFE_CALLS:
            yield f"{module} uses {ast.unparse(node)}"
        if isinstance(node, ast.ImportFrom) and node.module in ("torch", "streamlit"):
            yield from (
                f"{module} uses {node.module}.{alias.name}"
                for alias in node.names
                if f"{node.module}.{alias.name}" in UNSAFE_CALLS
            )
        if isinstance(node, ast.keyword) and node.arg in RETIRED_ARGUMENTS:
            yield f"{module} passes {node.arg}"


def _size_faults(path: Path, unit: str, source: str) -> Iterator[str]:
    most = LONGEST_PAGE if unit in ("app", "pages") else LONGEST_MODULE
    lines = len(source.splitlines())
    if lines > most:
        yield f"{path.as_posix()} has {lines} lines, more than {most}"
    if VAGUE_NAMES & set(path.with_suffix("").parts):
        yield f"{path.as_posix()} is not named after one thing"


def test_every_module_keeps_to_its_layer() -> None:
    paths = sources()
    assert {Path("app.py"), Path("ssa_viz/scoring/ssa.py")} <= set(paths)
    modules = {module_name(path) for path in paths}
    found = [fault for path in paths for fault in faults(path, (ROOT / path).read_text(encoding="utf-8"), modules)]
    assert found == []


MODULES = {
    "ssa_viz",
    "ssa_viz.errors",
    "ssa_viz.scoring",
    "ssa_viz.model",
    "ssa_viz.tasks",
    "ssa_viz.metrics",
    "ssa_viz.train",
    "ssa_viz.train.config",
    "ssa_viz.train.loop",
    "ssa_viz.figures",
    "ssa_viz.ui",
}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "ssa_viz/model/decoder.py",
            "from ssa_viz.scoring import SCORING\nfrom ssa_viz.errors import SSAVizError",
        ),
        ("ssa_viz/model/decoder.py", "from ssa_viz.model.trace import Trace\nfrom . import trace"),
        ("ssa_viz/checkpoints/load.py", "from ssa_viz.train.config import TrainConfig"),
        ("ssa_viz/ui/charts.py", "import streamlit as st\nst.plotly_chart(figure, width='stretch')"),
        ("pages/1_Numbers.py", "import streamlit as st\nfrom ssa_viz.ui import setup"),
        ("ssa_viz/cli.py", "'''Never torch.load, pickle or use_container_width.'''"),
    ],
)
def test_what_a_layer_may_do_is_accepted(path: str, source: str) -> None:
    assert faults(Path(path), source, MODULES) == []


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("ssa_viz/scoring/new.py", "from ssa_viz.model import build", "does not stand below"),
        ("ssa_viz/scoring/new.py", "def f():\n    import ssa_viz.ui", "does not stand below"),
        ("ssa_viz/scoring/new.py", "from ssa_viz import ui", "does not stand below"),
        ("ssa_viz/scoring/new.py", "from .. import ui", "does not stand below"),
        ("ssa_viz/scoring/new.py", "from ..train.loop import train", "does not stand below"),
        ("ssa_viz/tasks/new.py", "from ssa_viz.model import build", "does not stand below"),
        ("ssa_viz/checkpoints/load.py", "from ssa_viz.train import TrainConfig", "does not stand below"),
        ("ssa_viz/metrics.py", "import streamlit as st", "must not import streamlit"),
        ("ssa_viz/inspect/reading.py", "from plotly import graph_objects", "must not import plotly"),
        ("ssa_viz/figures/heatmap.py", "from torch import Tensor", "must not import torch"),
        ("pages/1_Numbers.py", "import numpy as np", "must not import numpy"),
        ("app.py", "import plotly.graph_objects as go", "must not import plotly"),
        ("ssa_viz/new.py", "", "has no place in LAYERS"),
        ("ssa_viz/cli.py", "import ssa_viz.new", "has no place in LAYERS"),
        ("ssa_viz/checkpoints/load.py", "import torch\ntorch.load('x')", "uses torch.load"),
        ("ssa_viz/checkpoints/load.py", "from torch import load", "uses torch.load"),
        ("ssa_viz/checkpoints/load.py", "import pickle", "can run what it reads"),
        ("ssa_viz/checkpoints/load.py", "np.load(path, allow_pickle=True)", "passes allow_pickle"),
        (
            "ssa_viz/ui/charts.py",
            "st.plotly_chart(f, use_container_width=True)",
            "passes use_container_width",
        ),
        ("app.py", "import streamlit as st\nst.navigation([])", "uses st.navigation"),
        ("app.py", "\n" * 121, "121 lines, more than 120"),
        ("ssa_viz/cli.py", "\n" * 301, "301 lines, more than 300"),
        ("ssa_viz/ui/helpers.py", "", "not named after one thing"),
    ],
)
def test_what_a_layer_may_not_do_is_found(path: str, source: str, fault: str) -> None:
    assert fault in "\n".join(faults(Path(path), source, MODULES))


def run_python(program: str) -> str:
    """Standard output and error of a fresh interpreter in the root; a failure shows them."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_importing_the_library_changes_nothing_else() -> None:
    program = """
import random, sys
import numpy as np, torch
def state():
    torch_state = torch.get_rng_state().tolist(), torch.get_num_threads(), torch.is_grad_enabled()
    return random.getstate(), str(np.random.get_state()), torch_state
before = state()
import ssa_viz, ssa_viz.scoring, ssa_viz.model, ssa_viz.checkpoints, ssa_viz.figures, ssa_viz.evaluate
list(ssa_viz.scoring.SCORING)
assert state() == before, "importing changed a global state"
assert "streamlit" not in sys.modules, "importing loaded streamlit"
"""
    assert run_python(program) == ""


def test_figures_come_without_torch() -> None:
    program = """
import importlib, pkgutil, sys, ssa_viz.figures
names = [module.name for module in pkgutil.iter_modules(ssa_viz.figures.__path__, "ssa_viz.figures.")]
print(len([importlib.import_module(name) for name in names]), *{"torch", "streamlit"} & sys.modules.keys())
"""
    count, *loaded = run_python(program).split()
    assert int(count) > 0
    assert loaded == []


def test_such_a_program_can_fail() -> None:
    with pytest.raises(AssertionError, match="on purpose"):
        run_python("raise ValueError('on purpose')")
