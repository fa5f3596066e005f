"""Setting up: pins, ranges, commands and the README agree with each other. Nothing is installed here."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from streamlit import config as streamlit_config

from ssa_viz.version import __version__

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt", "requirements-bench.txt")


def lines_of(name: str) -> list[str]:
    """The lines of a requirements file without comments and blank lines."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def pins_of(name: str) -> dict[str, Version]:
    """Package → exact version, for the file alone; what it includes with -r is left out.

    Raises:
        ValueError: when a line is not `package==version`.
    """
    pins = {}
    for line in lines_of(name):
        if line.startswith("-r "):
            continue
        requirement = Requirement(line)
        [only] = requirement.specifier
        if only.operator != "==" or "*" in only.version:
            raise ValueError(f"{name}: {line!r} is not pinned")
        pins[canonicalize_name(requirement.name)] = Version(only.version)
    return pins


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_requirement_is_pinned(name: str) -> None:
    assert pins_of(name)


@pytest.mark.parametrize("line", ["torch>=2.10", "torch==2.*", "torch", "torch==2.13.0,>2"])
def test_a_loose_requirement_is_refused(line: str, tmp_path: Path) -> None:
    loose = tmp_path / "loose.txt"
    loose.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"pinned|values to unpack"):
        pins_of(str(loose))


def test_the_other_sets_build_on_the_app() -> None:
    app = pins_of("requirements.txt")
    for name in REQUIREMENTS[1:]:
        assert lines_of(name)[0] == "-r requirements.txt"
        assert not app.keys() & pins_of(name).keys()


def test_one_package_has_one_pin() -> None:
    dev, bench = pins_of("requirements-dev.txt"), pins_of("requirements-bench.txt")
    both = dev.keys() & bench.keys()
    assert "playwright" in both
    assert {name: dev[name] for name in both} == {name: bench[name] for name in both}


def test_the_ranges_admit_the_pins(project: dict[str, Any]) -> None:
    pins = pins_of("requirements.txt")
    extras = project["optional-dependencies"]
    ranges = [Requirement(text) for text in [*project["dependencies"], *extras["app"], *extras["fast"]]]
    for requirement in ranges:
        pinned = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pinned), f"{requirement} refuses {pinned}"
    # Only what makes things faster may be pinned without being needed.
    assert pins.keys() - {canonicalize_name(requirement.name) for requirement in ranges} == {"orjson"}


def test_the_library_does_not_need_streamlit(project: dict[str, Any]) -> None:
    needed = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    assert needed == {"torch", "numpy", "safetensors", "plotly", "filelock", "tokenizers"}


def test_the_version_is_one_number_in_one_place(project: dict[str, Any]) -> None:
    assert "version" in project["dynamic"]
    assert str(Version(__version__)) == __version__


def make_prints(target: str, *arguments: str) -> str:
    """What make would run for a target, without running it."""
    done = subprocess.run(
        ["make", "-n", target, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_run_starts_the_app_on_this_machine_only() -> None:
    commands = make_prints("run", "PORT=8607")
    assert "-m streamlit run app.py --server.address=127.0.0.1 --server.port='8607'" in commands
    assert "requirements-dev.txt" not in commands


def test_make_test_checks_everything() -> None:
    commands = make_prints("test")
    order = ("requirements-dev.txt", "ruff check", "ruff format --check", "mypy", "chromium.py", "-m pytest")
    places = [commands.index(command) for command in order]
    assert places == sorted(places)
    # On several cores, and nothing is chosen or left out.
    spread = "-n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder"
    assert re.search(rf"-m pytest {spread}\s*$", commands, flags=re.MULTILINE), "make test must run all tests"


def test_no_console_script_is_called() -> None:
    """A script in .venv/bin names its interpreter by its full path, which a space in that path breaks."""
    for target in ("run", "test", "format", "bench", "screenshots"):
        called = set(re.findall(r"\.venv/bin/(\S+)", make_prints(target)))
        assert called == {"python"}


def test_help_names_the_commands() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    named = re.findall(r"^  make (\w+) — \w", done.stdout, flags=re.MULTILINE)
    expected = {"run", "test", "lint", "format", "clean", "help", "bench", "screenshots"}
    assert set(named) == expected
    assert len(named) == len(expected)


def test_a_busy_port_is_said_in_one_line() -> None:
    """Runs the check that `make run` makes, on a port that is taken and on one that is none."""
    commands = make_prints("run", "PORT=8607")
    assert "Port 8607 is busy" in commands
    [program] = re.findall(r"-c '([^']*create_server[^']*)'", commands)

    def status(port: object) -> int:
        command = [sys.executable, "-c", program, str(port)]
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert status(port) != 0
    assert status(port) == 0
    assert status("eighty") != 0


def test_ci_runs_make_test_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "${BASH_SOURCE[0]}")/.."', "make test"]


def test_the_server_is_closed_to_others() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["server"]["address"] == "127.0.0.1"
    assert config["server"]["allowedHosts"] == ["127.0.0.1", "localhost"]
    assert config["server"]["enableCORS"] is True
    assert config["server"]["enableXsrfProtection"] is True
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showSidebarNavigation"] is False


def test_every_setting_of_the_server_is_one_that_streamlit_knows() -> None:
    known = set(streamlit_config._config_options_template)
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))

    def names(table: dict[str, Any], prefix: str) -> set[str]:
        found: set[str] = set()
        for name, value in table.items():
            full = f"{prefix}{name}"
            found |= names(value, f"{full}.") if isinstance(value, dict) else {full}
        return found

    assert names(config, "") - known == set()


def test_the_readme_names_every_dependency() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {canonicalize_name(name) for name in re.findall(r"^\| *`([\w.-]+)` *\|", readme, flags=re.MULTILINE)}
    assert set(pins_of("requirements.txt")) - rows == set()
