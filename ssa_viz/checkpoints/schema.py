"""config.json: from a training config to its JSON document and, every field checked, back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

from ssa_viz.checkpoints.format import (
    FORMAT,
    MAX_WEIGHT_BYTES,
    NAME,
    SCHEMA_VERSION,
    WEIGHTS_FILE,
    CheckpointConfig,
)
from ssa_viz.checkpoints.typed import brief, exactly, fields_of, list_of, plain, typed
from ssa_viz.errors import InvalidInputError
from ssa_viz.model import ModelConfig
from ssa_viz.scoring import SCORING
from ssa_viz.train.config import TrainConfig

Document = dict[str, Any]


TASK_FIELDS = {"name": "task", "prompt_format": "prompt_format", "length": "length"}  # document → TrainConfig
MODEL_HINTS = get_type_hints(ModelConfig)
TRAIN_HINTS = get_type_hints(TrainConfig)
RUN_FIELDS = tuple(name for name in TRAIN_HINTS if name not in ("model", *TASK_FIELDS.values()))

SHA256 = re.compile(r"[0-9a-f]{64}")
VERSION = re.compile(r"[A-Za-z0-9._+-]{1,100}")


def _from_1(document: Document) -> Document:
    """Version 2 lets a run choose its schedule, curriculum, σ and precision; before, all runs had these."""
    added = {
        "schedule": "cosine",
        "first_length": 0,
        "length_step": 2,
        "length_every": 2000,
        "input_std": 1.0,
        "precision": "float32",
    }
    run = typed("train", document.get("train"), dict)
    unknown = [name for name in added if name in run]
    if unknown:
        raise InvalidInputError(f"train.{unknown[0]} is not a known field")
    return {**document, "train": {**run, **added}}


# Schema version → the function that turns a document of that version into one of the next. Whoever adds,
# removes or renames a field of ModelConfig or TrainConfig raises SCHEMA_VERSION and adds the step here.
MIGRATIONS: dict[int, Callable[[Document], Document]] = {1: _from_1}


def to_document(config: CheckpointConfig) -> Document:
    """The document that `from_document` reads as `config`."""
    return {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "name": config.name,
        "scoring": {"name": config.train.model.scoring, "params": dict(config.scoring)},
        **recipe_to_document(config.train),
        "library_version": config.library_version,
        "torch_version": config.torch_version,
        "weights": {"file": WEIGHTS_FILE, "sha256": config.sha256, "bytes": config.weight_bytes},
    }


def recipe_to_document(train: TrainConfig) -> Document:
    """The sections model, task and train, which `recipe_from_document` reads as `train`."""
    return {
        "model": {name: plain(getattr(train.model, name)) for name in MODEL_HINTS},
        "task": {name: getattr(train, field) for name, field in TASK_FIELDS.items()},
        "train": {name: getattr(train, name) for name in RUN_FIELDS},
    }


def recipe_from_document(document: Document) -> TrainConfig:
    """Read the sections model, task and train; every field must be there and of its type.

    Raises:
        InvalidInputError, UnknownNameError: naming what is wrong.
    """
    for section in ("model", "task", "train"):
        typed(section, document.get(section), dict)
    model = ModelConfig(**fields_of("model", document["model"], MODEL_HINTS))
    task_hints = {name: TRAIN_HINTS[field] for name, field in TASK_FIELDS.items()}
    task = fields_of("task", document["task"], task_hints)
    run = fields_of("train", document["train"], {name: TRAIN_HINTS[name] for name in RUN_FIELDS})
    return TrainConfig(model=model, **{TASK_FIELDS[name]: value for name, value in task.items()}, **run)


def from_document(document: Document, folder: Path) -> CheckpointConfig:
    """Read a document of any version that is still readable.

    Raises:
        InvalidInputError, UnknownNameError: naming the field that is missing, unknown, of the wrong type, or
            refused by `ModelConfig` or `TrainConfig`.
    """
    document = _migrated(document)
    sections = ("model", "scoring", "task", "train", "weights")
    texts = ("format", "name", "library_version", "torch_version")
    exactly("", document, ("schema_version", *texts, *sections))
    for section in sections:
        typed(section, document[section], dict)
    for text in texts:
        typed(text, document[text], str)
    for version in ("library_version", "torch_version"):
        if not VERSION.fullmatch(document[version]):
            raise InvalidInputError(f"{version} must be a version number, not {brief(document[version])}")
    if not NAME.fullmatch(document["name"]):
        raise InvalidInputError(f"name may have letters, digits, '.', '_' and '-', not {brief(document['name'])}")
    train = recipe_from_document(document)
    weights = fields_of("weights", document["weights"], {"file": str, "sha256": str, "bytes": int})
    if weights["file"] != WEIGHTS_FILE:
        raise InvalidInputError(f"weights.file must be {WEIGHTS_FILE!r}, not {brief(weights['file'])}")
    if not SHA256.fullmatch(weights["sha256"]):
        raise InvalidInputError("weights.sha256 must be 64 lower-case hexadecimal digits")
    if not 1 <= weights["bytes"] <= MAX_WEIGHT_BYTES:
        raise InvalidInputError(f"weights.bytes must be from 1 to {MAX_WEIGHT_BYTES:,}, not {weights['bytes']:,}")
    return CheckpointConfig(
        name=document["name"],
        train=train,
        scoring=_scoring(document["scoring"], train.model),
        sha256=weights["sha256"],
        weight_bytes=weights["bytes"],
        library_version=document["library_version"],
        torch_version=document["torch_version"],
        folder=folder,
    )


def _migrated(document: Document) -> Document:
    """The document brought to the current version, one step at a time."""
    if document.get("format") != FORMAT:
        raise InvalidInputError(f"format must be {FORMAT!r}, not {brief(document.get('format'))}")
    version = typed("schema_version", document.get("schema_version"), int)
    readable = sorted([*MIGRATIONS, SCHEMA_VERSION])
    if version not in readable:
        listed = ", ".join(str(each) for each in readable)
        advice = "; a newer version of this library may be needed" if version > SCHEMA_VERSION else ""
        raise InvalidInputError(f"schema_version {version} is not one that is read ({listed}){advice}")
    while version < SCHEMA_VERSION:
        document = MIGRATIONS[version](document)
        version += 1
    return document


def _scoring(section: Document, model: ModelConfig) -> dict[str, list[list[float]]]:
    """The scoring function's values, name → [layer][head], each one that the model could hold."""
    exactly("scoring", section, ("name", "params"))
    if section["name"] != model.scoring:
        raise InvalidInputError(f"scoring.name is {brief(section['name'])} but model.scoring is {model.scoring!r}")
    spec = SCORING[model.scoring].parameters_spec
    exactly("scoring.params", typed("scoring.params", section["params"], dict), [p.name for p in spec])
    values: dict[str, list[list[float]]] = {}
    for parameter in spec:
        where = f"scoring.params.{parameter.name}"
        rows = list_of(where, section["params"][parameter.name], model.layers)
        heads = [[typed(where, v, float) for v in list_of(where, row, model.heads)] for row in rows]
        fixed = not parameter.learns(model.learnable)
        start = model.initial.get(parameter.name, parameter.default)
        for value in (value for row in heads for value in row):
            # At the bound itself is allowed: a learned value can come so close that float32 rounds it there.
            inside = parameter.lower <= value <= parameter.upper
            if not inside or (fixed and not math.isclose(value, start, rel_tol=1e-6)):
                bounds = f"from {parameter.lower:g} to {parameter.upper:g}"
                asked = f"{start:g}, as it is fixed" if fixed else bounds
                raise InvalidInputError(f"{where} must be {asked}, not {value:g}")
        values[parameter.name] = heads
    return values
