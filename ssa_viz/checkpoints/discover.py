"""Find the checkpoints below a folder, the broken ones with the reason."""

from __future__ import annotations

import os
from pathlib import Path

from ssa_viz.checkpoints.files import fault, printable, reason
from ssa_viz.checkpoints.format import CONFIG_FILE, WEIGHTS_FILE, Listing
from ssa_viz.checkpoints.load import open_weights, read_config
from ssa_viz.errors import CheckpointError


def discover(root: Path) -> list[Listing]:
    """Every folder directly in `root` with a config or weights in it, sorted by name; none without a `root`.

    Looks at each config and at the size of each weights' file, not into the weights. Never raises: what is
    broken is listed with its error, and so is `root` itself if it cannot be read. A link out of `root` is not
    followed.
    """
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return [Listing(printable(root.name), root, None, str(fault(root, f"cannot be read: {reason(error)}")))]
    listings = (_listing(root, root / name) for name in names)
    return [listing for listing in listings if listing is not None]


def _listing(root: Path, folder: Path) -> Listing | None:
    """The listing for `folder`; None if it is no checkpoint at all."""
    try:
        if not _is_candidate(root, folder):
            return None
        config = read_config(folder)
        open_weights(config)[0].close()
    except CheckpointError as error:
        return Listing(printable(folder.name), folder, None, str(error))
    return Listing(printable(folder.name), folder, config, None)


def _is_candidate(root: Path, folder: Path) -> bool:
    """Whether `folder` is a folder with a config or weights in it.

    Raises:
        CheckpointError: it is a link out of `root`, or cannot be read.
    """
    if not os.path.isdir(folder):
        return False
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        raise fault(folder, "is a link to a place outside the models' folder; put the folder itself there")
    try:
        inside = set(os.listdir(folder))
    except OSError as error:
        raise fault(folder, f"cannot be read: {reason(error)}") from error
    return not inside.isdisjoint((CONFIG_FILE, WEIGHTS_FILE))
