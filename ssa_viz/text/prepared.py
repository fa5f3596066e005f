"""A corpus made ready: its tokenizer and its tokens in a folder, with a hash that runs refer to.

<folder>/tokenizer.json    the tokenizer, trained on the training text
<folder>/training.npy, validation.npy     token ids in a row, uint16
<folder>/corpus.json       what it was made from, and its hash; written last
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssa_viz.errors import InvalidInputError
from ssa_viz.text.batches import packed
from ssa_viz.text.corpus import documents, split
from ssa_viz.text.tokenizer import Tokenizer, train_tokenizer

CORPUS_FILE = "corpus.json"
TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True)
class Corpus:
    """Text as tokens.

    Attributes:
        id: a hash of the tokenizer and of all tokens.
        tokenizer: that made them.
        training, validation: token ids in a row.
        about: what it was made from.
    """

    id: str
    tokenizer: Tokenizer
    training: NDArray[np.uint16]
    validation: NDArray[np.uint16]
    about: dict[str, Any]


def prepare(
    folder: Path,
    texts: Sequence[str],
    *,
    vocabulary: int,
    validation: Sequence[str] = (),
    apart_from: Sequence[str] = (),
    share: float = 0.02,
    seed: int = 0,
    most: int | None = None,
) -> Corpus:
    """Read texts, leave out repeats and whatever is tested on, train a tokenizer and write everything to `folder`.

    Args:
        texts: files, folders or datasets to train on (`documents`).
        validation: the same to validate on; without any, the given share of the documents.
        apart_from: texts whose sentences must not be trained on.
        most: documents of each text at most.

    Raises:
        InvalidInputError: a text cannot be read or holds too little, or the folder cannot be written.
    """
    given = [document for text in texts for document in documents(text, most=most)]
    held = [document for text in validation for document in documents(text, most=most)]
    tested = [document for text in apart_from for document in documents(text)]
    found = split(given, validation=0.0 if held else share, seed=seed, apart_from=[*held, *tested])
    held = held or list(found.validation)
    tokenizer = train_tokenizer(found.training, vocabulary)
    training, checked = packed(tokenizer, found.training), packed(tokenizer, tuple(held))
    about = {
        "texts": [Path(text).name for text in texts],
        "validation": [Path(text).name for text in validation] or f"{share:g} of the documents",
        "apart_from": [Path(text).name for text in apart_from],
        "seed": seed,
        "vocabulary": tokenizer.vocabulary,
        "documents": len(found.training),
        "characters": sum(map(len, found.training)),
        "training_tokens": len(training),
        "validation_tokens": len(checked),
        "validation_bytes": _bytes(held),
    }
    id_ = _identity(tokenizer, training, checked)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CORPUS_FILE).unlink(missing_ok=True)
        (folder / TOKENIZER_FILE).write_text(tokenizer.document, encoding="utf-8")
        np.save(folder / "training.npy", training)
        np.save(folder / "validation.npy", checked)
        (folder / CORPUS_FILE).write_text(json.dumps({"id": id_, **about}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{folder.name} cannot be written: {(error.strerror or str(error)).lower()}") from error
    return Corpus(id_, tokenizer, training, checked, about)


def read_prepared(folder: Path) -> Corpus:
    """What `prepare` wrote to `folder`.

    Raises:
        InvalidInputError: it is not there, or not whole.
    """
    try:
        about = json.loads((folder / CORPUS_FILE).read_text(encoding="utf-8"))
        tokenizer = Tokenizer((folder / TOKENIZER_FILE).read_text(encoding="utf-8"))
        training = np.load(folder / "training.npy")
        validation = np.load(folder / "validation.npy")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{folder.name} holds no prepared corpus ({error}); prepare it first") from error
    arrays = (training, validation)
    if any(array.dtype != np.uint16 or array.ndim != 1 for array in arrays) or not isinstance(about, dict):
        raise InvalidInputError(f"{folder.name} holds no prepared corpus; prepare it again")
    id_ = about.pop("id", None)
    if id_ != _identity(tokenizer, training, validation):
        raise InvalidInputError(f"the corpus in {folder.name} was changed after it was prepared; prepare it again")
    return Corpus(id_, tokenizer, training, validation, about)


def _identity(tokenizer: Tokenizer, training: NDArray[np.uint16], validation: NDArray[np.uint16]) -> str:
    digest = hashlib.sha256(tokenizer.document.encode())
    for array in (training, validation):
        digest.update(array.tobytes())
        digest.update(b"|")
    return digest.hexdigest()


def _bytes(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)
