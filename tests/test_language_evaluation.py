"""Perplexity and minimal pairs: against loops, a uniform model, and with pairs that no word alone gives away."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError
from ssa_viz.evaluate.language import Trigram, accuracies, scores, surprise
from ssa_viz.model.language import LanguageConfig, LanguageModel, build_language
from ssa_viz.text import train_tokenizer
from ssa_viz.text.pairs import EACH, PHENOMENA, Pair, as_written, own_pairs, read_pairs

TEXTS = ["The cat sat on the mat.", "A dog saw the cat near the old house, and it ran away.", "No!"]
TOKENIZER = train_tokenizer(TEXTS, 290)


def model(kind: str, scoring: str = "ssa") -> LanguageModel:
    config = LanguageConfig(
        kind=kind, layers=1, heads=2, groups=2, width=16, hidden=16, context=40, vocabulary=TOKENIZER.vocabulary,
        scoring=scoring,
    )  # fmt: skip
    made = build_language(config, 0)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return made.eval().requires_grad_(False)


def log_probability(made: LanguageModel, before: list[int], token: int) -> float:
    return float(F.log_softmax(made(torch.tensor([before])).predictions[0, -1].double(), -1)[token])


def test_a_decoders_surprise_is_the_sum_over_a_loop() -> None:
    made = model("decoder")
    found = surprise(made, TOKENIZER, TEXTS, length=12)
    nats, count = 0.0, 0
    for text in TEXTS:
        ids = TOKENIZER.encode(text)
        for i, token in enumerate(ids):
            # Windows of eleven tokens start at 0, 6, 12 …; a token counts in the first one that it is in.
            start = 0 if i < 11 else 6 * ((i - 11) // 6 + 1)
            nats -= log_probability(made, [0, *ids[start:i]], token)
            count += 1
    assert (found.tokens, found.words, found.bytes) == (count, 27, sum(map(len, TEXTS)))
    assert found.per_token == pytest.approx(math.exp(nats / count), rel=1e-5)
    assert found.per_word == pytest.approx(math.exp(nats / 27), rel=1e-5)
    assert found.bits_per_byte == pytest.approx(nats / math.log(2) / found.bytes, rel=1e-5)
    assert found.exact


def test_a_trigram_is_witten_and_bells() -> None:
    trigram = Trigram(["a b a b\na c!", ""], vocabulary=10)
    # Lines: a b a b END, a c ! END: nine words of five kinds; "a" three times, before it twice nothing.
    alone = {word: (count + 5 / 10) / (9 + 5) for word, count in {"a": 3, "b": 2, "c": 1, "zebra": 0}.items()}
    after_a = {"b": (2 + 2 * alone["b"]) / 5, "c": (1 + 2 * alone["c"]) / 5, "zebra": 2 * alone["zebra"] / 5}
    assert trigram.probability("b", ("<never>", "a")) == pytest.approx(after_a["b"])
    assert trigram.probability("zebra", ("<never>", "a")) == pytest.approx(after_a["zebra"])
    assert trigram.probability("b", ("b", "a")) == pytest.approx((1 + 1 * after_a["b"]) / 2)
    assert trigram.probability("c", ("<before>", "a")) == pytest.approx((1 + 2 * after_a["c"]) / 4)
    steps = [("a", ("<before>", "<before>")), ("c", ("<before>", "a")), ("\n", ("a", "c"))]
    nats = -sum(math.log(trigram.probability(word, history)) for word, history in steps)
    assert trigram.per_word(["A c"]) == pytest.approx(math.exp(nats / 3))
    for empty in ([], ["", "  "]):
        with pytest.raises(InvalidInputError):
            Trigram(empty)
        with pytest.raises(InvalidInputError):
            trigram.per_word(empty)


def test_an_encoders_surprise_makes_every_token_a_gap_once() -> None:
    made = model("encoder")
    found = surprise(made, TOKENIZER, TEXTS[:1], length=40)
    ids = [0, *TOKENIZER.encode(TEXTS[0])]
    nats = 0.0
    for offset in range(7):
        gaps = [i for i in range(1, len(ids)) if (i - 1) % 7 == offset]
        holed = torch.tensor([[2 if i in gaps else id_ for i, id_ in enumerate(ids)]])
        logged = F.log_softmax(made(holed).predictions[0].double(), -1)
        nats -= sum(float(logged[i, ids[i]]) for i in gaps)
    assert found.nats == pytest.approx(nats, rel=1e-5)
    assert not found.exact


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_who_knows_nothing_has_the_vocabulary_as_perplexity(kind: str) -> None:
    made = model(kind)
    with torch.no_grad():
        made.embedding.weight.zero_()
        if made.read_out_bias is not None:
            made.read_out_bias.zero_()
    assert surprise(made, TOKENIZER, TEXTS, length=12).per_token == pytest.approx(TOKENIZER.vocabulary, rel=1e-4)
    [accuracy] = accuracies(made, TOKENIZER, {"x": [Pair("No cat.", "No mat.")]}).values()
    assert (accuracy.share, accuracy.error) == (0.5, 0.5)
    with pytest.raises(InvalidInputError, match="no text"):
        surprise(made, TOKENIZER, [""], length=12)
    with pytest.raises(InvalidInputError, match="a window has"):
        surprise(made, TOKENIZER, TEXTS, length=41)


def test_a_sentences_score_does_not_depend_on_its_company() -> None:
    made = model("decoder")
    together = scores(made, TOKENIZER, TEXTS)
    for text, score in zip(TEXTS, together, strict=True):
        ids = TOKENIZER.encode(text)
        assert score == pytest.approx(sum(log_probability(made, [0, *ids[:i]], t) for i, t in enumerate(ids)), rel=1e-5)
    other = model("encoder")
    for text, score in zip(TEXTS, scores(other, TOKENIZER, TEXTS), strict=True):
        ids = [0, *TOKENIZER.encode(text)]
        logged = F.log_softmax(other(torch.tensor([ids])).predictions[0].double(), -1)
        assert score == pytest.approx(sum(float(logged[i, ids[i]]) for i in range(1, len(ids))), rel=1e-4)


def test_accuracy_counts_the_grammatical_sentences_that_win() -> None:
    made = model("decoder")
    order = sorted(TEXTS, key=lambda text: scores(made, TOKENIZER, [text])[0])
    suite = {"right": [Pair(order[2], order[0])], "mixed": [Pair(order[0], order[1]), Pair(order[2], order[1])]}
    found = accuracies(made, TOKENIZER, suite)
    assert (found["right"].share, found["mixed"].share, found["mixed"].count) == (1, 0.5, 2)


@pytest.mark.parametrize("phenomenon", list(PHENOMENA))
def test_own_pairs_differ_where_they_should_and_words_alone_do_not_tell(phenomenon: str) -> None:
    pairs = own_pairs(phenomenon)
    assert len({pair.good for pair in pairs}) == len(pairs) == EACH
    assert pairs == own_pairs(phenomenon)
    assert pairs != own_pairs(phenomenon, seed=1)
    assert all(pair.good != pair.bad and pair.good[0].isupper() and pair.good[-1] in ".?" for pair in pairs)
    if phenomenon.startswith(("agreement", "binding-principle", "binding-reflexive")):
        good = Counter(word for pair in pairs for word in pair.good.split())
        bad = Counter(word for pair in pairs for word in pair.bad.split())
        for word in set(good) | set(bad):
            if max(good[word], bad[word]) > 30:
                assert 0.6 < (good[word] + 1) / (bad[word] + 1) < 1 / 0.6, word
    assert as_written(pairs[0].good) == pairs[0].good


def test_suites_in_zorros_and_blimps_layouts(tmp_path: Path) -> None:
    (tmp_path / "simple.txt").write_text("the lies is flat .\nthe lie is flat .\ni seen it ?\ni saw it ?\n")
    item = {"sentence_good": "Who left?", "sentence_bad": "Who leave?", "UID": "verbs"}
    (tmp_path / "blimp.jsonl").write_text(json.dumps(item) + "\n")
    found = read_pairs(tmp_path)
    assert found["simple"] == [Pair("The lie is flat.", "The lies is flat."), Pair("I saw it?", "I seen it?")]
    assert found["verbs"] == [Pair("Who left?", "Who leave?")]
    for content in ("one line\n", ""):
        (tmp_path / "odd").mkdir(exist_ok=True)
        (tmp_path / "odd" / "odd.txt").write_text(content)
        if content:
            with pytest.raises(InvalidInputError, match="odd number of lines"):
                read_pairs(tmp_path / "odd")
    (tmp_path / "blimp.jsonl").write_text("[]\n")
    with pytest.raises(InvalidInputError, match="neither Zorro's nor BLiMP's"):
        read_pairs(tmp_path)
    with pytest.raises(InvalidInputError, match="no file or folder"):
        read_pairs(tmp_path / "nothing")
    with pytest.raises(InvalidInputError, match="there are: agreement"):
        own_pairs("grammar")
    with pytest.raises(InvalidInputError, match="different pairs, not 100000"):
        own_pairs("binding-reflexive_gender", count=100_000)
