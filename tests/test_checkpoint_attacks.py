"""Damaged and hostile checkpoints: each is refused in one sentence that names its file, unbuilt."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pickle
import socket
import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch

from ssa_viz import checkpoints
from ssa_viz.checkpoints.format import MAX_HEADER_BYTES, MAX_JSON_BYTES
from ssa_viz.errors import CheckpointError
from ssa_viz.model import ModelConfig, build
from ssa_viz.train.config import TrainConfig

CONFIG, METRICS, WEIGHTS = "config.json", "metrics.json", "model.safetensors"
FIXED = {"initial": {"b": 0.7}, "learnable": {"b": False}}
TENSOR = "blocks.1.attention.out.bias"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good checkpoint, models/x, with a learned n and a fixed b."""
    config = TrainConfig(model=ModelConfig(layers=2, heads=3, width=15, context=13, scoring="ssa", **FIXED), length=11)
    folder = tmp_path / "models" / "x"
    checkpoints.save(folder, build(config.model, 7), config, {"error": 0.5})
    return folder


@pytest.fixture
def never_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was built from a checkpoint that should have been refused")

    # By import, since the package's attribute `load` is the function and not its module.
    monkeypatch.setattr(importlib.import_module("ssa_viz.checkpoints.load"), "build", refuse)


def refusal(folder: Path, file: str) -> str:
    """The error of loading `folder`, once checked to be one sentence that starts with the file's name."""
    with pytest.raises(CheckpointError) as caught:
        checkpoints.load(folder)
    return sentence(str(caught.value), file)


def sentence(message: str, file: str) -> str:
    start = f"models/x/{file} "
    assert message.startswith(start)
    rest = message.removeprefix(start)
    assert rest
    assert rest.isprintable()
    assert ". " not in rest
    assert not rest.endswith(".")
    assert len(message) < 400
    return message


def test_the_sentence_check_can_fail() -> None:
    for message in (
        "no file",
        "models/x/config.json ",
        f"models/x/{CONFIG} is bad. Sorry",
        f"models/x/{CONFIG} a\nb",
    ):
        with pytest.raises(AssertionError):
            sentence(message, CONFIG)


def by_words(value: object) -> str:
    """A test's id from the words that it expects: an attack itself can be a megabyte long."""
    return value if isinstance(value, str) else "attack"


# The weights. `seal` makes the config vouch for them, so that an attack gets past size and hash.


def unpack(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def pack(header: dict[str, Any] | bytes, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def seal(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).write_bytes(content)
    document = json.loads((folder / CONFIG).read_text())
    document["weights"].update(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    (folder / CONFIG).write_text(json.dumps(document))


def test_a_repacked_file_is_still_good(folder: Path) -> None:
    """The attacks below fail for what they change, not for having been packed here."""
    header, data = unpack((folder / WEIGHTS).read_bytes())
    seal(folder, pack({**header, "__metadata__": {"format": "pt"}}, data))
    checkpoints.load(folder)


@pytest.mark.parametrize(("missing", "words"), [(12, "is 12 bytes shorter"), (1, "is 1 byte shorter")])
def test_truncated_weights(folder: Path, never_built: None, missing: int, words: str) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:-missing])
    assert refusal(folder, WEIGHTS).endswith(f"{words} than its config says; download it again")
    (listing,) = checkpoints.discover(folder.parent)
    assert listing.error is not None
    assert words in sentence(listing.error, WEIGHTS)


def test_weights_with_something_appended(folder: Path, never_built: None) -> None:
    with (folder / WEIGHTS).open("ab") as file:
        file.write(b"tail")
    assert "4 bytes longer" in refusal(folder, WEIGHTS)


def test_empty_weights(folder: Path, never_built: None) -> None:
    (folder / WEIGHTS).write_bytes(b"")
    assert "shorter" in refusal(folder, WEIGHTS)


@pytest.mark.parametrize("place", [-1, -1000])
def test_one_flipped_bit(folder: Path, never_built: None, place: int) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[place] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    assert "SHA-256" in refusal(folder, WEIGHTS)


Header = dict[str, Any]


def resized(header: Header) -> None:
    header[TENSOR]["shape"] = [5, 3]


def retyped(header: Header) -> None:
    header[TENSOR]["dtype"] = "I32"


def halved(header: Header) -> None:
    header[TENSOR].update(dtype="F16", shape=[30])


def added(header: Header) -> None:
    header["extra"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}


def renamed(header: Header) -> None:
    header["blocks.1.attention.out.Bias"] = header.pop(TENSOR)


def overlapping(header: Header) -> None:
    """Two tensors of one size read the same bytes, and another tensor's bytes are read by none."""
    header[TENSOR]["data_offsets"] = header["blocks.0.attention.out.bias"]["data_offsets"]


def out_of_file(header: Header) -> None:
    header[TENSOR]["data_offsets"] = [2**40, 2**40 + 60]


def negative(header: Header) -> None:
    header[TENSOR]["data_offsets"] = [-60, 0]


def backwards(header: Header) -> None:
    header[TENSOR]["data_offsets"].reverse()


def fractional(header: Header) -> None:
    header[TENSOR]["data_offsets"] = [0.0, 60.0]


def boolean_shape(header: Header) -> None:
    header["read_out.bias"]["shape"] = [True]


def enormous_shape(header: Header) -> None:
    header[TENSOR]["shape"] = [2**62, 2**62]


def without_offsets(header: Header) -> None:
    del header[TENSOR]["data_offsets"]


def not_an_entry(header: Header) -> None:
    header[TENSOR] = [1, 2]


def odd_metadata(header: Header) -> None:
    header["__metadata__"] = {"format": {"deep": 1}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (resized, f"the tensor {TENSOR} has shape [5, 3], not [15]"),
        (retyped, f"the tensor {TENSOR} is 'I32', not F32"),
        (halved, f"the tensor {TENSOR} is 'F16', not F32"),
        (added, "the tensor 'extra' is not one of this model's"),
        (renamed, f"the tensor {TENSOR} is missing"),
        (overlapping, "overlap or leave gaps"),
        (out_of_file, "overlap or leave gaps"),
        (negative, f"the tensor {TENSOR} has no proper data_offsets"),
        (backwards, f"the tensor {TENSOR} has offsets that do not fit its shape"),
        (fractional, f"the tensor {TENSOR} has no proper data_offsets"),
        (boolean_shape, "the tensor read_out.bias has shape [True], not [1]"),
        (enormous_shape, f"the tensor {TENSOR} has shape"),
        (without_offsets, f"the tensor {TENSOR} has no proper dtype, shape and data_offsets"),
        (not_an_entry, f"the tensor {TENSOR} has no proper dtype, shape and data_offsets"),
        (odd_metadata, "its metadata is not text"),
    ],
)
def test_forged_header(folder: Path, never_built: None, change: Callable[[Header], None], words: str) -> None:
    header, data = unpack((folder / WEIGHTS).read_bytes())
    change(header)
    seal(folder, pack(header, data))
    assert words in refusal(folder, WEIGHTS)


def test_missing_tensor_with_its_bytes_gone_too(folder: Path, never_built: None) -> None:
    header, data = unpack((folder / WEIGHTS).read_bytes())
    last = max(header, key=lambda name: header[name]["data_offsets"])
    begin, _ = header.pop(last)["data_offsets"]
    seal(folder, pack(header, data[:begin]))
    assert f"the tensor {last} is missing" in refusal(folder, WEIGHTS)


def test_bytes_that_no_tensor_owns(folder: Path, never_built: None) -> None:
    header, data = unpack((folder / WEIGHTS).read_bytes())
    seal(folder, pack(header, data + b"hidden"))
    assert "overlap or leave gaps" in refusal(folder, WEIGHTS)


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2**64 - 1) + b"{}",
        struct.pack("<Q", MAX_HEADER_BYTES + 1) + b" " * (MAX_HEADER_BYTES + 1),
        struct.pack("<Q", 3) + b"{}",  # one byte more than there is
        struct.pack("<Q", 0),
        b"PK",
    ],
    ids=by_words,
)
def test_absurd_header_length(folder: Path, never_built: None, content: bytes) -> None:
    seal(folder, content)
    assert "not a safetensors file" in refusal(folder, WEIGHTS)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b"[" * 200_000, "too many levels of brackets"),
        (b'{"a":' * 100_000, "too many levels of brackets"),
        (b"[1, 2]", "not a JSON object"),
        (b"{nope}", "not JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"a": {}, "a": {}}', "the key 'a' appears twice"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b"{" + b",".join(b'"%d":0' % i for i in range(50_000)) + b"}", "is missing"),
    ],
    ids=by_words,
)
def test_header_that_is_a_bomb_or_no_header(folder: Path, never_built: None, header: bytes, words: str) -> None:
    seal(folder, pack(header, b""))
    assert words in refusal(folder, WEIGHTS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite(folder: Path, never_built: None, value: float) -> None:
    header, data = unpack((folder / WEIGHTS).read_bytes())
    _, end = header[TENSOR]["data_offsets"]
    seal(folder, pack(header, data[: end - 4] + struct.pack("<f", value) + data[end:]))
    assert f"the tensor {TENSOR} has NaN or infinity" in refusal(folder, WEIGHTS)


def test_a_fixed_scoring_parameter_that_is_not_the_one_in_the_config(folder: Path) -> None:
    """A fixed value outside its range would otherwise enter through the weights."""
    header, data = unpack((folder / WEIGHTS).read_bytes())
    begin, end = header["blocks.1.attention.scoring.b"]["data_offsets"]
    seal(folder, pack(header, data[:begin] + struct.pack("<3f", -1.0, 0.7, 0.7) + data[end:]))
    assert "the scoring parameter b is not the one in the config" in refusal(folder, WEIGHTS)


class Trap:
    """Unpickling this makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("wrapping", ["pickle", "torch", "header", "metrics"])
def test_a_pickle_is_never_executed(folder: Path, tmp_path: Path, never_built: None, wrapping: str) -> None:
    marker = tmp_path / "executed"
    content = pickle.dumps(Trap(marker))
    pickle.loads(content)
    assert marker.is_dir()  # the trap works
    marker.rmdir()
    file = WEIGHTS
    if wrapping == "torch":
        buffer = BytesIO()
        torch.save(Trap(marker), buffer)
        content = buffer.getvalue()
    if wrapping == "header":
        content = pack(content, b"")
    if wrapping == "metrics":
        file = METRICS
        (folder / METRICS).write_bytes(content)
    else:
        seal(folder, content)
    assert refusal(folder, file)
    assert not marker.exists()


# The config.


def edited(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((folder / CONFIG).read_text())
    change(document)
    (folder / CONFIG).write_text(json.dumps(document))


def refused_everywhere(folder: Path) -> str:
    """The config's error, the same from each of the three ways to read it."""
    message = refusal(folder, CONFIG)
    with pytest.raises(CheckpointError) as caught:
        checkpoints.read_config(folder)
    assert str(caught.value) == message
    (listing,) = checkpoints.discover(folder.parent)
    assert (listing.name, listing.config, listing.error) == ("x", None, message)
    return message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON (line 1, column 1)"),
        (b"not json", "not JSON"),
        (b'{"format": "ssa-viz-checkpoint"', "not JSON"),
        (b"\x80\x04\x95", "not UTF-8 text"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8 text"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"steps": NaN}', "NaN is not a number"),
        (b'{"steps": -Infinity}', "-Infinity is not a number"),
        (b'{"steps": 1e999}', "the number 1e999 is too large"),
        (b'{"a": 1, "a": 1}', "the key 'a' appears twice"),
        (b'{"train": {"seed": 1, "seed": 2}}', "the key 'seed' appears twice"),
        (b'{"a":' * 100_000, "too many levels"),
        (b"1" * 5000, "too many digits"),
        (b" " * (MAX_JSON_BYTES + 1), "more than the 1,048,576 that are read"),
        (b"{}", "format must be 'ssa-viz-checkpoint', not None"),
    ],
    ids=by_words,
)
def test_config_that_is_no_json_object(folder: Path, never_built: None, content: bytes, words: str) -> None:
    (folder / CONFIG).write_bytes(content)
    assert words in refused_everywhere(folder)


def paths(document: dict[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in document.items():
        yield (*prefix, name)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, name))


def inner(document: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for name in path:
        document = document[name]
    return document


def test_every_key_is_needed_and_typed_and_no_other_is_accepted(folder: Path, never_built: None) -> None:
    good = json.loads((folder / CONFIG).read_text())
    free = {("model", "initial"), ("model", "learnable")}  # may lack any of their keys
    for path in paths(good):
        shown = ".".join(path)
        optional = path[:2] in free and len(path) > 2
        wrongs = [None, {"odd": 1}, "\ud800 odd", *([] if optional else [...])]
        for wrong in wrongs:
            document = json.loads(json.dumps(good))
            section = inner(document, path[:-1])
            if wrong is ...:
                del section[path[-1]]
            else:
                section[path[-1]] = wrong
            (folder / CONFIG).write_text(json.dumps(document))
            message = refused_everywhere(folder)
            if wrong is None and path[:2] not in free and path != ("format",):
                assert shown in message, message
        document = json.loads(json.dumps(good))
        if isinstance(inner(document, path[:-1])[path[-1]], dict):
            inner(document, path)["odd"] = 1
            (folder / CONFIG).write_text(json.dumps(document))
            assert "odd" in refused_everywhere(folder)
    (folder / CONFIG).write_text(json.dumps({**good, "odd": 1}))
    assert "'odd' is not a known field" in refused_everywhere(folder)


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["model"].update(width=10**9), "width must be a whole number from 1 to 4096"),
        (lambda d: d["model"].update(width=10**400), "model.width is too large"),
        (lambda d: d["model"].update(width=-15), "width must be a whole number"),
        (lambda d: d["model"].update(width=15.0), "model.width must be a whole number, not 15.0"),
        (lambda d: d["model"].update(layers=True), "model.layers must be a whole number, not True"),
        (lambda d: d["model"].update(heads=2), "must be a multiple of heads"),
        (lambda d: d["model"].update(variant="encoder"), "variant must be one of"),
        (lambda d: d["model"].update(scoring="exec"), "unknown scoring function 'exec'; the known ones are:"),
        (lambda d: d["model"].update(scoring="e" * 500_000), "unknown scoring function"),
        (lambda d: d["model"].update(scoring="softmax"), "softmax has no parameter 'b'"),
        (lambda d: d["model"].update(scoring="softmax", initial={}, learnable={}), "scoring.name is 'ssa'"),
        (lambda d: d["model"]["initial"].update(n=0.5), "n must be a number from 1.000001"),
        (lambda d: d["model"]["initial"].update({"\x1b[2J\n": 2.0}), "has no parameter"),
        (lambda d: d["model"]["initial"].update({"\ud800": "x"}), "must be a number"),
        (lambda d: d["model"]["learnable"].update(n=1), "must be true or false, not 1"),
        (lambda d: d["task"].update(name="chess"), "unknown task 'chess'"),
        (lambda d: d["task"].update(length=14), "more than the context of 13"),
        (lambda d: d["task"].update(prompt_format="haiku"), "no prompt format 'haiku'"),
        (lambda d: d["train"].update(steps=0), "steps must be a whole number from 1"),
        (lambda d: d["train"].update(learning_rate="0.1"), "train.learning_rate must be a number, not '0.1'"),
        (lambda d: d["weights"].update(file="../y/model.safetensors"), "weights.file must be"),
        (lambda d: d["weights"].update(sha256="0" * 63), "64 lower-case hexadecimal digits"),
        (lambda d: d["weights"].update(bytes=2**40), "weights.bytes must be from 1 to 536,870,912"),
        (lambda d: d["weights"].update(bytes=0), "weights.bytes must be from 1"),
        (lambda d: d.update(name="<b>x</b>"), "name may have letters"),
        (lambda d: d.update(name="../x"), "name may have letters"),
        (lambda d: d["scoring"]["params"]["n"].pop(), "scoring.params.n must have 2"),
        (lambda d: d["scoring"]["params"]["n"][0].pop(), "scoring.params.n must have 3"),
        (lambda d: d["scoring"]["params"]["n"][0].__setitem__(0, 0.9), "scoring.params.n must be from 1 to inf"),
        (lambda d: d["scoring"]["params"]["b"][0].__setitem__(0, 0.8), "must be 0.7, as it is fixed"),
        (lambda d: d["scoring"]["params"].update(c=[]), "scoring.params.'c' is not a known field"),
        (
            lambda d: d.update(schema_version=3),
            "schema_version 3 is not one that is read (1, 2); a newer version",
        ),
        (lambda d: d.update(schema_version=-1), "schema_version -1 is not one that is read (1, 2)"),
        (lambda d: d.update(schema_version="1"), "schema_version must be a whole number"),
        (lambda d: d.update(format="other"), "format must be 'ssa-viz-checkpoint', not 'other'"),
    ],
    ids=by_words,
)
def test_forged_config(folder: Path, never_built: None, change: Change, words: str) -> None:
    edited(folder, change)
    assert words in refused_everywhere(folder)


@pytest.mark.parametrize("variant", ["attention_only", "transformer"])
def test_a_config_that_asks_for_gigabytes(folder: Path, never_built: None, variant: str) -> None:
    """64 layers of width 4096 would be 17 or 52 GB: sizes that are each allowed, but not together."""
    edited(folder, lambda d: d["model"].update(variant=variant, layers=64, width=4096, heads=64))
    for values in ("n", "b"):
        start = {"n": 1.5, "b": 0.7}[values]
        edited(folder, lambda d: d["scoring"]["params"].update({values: [[start] * 64] * 64}))  # noqa: B023
    assert "parameters, more than the 100,000,000 that are loaded" in refused_everywhere(folder)


def test_a_config_of_another_size_than_the_weights(folder: Path, never_built: None) -> None:
    edited(folder, lambda d: d["model"].update(width=21))
    assert "has shape" in refusal(folder, WEIGHTS)


def test_a_told_scoring_value_that_the_weights_do_not_have(folder: Path) -> None:
    edited(folder, lambda d: d["scoring"]["params"]["n"][1].__setitem__(2, 3.0))
    assert "the scoring parameter n is not the one in the config" in refusal(folder, WEIGHTS)


# The metrics.


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b'{"a": Infinity}', "Infinity is not a number"),
        (b"[1]", "not a JSON object"),
        (b" " * (MAX_JSON_BYTES + 1), "more than"),
    ],
    ids=by_words,
)
def test_broken_metrics(folder: Path, never_built: None, content: bytes, words: str) -> None:
    (folder / METRICS).write_bytes(content)
    assert words in refusal(folder, METRICS)


# The files themselves.


@pytest.mark.parametrize("file", [CONFIG, WEIGHTS])
def test_missing_file(folder: Path, never_built: None, file: str) -> None:
    (folder / file).unlink()
    assert "is missing" in refusal(folder, file)
    (listing,) = checkpoints.discover(folder.parent)
    assert "is missing" in sentence(str(listing.error), file)


def test_missing_folder(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"models/y/config\.json is missing"):
        checkpoints.load(folder.parent / "y")


@pytest.mark.parametrize("file", [CONFIG, METRICS, WEIGHTS])
@pytest.mark.parametrize("kind", ["folder", "pipe", "socket"])
def test_something_else_in_a_files_place(folder: Path, never_built: None, file: str, kind: str) -> None:
    path = folder / file
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        before = Path.cwd()
        os.chdir(folder)  # a socket's address may have 100 characters only
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(file)
        finally:
            os.chdir(before)
    assert "is not a file but" in refusal(folder, file)


@pytest.mark.parametrize("file", [CONFIG, METRICS, WEIGHTS])
def test_a_file_that_is_a_link_out_of_the_folder(folder: Path, tmp_path: Path, never_built: None, file: str) -> None:
    (folder / file).rename(tmp_path / "secret")
    (folder / file).symlink_to(tmp_path / "secret")
    assert "is a link to a place outside its folder" in refusal(folder, file)


@pytest.mark.parametrize("file", [CONFIG, METRICS, WEIGHTS])
def test_a_link_in_a_circle(folder: Path, never_built: None, file: str) -> None:
    (folder / file).unlink()
    (folder / file).symlink_to(file)
    assert "cannot be read: too many levels of symbolic links" in refusal(folder, file)


@pytest.mark.parametrize("file", [CONFIG, METRICS, WEIGHTS])
def test_a_file_without_permission(folder: Path, never_built: None, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """The refusal is played, since an administrator, as whom tests may run, is refused nothing."""
    opened = Path.open

    def guarded(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.name == file:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", guarded)
    message = refusal(folder, file)
    assert message.endswith("cannot be read: permission denied")


def test_a_path_through_a_file(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read: not a directory"):
        checkpoints.load(folder / CONFIG)


def test_a_path_with_a_null_byte(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be read: .*null"):
        checkpoints.load(folder.parent / "a\0b")
