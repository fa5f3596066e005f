"""A palette PNG from indices, so that the library draws images with numpy and the standard library alone."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray


def encode(indices: NDArray[np.uint8], colours: NDArray[np.uint8], transparent: int) -> bytes:
    """PNG bytes of an image of palette indices (rows, columns), each a row of `colours` (N ≤ 256, 3).

    The colour `transparent` is not drawn.
    """
    rows, columns = indices.shape
    opacity = np.full(transparent + 1, 255, dtype=np.uint8)
    opacity[transparent] = 0
    # Every line starts with its filter type; 0, none, suits indices, whose neighbours differ without meaning.
    lines = np.zeros((rows, columns + 1), dtype=np.uint8)
    lines[:, 1:] = indices
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)  # 8 bits, palette, deflate, no interlace
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, data)
        for kind, data in (
            (b"IHDR", header),
            (b"PLTE", colours.tobytes()),
            (b"tRNS", opacity.tobytes()),
            (b"IDAT", _deflate(lines.tobytes())),
            (b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _deflate(data: bytes) -> bytes:
    # Looking only for runs (the hidden triangles) takes a third of the time, and noise has no longer matches.
    packer = zlib.compressobj(strategy=zlib.Z_RLE)
    return packer.compress(data) + packer.flush()
