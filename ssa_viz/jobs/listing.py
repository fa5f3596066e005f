"""All runs, the broken ones with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssa_viz.errors import SSAVizError
from ssa_viz.jobs.folder import RUN_FILE, RunConfig, read_run
from ssa_viz.jobs.status import Status, read_status


@dataclass(frozen=True)
class Listed:
    """A run as it stands: `run` if its settings can be read, else `error` says why not."""

    folder: Path
    run: RunConfig | None
    status: Status
    error: str | None = None

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def name(self) -> str:
        return (self.run.name if self.run else "") or self.folder.name


def listed(folder: Path) -> Listed:
    """One run; never raises."""
    try:
        return Listed(folder, read_run(folder), read_status(folder))
    except SSAVizError as error:
        return Listed(folder, None, read_status(folder), str(error))


def runs(root: Path) -> list[Listed]:
    """Every run below `root`, the newest first; none without a `root`."""
    found = [listed(path.parent) for path in root.glob(f"*/{RUN_FILE}")]
    return sorted(found, key=lambda each: (each.run.created if each.run else 0.0, each.id), reverse=True)
