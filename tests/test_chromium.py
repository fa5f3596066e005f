"""Finding a browser: only one that runs counts, only its path is printed, having none is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import chromium


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A search path with nothing on it but what the test puts there."""
    folder = tmp_path / "bin with space"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("SSA_VIZ_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "NAMES", ("chromium", "google-chrome"))
    return folder


def put(folder: Path, name: str, *, status: int) -> str:
    """An executable that prints something and ends with this status."""
    executable = folder / name
    executable.write_text(f"#!/bin/sh\necho noise; echo noise >&2\nexit {status}\n", encoding="utf-8")
    executable.chmod(0o755)
    return str(executable)


def test_a_browser_of_the_system_is_found(empty_machine: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = put(empty_machine, "google-chrome", status=0)
    assert chromium.main() == 0
    assert capfd.readouterr() == (f"{path}\n", "")


def test_a_stub_that_does_not_run_is_passed_over(empty_machine: Path) -> None:
    put(empty_machine, "chromium", status=1)
    assert chromium.from_system() is None
    works = put(empty_machine, "google-chrome", status=0)
    assert chromium.from_system() == works


def test_the_named_one_comes_first(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    put(empty_machine, "chromium", status=0)
    mine = put(empty_machine, "mine", status=0)
    monkeypatch.setenv("SSA_VIZ_CHROMIUM", mine)
    assert chromium.main() == 0
    assert capfd.readouterr().out == f"{mine}\n"


def test_a_wrongly_named_one_is_not_replaced_in_silence(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    put(empty_machine, "chromium", status=0)
    monkeypatch.setenv("SSA_VIZ_CHROMIUM", "missing")
    assert chromium.main() == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "SSA_VIZ_CHROMIUM is 'missing', which does not run" in err


def test_sources_are_asked_in_turn_until_one_has_it(capfd: pytest.CaptureFixture[str]) -> None:
    asked = []

    def source(name: str, path: str | None) -> str | None:
        asked.append(name)
        return path

    sources = [lambda: source("a", None), lambda: source("b", "/there"), lambda: source("c", "/never")]
    assert chromium.main(sources) == 0
    assert asked == ["a", "b"]
    assert capfd.readouterr().out == "/there\n"


def test_apt_is_used_where_it_is_and_then_the_search_begins_anew(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chromium.from_apt() is None  # no apt-get here
    put(empty_machine, "apt-get", status=0)
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0)
    commands: list[str] = []

    def pretend(command: list[str], *, seconds: float) -> bool:
        commands.append(" ".join(command))
        if "install" in command:
            put(empty_machine, "chromium", status=0)
        return "update" not in command

    monkeypatch.setattr(chromium, "succeeds", pretend)
    assert chromium.from_apt() == str(empty_machine / "chromium")
    assert commands[0].endswith("apt-get update")
    assert commands[1].endswith("apt-get install -y --no-install-recommends chromium")


def test_without_rights_apt_is_left_alone(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(empty_machine, "apt-get", status=0)
    put(empty_machine, "sudo", status=1)
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 1000)
    assert chromium.from_apt() is None


def test_having_none_is_one_line_and_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    assert chromium.main([lambda: None]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    [line] = err.splitlines()
    assert line.startswith("No Chromium was found and none could be installed.")
