"""JSON without its loose ends: no repeated key, no NaN or infinity, no size or depth without a limit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssa_viz.checkpoints.files import fault, open_for_reading, reason
from ssa_viz.checkpoints.format import MAX_JSON_BYTES
from ssa_viz.errors import InvalidInputError


def parse_object(content: bytes) -> dict[str, Any]:
    """The JSON object in `content`.

    Raises:
        InvalidInputError: it is not UTF-8, not JSON, not an object, or has a repeated key, a number that is
            not finite, or too many levels.
    """
    try:
        document = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"not UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise InvalidInputError("too many levels of brackets") from None
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"not JSON (line {error.lineno}, column {error.colno})") from None
    except ValueError:  # Python's own limit on the digits of a whole number
        raise InvalidInputError("a number with too many digits") from None
    if not isinstance(document, dict):
        raise InvalidInputError("not a JSON object in braces")
    return document


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file `path`.

    Raises:
        CheckpointError: naming the file and what is wrong with it.
    """
    file, size = open_for_reading(path, MAX_JSON_BYTES)
    try:
        with file:
            content = file.read(size)
        return parse_object(content)
    except OSError as error:
        raise fault(path, f"cannot be read: {reason(error)}") from error
    except InvalidInputError as error:
        raise fault(path, f"is damaged ({error}); download it again") from error


def to_bytes(document: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """`document` as readable JSON with sorted keys and a final line end; on one line with `indent` None.

    Raises:
        InvalidInputError: something in it is not JSON (NaN and infinity are not), or it is too large to read.
    """
    try:
        text = json.dumps(dict(document), allow_nan=False, sort_keys=True, indent=indent, ensure_ascii=False)
        content = (text + "\n").encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"what JSON cannot hold ({error})") from error
    if len(content) > MAX_JSON_BYTES:
        raise InvalidInputError(f"{len(content):,} bytes, more than the {MAX_JSON_BYTES:,} that are read")
    return content


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"the key {repeated!r} appears twice")
    return document


def _refuse_constant(name: str) -> float:
    raise InvalidInputError(f"{name} is not a number that JSON knows")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidInputError(f"the number {text[:20]} is too large")
    return value
