"""Name → class, by discovery: a new plug-in is one new file beside its siblings, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from ssa_viz.errors import UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, type[T]], Generic[T]):
    """The concrete subclasses of `base` found in the modules of `package`, by their `name` attribute.

    Modules are imported on first use, in alphabetical order of their file names; the order of the names is by
    the class's optional `order` attribute, then by name, so that menus do not depend on file names.

    Raises:
        UnknownNameError: on `registry[name]` for an unknown name; the message lists the valid ones.
        RuntimeError: when two classes claim one name.
    """

    def __init__(self, package: str, base: type[T], kind: str) -> None:
        self._package = package
        self._base = base
        self._kind = kind

    @cached_property
    def _classes(self) -> dict[str, type[T]]:
        found: dict[str, type[T]] = {}
        package = importlib.import_module(self._package)
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{self._package}.{info.name}")
            for cls in vars(module).values():
                defined_here = inspect.isclass(cls) and cls.__module__ == module.__name__
                if not defined_here or not issubclass(cls, self._base) or inspect.isabstract(cls):
                    continue
                name: str = cls.name
                if name in found:
                    raise RuntimeError(f"two {self._kind}s are named {name!r}: {found[name]} and {cls}")
                found[name] = cls
        return dict(sorted(found.items(), key=lambda item: (getattr(item[1], "order", 100), item[0])))

    def __getitem__(self, name: str) -> type[T]:
        try:
            return self._classes[name]
        except KeyError:
            valid = ", ".join(self._classes)
            raise UnknownNameError(f"unknown {self._kind} {name!r}; the known ones are: {valid}") from None

    def get(self, name: str, default: Any = None) -> Any:
        """The class, or `default` for an unknown name."""
        return self._classes.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)
