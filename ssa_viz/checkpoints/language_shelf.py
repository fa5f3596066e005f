"""The language models in a folder, the broken ones with the reason."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ssa_viz.checkpoints.files import fault, printable, reason
from ssa_viz.checkpoints.format import CONFIG_FILE
from ssa_viz.checkpoints.language import language_run
from ssa_viz.errors import CheckpointError
from ssa_viz.train.language.config import LanguageRun


@dataclass(frozen=True)
class LanguageListing:
    """A folder with a language model's config: `run`, or the `error` that says why it cannot be used."""

    name: str
    folder: Path
    run: LanguageRun | None
    error: str | None


def discover_language(root: Path) -> list[LanguageListing]:
    """Every folder directly in `root` with a config in it, sorted by name; none without a `root`.

    Looks at the configs alone, and never raises. A link out of `root` is not followed.
    """
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return [LanguageListing(printable(root.name), root, None, str(fault(root, f"cannot be read: {reason(error)}")))]
    found = []
    for name in names:
        folder = root / name
        inside = Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))
        if not inside or not (folder / CONFIG_FILE).exists():
            continue
        try:
            found.append(LanguageListing(printable(name), folder, language_run(folder), None))
        except CheckpointError as error:
            found.append(LanguageListing(printable(name), folder, None, str(error)))
    return found
