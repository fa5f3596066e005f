"""Tokenizer, corpora and batches: nothing is lost, nothing leaks from the tests, and steps follow from the seed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssa_viz.errors import InvalidInputError
from ssa_viz.text import Tokenizer, documents, split, train_tokenizer
from ssa_viz.text.batches import MASK_ID, Blocks, Masking, gaps, packed
from ssa_viz.text.corpus import normalised
from ssa_viz.text.prepared import prepare, read_prepared
from ssa_viz.text.tokenizer import LEAST_VOCABULARY, MOST_CHARACTERS, readable

STORY = "The cat sat on the mat. The dog sat on the log, and the cat saw the dog.\n"
TOKENIZER = train_tokenizer([STORY * 3], 300)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_every_text_comes_back_from_its_tokens(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    pieces = TOKENIZER.pieces(text)
    assert [piece.id for piece in pieces] == ids
    assert all(piece.label and piece.label.isprintable() for piece in pieces if " " not in piece.label)
    assert all(0 <= piece.start <= piece.end <= len(text) for piece in pieces)
    assert all(id_ > MASK_ID for id_ in ids)


def test_pieces_can_be_read() -> None:
    assert [piece.label for piece in TOKENIZER.pieces("the cat")] == ["the", "·cat"]
    assert [piece.label for piece in TOKENIZER.pieces("é")] == ["C3", "A9"]
    assert readable(" \n\t\x00\u200d") == "·⏎⇥U+0000U+200D"
    assert readable("\u0301a") == "◌\u0301a"
    assert readable("שלום") == "\u2068שלום\u2069"
    assert TOKENIZER.label(0) == "<start>"
    assert TOKENIZER.decode([0, *TOKENIZER.encode("cat")]) == "cat"
    assert 0 not in TOKENIZER.encode("<start> <mask>")
    assert TOKENIZER.decode(TOKENIZER.encode("<start> <mask>")) == "<start> <mask>"


def test_what_is_no_text_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidInputError, match="character 3 is half of a surrogate pair"):
        TOKENIZER.encode("ab\ud800")
    with pytest.raises(InvalidInputError, match="100,001 characters"):
        TOKENIZER.pieces("a" * (MOST_CHARACTERS + 1))
    for id_ in (-1, TOKENIZER.vocabulary):
        with pytest.raises(InvalidInputError, match="outside the vocabulary"):
            TOKENIZER.decode([id_])
        with pytest.raises(InvalidInputError, match="outside the vocabulary"):
            TOKENIZER.label(id_)
    for document in ("", "{}", '{"version": "1.0"}'):
        with pytest.raises(InvalidInputError, match="not a tokenizer"):
            Tokenizer(document)
    other = json.loads(TOKENIZER.document)
    other["added_tokens"] = []
    other["model"]["vocab"]["<other>"] = other["model"]["vocab"].pop("<mask>")
    with pytest.raises(InvalidInputError, match="no <mask> as its token 2"):
        Tokenizer(json.dumps(other))
    with pytest.raises(InvalidInputError, match="at least"):
        train_tokenizer([STORY], LEAST_VOCABULARY - 1)


def test_documents_of_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One  “two”.\nThree\u2014four !\n\n\nFive.\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("\n".join(f"line {i}" for i in range(100)), encoding="utf-8")
    found = list(documents(tmp_path))
    assert found[:2] == ['One "two".\nThree -- four!', "Five."]
    assert [len(text.splitlines()) for text in found[2:]] == [40, 40, 20]
    assert list(documents(tmp_path, most=1)) == found[:1]
    assert normalised("e\u0301 .") == "é."
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match=r"bad\.txt is not UTF-8 text"):
        list(documents(tmp_path / "bad.txt"))
    with pytest.raises(InvalidInputError, match="no file or folder"):
        list(documents(tmp_path / "nothing"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=r"no \.txt file"):
        list(documents(tmp_path / "empty"))


def test_no_test_text_is_trained_on_and_nothing_twice() -> None:
    long = "This sentence is far longer than forty characters, number"
    texts = [f"{long} {i}.\nShort.\nAlso in the test: {long.upper()} {i}!" for i in range(20)]
    found = split([*texts, texts[0]], validation=0.25, seed=3, apart_from=[f"also in the test {long} 7"])
    assert len(found.validation) == 5
    assert not set(found.training) & set(found.validation)
    lines = [line for text in found.training for line in text.splitlines() if len(line) > 40]
    assert len(lines) == len(set(lines))
    assert not any(line.endswith(" 7!") for line in lines)
    again = split(texts, validation=0.25, seed=3, apart_from=[f"also in the test {long} 7"])
    assert again == found
    assert split(texts, validation=0.25, seed=4) != split(texts, validation=0.25, seed=3)
    with pytest.raises(InvalidInputError, match="nothing is left"):
        split([long], validation=0.0, seed=0, apart_from=[long])
    with pytest.raises(InvalidInputError, match="from 0 to below 1"):
        split(texts, validation=1.0, seed=0)


def test_an_epoch_shows_every_block_once_and_the_next_in_another_order() -> None:
    stream = np.arange(1000, dtype=np.uint16)
    blocks = Blocks(stream, 10, 4, seed=5)
    steps = blocks.steps_per_epoch
    starts = [int(block[0]) for step in range(steps) for block in blocks.at(step)]
    assert len(set(starts)) == len(starts) == 4 * steps
    assert len({start % 10 for start in starts}) == 1
    for block in blocks.at(3):
        assert block.tolist() == list(range(int(block[0]), int(block[0]) + 11))
    next_one = [int(block[0]) for step in range(steps, 2 * steps) for block in blocks.at(step)]
    assert next_one != starts
    torch.testing.assert_close(Blocks(stream, 10, 4, seed=5).at(steps + 1), blocks.at(steps + 1))
    assert not torch.equal(Blocks(stream, 10, 4, seed=6).at(0), blocks.at(0))
    with pytest.raises(InvalidInputError, match="too few"):
        Blocks(stream[:30], 10, 4, seed=0)


def test_gaps_are_as_many_and_of_the_kinds_that_were_asked_for() -> None:
    tokens = torch.full((64, 128), 50)
    tokens[:, 0] = 0
    given_, reads = gaps(tokens, Masking(0.2, 0.7, 0.2), 300, seed=1, step=2)
    assert not reads[:, 0].any()
    assert (given_[~reads] == tokens[~reads]).all()
    assert reads[:, 1:].double().mean() == pytest.approx(0.2, abs=0.02)
    kinds = given_[reads]
    assert (kinds == MASK_ID).double().mean() == pytest.approx(0.7, abs=0.04)
    assert (kinds == 50).double().mean() == pytest.approx(0.1, abs=0.03)
    assert (kinds > MASK_ID).all() or (kinds[kinds != MASK_ID] > MASK_ID).all()
    never_seen, where = gaps(tokens, Masking(), 300, seed=1, step=2)
    assert ((never_seen != tokens) | ~where).double().mean() > 0.999
    torch.testing.assert_close(gaps(tokens, Masking(), 300, 1, 2)[0], never_seen)
    assert not torch.equal(gaps(tokens, Masking(), 300, 1, 3)[1], where)
    _, one = gaps(tokens[:1, :3], Masking(1e-9), 300, seed=0, step=0)
    assert int(one.sum()) == 1
    for bad in ((0.0, 0.9, 0.1), (0.1, 0.9, 0.2), (0.1, -0.1, 0.1)):
        with pytest.raises(InvalidInputError):
            Masking(*bad)


def test_a_prepared_corpus_comes_back_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n\n".join(f"{STORY} {i}" for i in range(30)), encoding="utf-8")
    made = prepare(tmp_path / "corpus", [str(tmp_path / "text.txt")], vocabulary=280, share=0.2)
    again = read_prepared(tmp_path / "corpus")
    assert (again.id, again.about) == (made.id, made.about)
    np.testing.assert_array_equal(again.training, made.training)
    assert made.about["documents"] == 24
    assert int((made.training == 0).sum()) == 24
    np.testing.assert_array_equal(packed(again.tokenizer, ("a", "b"))[[0, 2]], [0, 0])
    np.save(tmp_path / "corpus" / "training.npy", made.training[1:])
    with pytest.raises(InvalidInputError, match="was changed"):
        read_prepared(tmp_path / "corpus")
    (tmp_path / "corpus" / "corpus.json").unlink()
    with pytest.raises(InvalidInputError, match="no prepared corpus"):
        read_prepared(tmp_path / "corpus")
