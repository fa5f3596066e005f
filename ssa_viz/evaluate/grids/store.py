"""Error maps on disk: those that come with the models, and those that were measured here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ssa_viz.checkpoints import CheckpointConfig
from ssa_viz.checkpoints.files import fault, prepared, reason
from ssa_viz.checkpoints.strict_json import read_object, to_bytes
from ssa_viz.errors import CheckpointError, InvalidInputError
from ssa_viz.evaluate.grids.grid import Grid
from ssa_viz.evaluate.grids.measured import Measured, from_document, key, to_document

MOST_FILES = 500  # that are kept of what was measured here; a map has some 10 kB


@dataclass(frozen=True)
class Store:
    """Two folders of maps, one file a map, named after what it depends on.

    Attributes:
        shipped: read only.
        own: where new ones go; made when needed.
    """

    shipped: Path
    own: Path

    def find(self, config: CheckpointConfig, grid: Grid) -> Measured | None:
        """The map of this checkpoint, if there is a sound one."""
        name = f"{key(config, grid)}.json"
        for folder in (self.shipped, self.own):
            if (folder / name).exists():
                try:
                    return from_document(read_object(folder / name), config, grid)
                except (CheckpointError, InvalidInputError):
                    continue  # damaged: it is as good as none, and is measured again
        return None

    def keep(self, config: CheckpointConfig, measured: Measured) -> Path:
        """Write a whole map, or nothing; where it is.

        Raises:
            CheckpointError: it cannot be written.
        """
        path = self.own / f"{key(config, measured.grid)}.json"
        try:
            self.own.mkdir(parents=True, exist_ok=True)
            with prepared({path: to_bytes(to_document(config, measured), indent=None)}) as move_into_place:
                move_into_place()
            self._prune(path)
        except OSError as error:
            raise fault(path, f"cannot be written: {reason(error)}") from error
        return path

    def _prune(self, newest: Path) -> None:
        """Remove the oldest ones beyond the limit."""
        files = [path for path in self.own.glob("*.json") if path != newest]
        if len(files) < MOST_FILES:
            return
        by_age = sorted(files, key=lambda path: path.stat().st_mtime)
        for path in by_age[: len(files) + 1 - MOST_FILES]:
            path.unlink(missing_ok=True)


def usual(models: Path, root: Path) -> Store:
    """The store beside `models`, with what is measured here in `root`/.cache/maps, or where SSA_VIZ_CACHE says."""
    given = os.environ.get("SSA_VIZ_CACHE")
    return Store(models / "maps", (Path(given) if given else root / ".cache") / "maps")
