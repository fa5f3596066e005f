"""Opening a checkpoint's files with every refusal in words, and writing them whole or not at all."""

from __future__ import annotations

import os
import stat
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ssa_viz.errors import CheckpointError

LONGEST_CAUSE = 300  # characters: a hostile file's own words must not fill the page that shows the error


def fault(path: Path, cause: object) -> CheckpointError:
    """The error for `path`: one line that starts with the file's name as models/<name>/<file>."""
    # Three parts are enough to find it and do not show a visitor where on the machine the models lie.
    shown = "/".join(path.parts[-3:])
    return CheckpointError(printable(f"{shown} {textwrap.shorten(str(cause), LONGEST_CAUSE, placeholder=' …')}"))


def printable(text: str) -> str:
    """`text` with � for what cannot be shown, lone surrogates and control characters among it."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def open_for_reading(path: Path, most: int) -> tuple[BinaryIO, int]:
    """The open file and its size in bytes.

    Raises:
        CheckpointError: it does not exist, is no regular file, is a link out of its folder, is larger than
            `most` bytes, or cannot be read.
    """
    try:
        if os.path.dirname(os.path.realpath(path)) != os.path.realpath(path.parent):
            raise fault(path, "is a link to a place outside its folder; put the file itself there")
        info = path.stat()
        # Before opening it: opening a named pipe would wait for a writer.
        if not stat.S_ISREG(info.st_mode):
            raise fault(path, "is not a file but a folder or a device; remove it and download the file again")
        if info.st_size > most:
            raise fault(path, f"has {info.st_size:,} bytes, more than the {most:,} that are read")
        return path.open("rb"), info.st_size
    except FileNotFoundError:
        raise fault(path, "is missing: the checkpoint is incomplete, train or download it again") from None
    except (OSError, ValueError) as error:
        raise fault(path, f"cannot be read: {reason(error)}") from error


@contextmanager
def prepared(contents: Mapping[Path, bytes]) -> Iterator[Callable[[], None]]:
    """Write every content to a temporary file beside its path, and yield what moves them into place, in order.

    Everything that takes room on the disk is done before anything there is touched, and a reader or a crash finds
    each file old or new, none between. Temporary files that were not moved are removed.

    Raises:
        OSError: one cannot be written or moved.
    """
    temporaries = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in contents}
    try:
        for path, temporary in temporaries.items():
            with temporary.open("wb") as file:
                file.write(contents[path])
                file.flush()
                os.fsync(file.fileno())

        def move_into_place() -> None:
            for path, temporary in temporaries.items():
                os.replace(temporary, path)
                sync_folder(path.parent)

        yield move_into_place
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the renames and removals in `folder` survive a power cut."""
    if os.name == "nt":  # which cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reason(error: Exception) -> str:
    """An operating system's error in its own words, without the path, which the message already has."""
    return (getattr(error, "strerror", None) or str(error)).lower()
