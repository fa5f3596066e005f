"""model.safetensors: which tensors a model demands, and whether a file's header offers exactly those."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ssa_viz.checkpoints.format import MAX_HEADER_BYTES, MAX_PARAMETERS
from ssa_viz.checkpoints.strict_json import parse_object
from ssa_viz.errors import InvalidInputError
from ssa_viz.model import Decoder, ModelConfig
from ssa_viz.scoring import ScoringFunction

LENGTH_BYTES = 8  # of the little-endian number that comes first and says how long the header is
VALUE_BYTES = 4
DTYPE = "F32"

Shape = tuple[int, ...]


class _Shapes(TorchFunctionMode):
    """Tensors without memory need no values: to draw some, PyTorch would import its compiler, a second or more."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if func is Tensor.tril:
            return args[0]
        initialises = getattr(func, "__module__", "") == nn.init.__name__
        return options["tensor"] if initialises else func(*args, **options)


def shapes_of(make: Callable[[], nn.Module]) -> dict[str, Shape]:
    """Name → shape of every tensor that the model which `make` builds stores, without allocating any."""
    with torch.device("meta"), _Shapes():
        return {name: tuple(tensor.shape) for name, tensor in make().state_dict().items()}


def expected_shapes(config: ModelConfig) -> dict[str, Shape]:
    """Name → shape of every tensor that a model of `config` stores, without allocating any.

    Raises:
        InvalidInputError: they are more numbers than `MAX_PARAMETERS`.
    """
    shapes = shapes_of(lambda: Decoder(config))
    total = sum(math.prod(shape) for shape in shapes.values())
    if total > MAX_PARAMETERS:
        raise InvalidInputError(f"the model has {total:,} parameters, more than the {MAX_PARAMETERS:,} that are loaded")
    return shapes


def header_length(prefix: bytes, size: int) -> int:
    """The header's length in bytes, from the first 8 bytes of a file of `size` bytes.

    Raises:
        InvalidInputError: there is no such header, or it is beyond the limit.
    """
    length = int.from_bytes(prefix, "little")
    if len(prefix) < LENGTH_BYTES or not 2 <= length <= min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
        raise InvalidInputError("not a safetensors file")
    return length


def check_header(header: bytes, data_bytes: int, expected: dict[str, Shape]) -> None:
    """Compare a header with the `expected` tensors, all float32 and filling `data_bytes` bytes without a gap.

    Raises:
        InvalidInputError: naming the first tensor that differs, and how.
    """
    entries = parse_object(header)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise InvalidInputError("its metadata is not text")
    missing = [name for name in expected if name not in entries]
    extra = [name for name in entries if name not in expected]
    if missing:
        raise InvalidInputError(f"the tensor {missing[0]} is missing")
    if extra:
        raise InvalidInputError(f"the tensor {extra[0][:60]!r} is not one of this model's")
    spans = [_span(name, entries[name], shape) for name, shape in expected.items()]
    edges = [(0, 0), *sorted(spans), (data_bytes, data_bytes)]
    if any(end != start for (_, end), (start, _) in pairwise(edges)):
        raise InvalidInputError("its tensors overlap or leave gaps")


def check_finite(tensors: dict[str, Tensor]) -> None:
    """Refuse NaN and infinity.

    Raises:
        InvalidInputError: naming the first tensor that has one.
    """
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise InvalidInputError(f"the tensor {name} has NaN or infinity in it")


def scoring_values(model: Decoder) -> dict[str, list[list[float]]]:
    """The scoring function's parameters as the model holds them, name → [layer][head]."""
    layers = [module.values() for module in model.modules() if isinstance(module, ScoringFunction)]
    return {name: [layer[name] for layer in layers] for name in layers[0]}


def _span(name: str, entry: Any, shape: Shape) -> tuple[int, int]:
    """Where the tensor's bytes begin and end, after comparing its dtype, shape and length."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise InvalidInputError(f"the tensor {name} has no proper dtype, shape and data_offsets")
    if entry["dtype"] != DTYPE:
        raise InvalidInputError(f"the tensor {name} is {repr(entry['dtype'])[:20]}, not {DTYPE}")
    if not _whole_numbers(entry["shape"]) or tuple(entry["shape"]) != shape:
        raise InvalidInputError(f"the tensor {name} has shape {str(entry['shape'])[:60]}, not {list(shape)}")
    offsets = entry["data_offsets"]
    if not _whole_numbers(offsets) or len(offsets) != 2:
        raise InvalidInputError(f"the tensor {name} has no proper data_offsets")
    begin, end = offsets
    if end - begin != VALUE_BYTES * math.prod(shape):
        raise InvalidInputError(f"the tensor {name} has offsets that do not fit its shape")
    return begin, end


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
