"""Discovery: a new file is a new name, and nothing else needs to change."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssa_viz.errors import SSAVizError, UnknownNameError
from ssa_viz.registry import Registry
from ssa_viz.scoring import SCORING, ScoringFunction


class Shape(ABC):
    name: str

    @abstractmethod
    def area(self) -> float: ...


PLUG_IN = """
from test_registry import Shape

class {cls}(Shape):
    name = {name!r}
    {order}

    def area(self):
        return 1.0
"""
NOT_A_PLUG_IN = """
from test_registry import Shape
from shapes.square import Square  # imported, not defined here

class Polygon(Shape):  # still abstract
    name = "polygon"

class Unrelated:
    name = "unrelated"
"""


def plug_in(cls: str, name: str, order: int | None = None) -> str:
    return PLUG_IN.format(cls=cls, name=name, order="" if order is None else f"order = {order}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package `shapes` with two plug-ins and some classes that are none."""
    package = tmp_path / "shapes"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "square.py").write_text(plug_in("Square", "square"))
    (package / "aaa.py").write_text(plug_in("Zigzag", "zigzag"))
    (package / "base.py").write_text(NOT_A_PLUG_IN)
    monkeypatch.syspath_prepend(str(tmp_path))
    # The plug-ins' base must be the class above, whatever name this file was imported under.
    monkeypatch.setitem(sys.modules, "test_registry", sys.modules[__name__])
    yield package
    for module in [m for m in sys.modules if m == "shapes" or m.startswith("shapes.")]:
        del sys.modules[module]


def registry() -> Registry[Shape]:
    return Registry("shapes", Shape, "shape")


def test_finds_what_is_defined_and_concrete(folder: Path) -> None:
    found = registry()
    assert list(found) == ["square", "zigzag"]
    assert len(found) == 2
    assert found["square"]().area() == 1.0
    assert "square" in found
    assert "polygon" not in found
    assert "unrelated" not in found
    assert 3 not in found


def test_one_new_file_is_one_new_name_in_its_order(folder: Path) -> None:
    (folder / "circle.py").write_text(plug_in("Circle", "circle"))
    (folder / "late.py").write_text(plug_in("First", "first", order=0))
    assert list(registry()) == ["first", "circle", "square", "zigzag"]


def test_unknown_name_lists_the_known_ones(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"^unknown shape 'blob'; the known ones are: square, zigzag$"):
        registry()["blob"]
    assert issubclass(UnknownNameError, SSAVizError)


def test_two_classes_of_one_name_are_refused(folder: Path) -> None:
    (folder / "again.py").write_text(plug_in("Again", "square"))
    with pytest.raises(RuntimeError, match="two shapes are named 'square'"):
        list(registry())


def test_nothing_is_imported_before_it_is_asked_for(folder: Path) -> None:
    lazy = registry()
    assert "shapes.square" not in sys.modules
    list(lazy)
    assert "shapes.square" in sys.modules


def test_the_scoring_functions_are_registered() -> None:
    assert list(SCORING)[:2] == ["softmax", "ssa"]
    assert all(issubclass(SCORING[name], ScoringFunction) for name in SCORING)
