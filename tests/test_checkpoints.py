"""Checkpoints: what is saved comes back bit for bit, and an interrupted save never passes for complete."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import itertools
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from ssa_viz import checkpoints
from ssa_viz.checkpoints import files, schema
from ssa_viz.checkpoints.format import MAX_JSON_BYTES
from ssa_viz.errors import CheckpointError
from ssa_viz.model import VARIANTS, Decoder, ModelConfig, build
from ssa_viz.model.config import POSITIONS, READOUTS
from ssa_viz.scoring import SCORING
from ssa_viz.train.config import TrainConfig
from ssa_viz.version import __version__

SIZES = {"layers": 2, "heads": 3, "width": 15, "context": 13}
METRICS = {"error": 0.1, "by_position": [0.5, 1e-9], "note": "σ = 1"}


def trained(**options: object) -> tuple[Decoder, TrainConfig]:
    """A small model whose every learnable number differs from where `build` starts it."""
    config = TrainConfig(model=ModelConfig(**SIZES, **options), length=11, seed=7, steps=17, learning_rate=3e-4)
    model = build(config.model, config.seed).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model, config


def bits(model: Decoder) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models" / "x"


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize(
    ("variant", "scoring", "positions", "readout"),
    list(itertools.product(VARIANTS, SCORING, POSITIONS, READOUTS)),
)
def test_what_is_saved_comes_back_bit_for_bit(
    folder: Path, variant: str, scoring: str, positions: str, readout: str, learns: bool
) -> None:
    spec = SCORING[scoring].parameters_spec
    starts = {p.name: p.slider[0] + 0.3 * (p.slider[1] - p.slider[0]) for p in spec}
    model, config = trained(
        variant=variant,
        scoring=scoring,
        positions=positions,
        readout=readout,
        initial={} if learns else starts,
        learnable={p.name: learns and not p.constant for p in spec},
    )
    checkpoints.save(folder, model, config, METRICS)

    loaded = checkpoints.load(folder)

    assert loaded.config.train == config
    assert loaded.metrics == METRICS
    assert bits(loaded.model) == bits(model)
    numbers = torch.randn(7, 11, generator=torch.Generator().manual_seed(3))
    assert torch.equal(loaded.model(numbers).predictions, model(numbers).predictions)
    # The values told to a reader are the ones that the layers use, head by head.
    for name, start in starts.items():
        told = loaded.config.scoring[name]
        assert np.shape(told) == (SIZES["layers"], SIZES["heads"])
        for layer, values in enumerate(told):
            held = loaded.model.blocks[layer].attention.scoring.value(name)
            torch.testing.assert_close(torch.tensor(values), held, rtol=1e-6, atol=0.0)
            assert learns or values == pytest.approx([start] * SIZES["heads"])


def test_a_loaded_model_is_frozen_and_the_random_state_untouched(folder: Path) -> None:
    checkpoints.save(folder, *trained(variant="transformer", scoring="ssa"), {})
    before = torch.get_rng_state()

    model = checkpoints.load(folder).model

    assert torch.equal(torch.get_rng_state(), before)
    assert not any(module.training for module in model.modules())
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_config_tells_what_the_files_are(folder: Path) -> None:
    model, config = trained(scoring="ssa")
    checkpoints.save(folder, model, config, METRICS)
    content = (folder / "model.safetensors").read_bytes()

    read = checkpoints.read_config(folder)

    assert (read.name, read.folder, read.train) == ("x", folder, config)
    assert read.sha256 == hashlib.sha256(content).hexdigest()
    assert read.weight_bytes == len(content)
    assert (read.library_version, read.torch_version) == (__version__, str(torch.__version__))
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.name = "y"  # type: ignore[misc]


def test_config_is_read_without_the_weights(folder: Path) -> None:
    model, config = trained()
    checkpoints.save(folder, model, config, {})
    (folder / "model.safetensors").unlink()
    assert checkpoints.read_config(folder).train == config


def test_json_is_sorted_indented_and_ends_its_last_line(folder: Path) -> None:
    checkpoints.save(folder, *trained(), METRICS)
    for name in ("config.json", "metrics.json"):
        text = (folder / name).read_text(encoding="utf-8")
        expected = json.dumps(json.loads(text), sort_keys=True, indent=2, ensure_ascii=False)
        assert text == expected + "\n"


def test_same_model_gives_same_bytes(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        checkpoints.save(tmp_path / parent / "x", *trained(scoring="ssa"), METRICS)
    for name in ("model.safetensors", "config.json", "metrics.json"):
        assert (tmp_path / "a/x" / name).read_bytes() == (tmp_path / "b/x" / name).read_bytes()


def test_metrics_may_be_missing(folder: Path) -> None:
    checkpoints.save(folder, *trained(), METRICS)
    (folder / "metrics.json").unlink()
    assert checkpoints.load(folder).metrics == {}


def test_weights_that_are_not_contiguous_are_stored_as_they_read(folder: Path) -> None:
    model, config = trained()
    weight = model.read_out.weight.detach()
    model.read_out.weight = torch.nn.Parameter(torch.stack([weight, -weight], dim=-1)[..., 0])
    assert not model.read_out.weight.is_contiguous()
    checkpoints.save(folder, model, config, {})
    assert torch.equal(checkpoints.load(folder).model.read_out.weight, weight)


# What cannot be saved is refused before anything is written.


def poisoned(model: Decoder, value: float) -> None:
    with torch.no_grad():
        model.read_out.weight[0, 0] = value


def tied(model: Decoder) -> None:
    model.blocks[0].attention.qkv.bias = model.blocks[1].attention.qkv.bias


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda model: poisoned(model, float("nan")), "read_out.weight has NaN or infinity"),
        (lambda model: poisoned(model, float("-inf")), "read_out.weight has NaN or infinity"),
        (lambda model: model.double(), "is torch.float64"),
        (lambda model: model.half(), "is torch.float16"),
        (tied, "share their memory"),
    ],
)
def test_unfit_weights_are_refused(folder: Path, spoil: object, words: str) -> None:
    model, config = trained()
    spoil(model)  # type: ignore[operator]
    with pytest.raises(CheckpointError, match=f"^models/x/model.safetensors cannot be written: .*{words}"):
        checkpoints.save(folder, model, config, {})
    assert not folder.exists()


def test_a_model_of_another_config_is_refused(folder: Path) -> None:
    model, _ = trained()
    _, other = trained(variant="transformer")
    with pytest.raises(CheckpointError, match="not built from this training config"):
        checkpoints.save(folder, model, other, {})


@pytest.mark.parametrize(
    "metrics",
    [{"error": float("nan")}, {"a": {"b": [float("inf")]}}, {"a": object()}, {"a": "x" * MAX_JSON_BYTES}, 5],
)
def test_metrics_that_could_not_be_read_back_are_refused(folder: Path, metrics: object) -> None:
    with pytest.raises(CheckpointError, match=r"^models/x/metrics\.json cannot be written"):
        checkpoints.save(folder, *trained(), metrics)  # type: ignore[arg-type]
    assert not folder.exists()


def test_a_training_config_of_the_wrong_types_is_refused(folder: Path) -> None:
    model, config = trained()
    object.__setattr__(config, "steps", 17.5)  # which its own constructor would refuse
    with pytest.raises(CheckpointError, match=r"config\.json cannot be written: train\.steps"):
        checkpoints.save(folder, model, config, {})


@pytest.mark.parametrize("name", [" x", "a b", ".hidden", "ä", "x" * 101, "a\nb"])
def test_a_name_that_could_not_be_shown_or_typed_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="cannot name a checkpoint"):
        checkpoints.save(tmp_path / name, *trained(), {})


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(CheckpointError, match="x cannot be written: file exists"):
        checkpoints.save(tmp_path / "x", *trained(), {})
    assert (tmp_path / "x").read_text() == "mine"


# A crash while saving.


class PowerCutError(Exception):
    pass


@pytest.mark.parametrize("survivors", [0, 1, 2])
@pytest.mark.parametrize("existing", [False, True])
def test_a_save_cut_short_is_incomplete(
    folder: Path, monkeypatch: pytest.MonkeyPatch, survivors: int, existing: bool
) -> None:
    """Whichever file was the last to be finished, nothing half-written is taken for a checkpoint."""
    if existing:
        checkpoints.save(folder, *trained(), {"old": 1})
        assert checkpoints.load(folder).metrics == {"old": 1}
    finished: list[str] = []
    replace = os.replace

    def cut(source: Path, target: Path) -> None:
        if len(finished) == survivors:
            raise PowerCutError
        finished.append(Path(target).name)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", cut)
        with pytest.raises(PowerCutError):
            checkpoints.save(folder, *trained(variant="transformer"), {"new": 1})

    assert finished == ["model.safetensors", "metrics.json"][:survivors]
    assert not list(folder.glob(".*"))  # no temporary file
    with pytest.raises(CheckpointError, match=r"^models/x/config\.json is missing"):
        checkpoints.load(folder)
    listings = checkpoints.discover(folder.parent)
    if existing or survivors:
        (listing,) = listings
        assert listing.config is None
        assert listing.error is not None
        assert listing.error.startswith("models/x/config.json is missing: the checkpoint is incomplete")
    else:
        assert listings == []
    # And saving once more mends it.
    checkpoints.save(folder, *trained(variant="transformer"), {"new": 1})
    assert checkpoints.load(folder).metrics == {"new": 1}


def test_a_killed_save_leaves_a_temporary_config_that_nobody_reads(folder: Path) -> None:
    checkpoints.save(folder, *trained(), {})
    (folder / "config.json").rename(folder / ".config.json.4711.tmp")
    with pytest.raises(CheckpointError, match="incomplete"):
        checkpoints.load(folder)


def test_files_reach_the_disk_before_they_get_their_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    replace, fsync = os.replace, os.fsync

    def noted_fsync(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        calls.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(files.os, "fsync", noted_fsync)
    monkeypatch.setattr(files.os, "replace", noted_replace)
    checkpoints.save(folder, *trained(), {})
    assert calls == [
        *("content", "content", "content"),  # all of the new one is on the disk
        "folder",  # before the old config is gone for good, and that before anything else changes
        *("model.safetensors", "folder"),
        *("metrics.json", "folder"),
        *("config.json", "folder"),
    ]


@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_full_disk_leaves_the_old_checkpoint_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    checkpoints.save(folder, *trained(), {"old": 1})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    written = []

    def full(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) > room:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(CheckpointError, match="no space left on device"):
        checkpoints.save(folder, *trained(), {"new": 2})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert checkpoints.load(folder).metrics == {"old": 1}


def test_room_is_checked_before_a_training(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(CheckpointError, match="taken cannot be written: file exists"):
        checkpoints.check_room(tmp_path / "taken", ModelConfig())
    with pytest.raises(CheckpointError, match="cannot name a checkpoint"):
        checkpoints.check_room(tmp_path / "a b", ModelConfig())
    with pytest.raises(CheckpointError, match="parameters, more than"):
        checkpoints.check_room(tmp_path / "large", ModelConfig(layers=64, width=4096, heads=64))
    checkpoints.check_room(tmp_path / "good", ModelConfig())
    assert list((tmp_path / "good").iterdir()) == []


# Versions of the schema.


def test_fields_of_schema_version_2() -> None:
    """If this fails, raise SCHEMA_VERSION and write the step from the old version into MIGRATIONS."""
    assert schema.SCHEMA_VERSION == 2
    assert set(schema.MODEL_HINTS) == {
        *("variant", "layers", "heads", "width", "context"),
        *("scoring", "initial", "learnable", "positions", "readout", "init"),
    }
    assert set(schema.TASK_FIELDS) == {"name", "prompt_format", "length"}
    assert set(schema.RUN_FIELDS) == {
        *("seed", "steps", "batch", "learning_rate", "warmup", "weight_decay", "clip"),
        *("schedule", "first_length", "length_step", "length_every", "input_std", "precision"),
    }


def test_version_1_had_one_schedule_and_no_curriculum(folder: Path) -> None:
    model, config = trained()
    checkpoints.save(folder, model, config, {})
    path = folder / "config.json"
    document = json.loads(path.read_text())
    document["schema_version"] = 1
    for name in ("schedule", "first_length", "length_step", "length_every", "input_std", "precision"):
        del document["train"][name]
    path.write_text(json.dumps(document))
    assert checkpoints.load(folder).config.train == config
    document["train"]["schedule"] = "linear"
    path.write_text(json.dumps(document))
    with pytest.raises(CheckpointError, match=r"train.schedule is not a known field"):
        checkpoints.load(folder)


def test_versions_go_through_their_migrations_one_by_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = trained()
    checkpoints.save(folder, model, config, {})
    path = folder / "config.json"
    document = json.loads(path.read_text())
    document["schema_version"] = 0
    document["train"]["lr"] = document["train"].pop("learning_rate")
    for name in ("schedule", "first_length", "length_step", "length_every", "input_std", "precision"):
        del document["train"][name]
    path.write_text(json.dumps(document))
    with pytest.raises(CheckpointError, match=r"schema_version 0 is not one that is read \(1, 2\)"):
        checkpoints.load(folder)

    def rename(old: dict[str, object]) -> dict[str, object]:
        train = dict(old["train"])  # type: ignore[call-overload]
        train["learning_rate"] = train.pop("lr")
        return {**old, "train": train}

    monkeypatch.setitem(schema.MIGRATIONS, 0, rename)
    assert checkpoints.load(folder).config.train == config


# Finding checkpoints.


def test_discover_lists_the_good_and_the_broken_by_name(tmp_path: Path) -> None:
    root = tmp_path / "models"
    for name in ("c", "a", "b", "d"):
        checkpoints.save(root / name, *trained(), {})
    (root / "b" / "config.json").write_text("{")
    (root / "d" / "model.safetensors").unlink()
    (root / "not-one").mkdir()
    (root / "README.md").write_text("text")

    listings = checkpoints.discover(root)

    assert [listing.name for listing in listings] == ["a", "b", "c", "d"]
    assert [listing.folder for listing in listings] == [root / name for name in "abcd"]
    assert [listing.config is not None for listing in listings] == [True, False, True, False]
    assert [listing.error is None for listing in listings] == [True, False, True, False]
    assert listings[0].config == checkpoints.read_config(root / "a")
    assert "models/b/config.json is damaged" in str(listings[1].error)
    assert "models/d/model.safetensors is missing" in str(listings[3].error)


def test_discover_without_a_root_finds_nothing(tmp_path: Path) -> None:
    assert checkpoints.discover(tmp_path / "nowhere") == []


def test_discover_in_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")
    (listing,) = checkpoints.discover(tmp_path / "models")
    assert listing.config is None
    assert "models cannot be read: not a directory" in str(listing.error)


def test_discover_does_not_follow_links_out_of_the_root(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "elsewhere" / "x", *trained(), {})
    root = tmp_path / "models"
    checkpoints.save(root / "real", *trained(), {})
    (root / "link").symlink_to(tmp_path / "elsewhere" / "x")
    (root / "inside").symlink_to(root / "real")
    (root / "dangling").symlink_to(tmp_path / "nothing")
    (root / "loop").symlink_to(root / "loop")

    inside, link, real = checkpoints.discover(root)

    assert inside.config is not None
    assert real.config is not None
    assert (link.name, link.config) == ("link", None)
    assert link.error is not None
    assert "models/link is a link to a place outside" in link.error


def test_a_name_that_no_page_can_show_is_replaced(tmp_path: Path) -> None:
    broken = tmp_path / "models" / os.fsdecode(b"bad\xff")
    broken.mkdir(parents=True)
    (broken / "config.json").write_text("{")
    (listing,) = checkpoints.discover(tmp_path / "models")
    assert listing.name == "bad\N{REPLACEMENT CHARACTER}"
    assert "bad\N{REPLACEMENT CHARACTER}/config.json is damaged".encode() in str(listing.error).encode()
