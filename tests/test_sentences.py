"""What is seen and expected of a sentence: against formulas and direct calls of the model, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ssa_viz.errors import InvalidInputError, NonFiniteError
from ssa_viz.inspect import sentences as s
from ssa_viz.model.language import LanguageModel
from tests.test_language_evaluation import TOKENIZER, model

TEXT = "The cat sat on the mat, and ran!"
DECODER, ENCODER = model("decoder"), model("encoder")
SENTENCE = s.sentence_tokens(TOKENIZER, TEXT, 40)


def softmax(made: LanguageModel, ids: list[int], place: int) -> torch.Tensor:
    return F.softmax(made(torch.tensor([ids])).predictions[0, place].double(), -1)


def test_a_text_becomes_tokens_and_what_does_not_fit_is_counted() -> None:
    assert SENTENCE.labels[0] == "<start>"
    assert SENTENCE.ids == (0, *TOKENIZER.encode(TEXT))
    assert [SENTENCE.labels[i] for i in SENTENCE.punctuation] == [",", "!"]
    short = s.sentence_tokens(TOKENIZER, TEXT, 5)
    assert (len(short.ids), short.cut) == (5, len(SENTENCE.ids) - 5)
    for empty in ("", "  \n "):
        with pytest.raises(InvalidInputError, match="type a sentence"):
            s.sentence_tokens(TOKENIZER, empty, 40)
    assert SENTENCE.masked(2).ids[2] == 2
    for place in (0, -1, len(SENTENCE.ids)):
        with pytest.raises(InvalidInputError, match="a gap can be at"):
            SENTENCE.masked(place)


@pytest.mark.parametrize("made", [DECODER, ENCODER], ids=["decoder", "encoder"])
def test_a_reading_holds_the_models_own_weights(made: LanguageModel) -> None:
    found = s.read_sentence(made, SENTENCE)
    trace = made(torch.tensor([SENTENCE.ids]), trace=True).trace
    assert trace is not None
    np.testing.assert_array_equal(found.weights, trace.weights()[:, 0].numpy())
    np.testing.assert_allclose(found.contextual_mass, 1 - found.weights.max(-1), atol=1e-6)
    marks = list(SENTENCE.punctuation)
    rested = s.sinks(found)
    np.testing.assert_allclose(rested.first, found.weights[:, :, 1:, 0].mean(-1), rtol=1e-5)
    np.testing.assert_allclose(rested.punctuation, found.weights[:, :, 1:][..., marks].sum(-1).mean(-1), rtol=1e-5)
    assert np.isnan(found.surprisal[0])


def test_surprisal_is_what_was_not_expected() -> None:
    ids = list(SENTENCE.ids)
    found = s.read_sentence(DECODER, SENTENCE).surprisal
    for i in range(1, len(ids)):
        assert found[i] == pytest.approx(-math.log2(softmax(DECODER, ids[:i], -1)[ids[i]]), rel=1e-4)
    hidden = s.pseudo_surprisal(ENCODER, SENTENCE)
    for i in range(1, len(ids)):
        holed = [*ids[:i], 2, *ids[i + 1 :]]
        assert hidden[i] == pytest.approx(-math.log2(softmax(ENCODER, holed, i)[ids[i]]), rel=1e-4)
    with pytest.raises(InvalidInputError):
        s.pseudo_surprisal(DECODER, SENTENCE)
    own_gap = s.pseudo_surprisal(ENCODER, SENTENCE.masked(3))
    holed = [*ids[:3], 2, *ids[4:]]
    expected = -math.log2(softmax(ENCODER, [*holed[:5], 2, *holed[6:]], 5)[holed[5]])
    assert own_gap[5] == pytest.approx(expected, rel=1e-4)


def test_guesses_are_the_likeliest_tokens() -> None:
    expected = softmax(DECODER, list(SENTENCE.ids[:4]), -1)
    found = s.next_tokens(DECODER, TOKENIZER, SENTENCE, 3)
    assert [guess.id for guess in found] == expected.topk(10).indices.tolist()
    assert [guess.probability for guess in found] == pytest.approx(expected.topk(10).values.tolist(), rel=1e-5)
    assert found[0].label == TOKENIZER.label(found[0].id)
    gap = softmax(ENCODER, [*SENTENCE.ids[:3], 2, *SENTENCE.ids[4:]], 3)
    assert [guess.id for guess in s.fills(ENCODER, TOKENIZER, SENTENCE, 3, top=4)] == gap.topk(4).indices.tolist()
    with pytest.raises(InvalidInputError, match="does not write on"):
        s.next_tokens(ENCODER, TOKENIZER, SENTENCE, 3)
    with pytest.raises(InvalidInputError, match="does not fill gaps"):
        s.fills(DECODER, TOKENIZER, SENTENCE, 3)
    with pytest.raises(InvalidInputError, match="the sentence has places"):
        s.next_tokens(DECODER, TOKENIZER, SENTENCE, len(SENTENCE.ids))


def test_a_continuation_follows_its_seed_and_nothing_else() -> None:
    torch.manual_seed(1)
    one = s.continuation(DECODER, SENTENCE, count=12, seed=3, temperature=1.5)
    torch.manual_seed(2)
    assert s.continuation(DECODER, SENTENCE, count=12, seed=3, temperature=1.5) == one
    others = [s.continuation(DECODER, SENTENCE, count=12, seed=seed, temperature=1.5) for seed in range(4, 8)]
    assert any(other != one for other in others)
    greedy, ids = s.continuation(DECODER, SENTENCE, count=6, seed=0, temperature=0), list(SENTENCE.ids)
    for token in greedy:
        probabilities = softmax(DECODER, ids, -1)
        probabilities[[1, 2]] = 0
        assert token == int(probabilities.argmax())
        ids.append(token)
    assert s.continuation(DECODER, SENTENCE, count=6, seed=9, top_p=1e-9) == greedy
    assert len(s.continuation(DECODER, SENTENCE, count=200, seed=0, temperature=5)) <= 40 - len(SENTENCE.ids)
    for bad in ({"count": 0}, {"count": 201}, {"temperature": -1.0}, {"temperature": math.nan}, {"top_p": 0.0}):
        with pytest.raises(InvalidInputError, match="a continuation takes"):
            s.continuation(DECODER, SENTENCE, **{"count": 5, "seed": 0, **bad})  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        s.continuation(ENCODER, SENTENCE, count=5, seed=0)


@pytest.mark.parametrize("way", ["key", "embedding"])
@pytest.mark.parametrize("made", [DECODER, ENCODER], ids=["decoder", "encoder"])
def test_shouting_is_what_the_model_does_with_that_factor(made: LanguageModel, way: str) -> None:
    loud = s.factors(11)
    found = s.shout(made, SENTENCE, 2, loud, way=way)
    at = len(SENTENCE.ids) - 1
    ids = torch.tensor([SENTENCE.ids if made.config.causal else SENTENCE.masked(at).ids])
    usual = F.log_softmax(made(ids).predictions[0, at].double(), -1)
    for i in (0, 7, 10):
        scale = torch.ones(1, at + 1)
        scale[0, 2] = loud[i]
        predictions, trace = made(ids, trace=True, **{f"{way}_scale": scale})
        assert trace is not None
        row = trace.weights()[:, 0, :, at].numpy()
        np.testing.assert_allclose(found.on_token[i], row[..., 2], atol=1e-5)
        np.testing.assert_allclose(found.contextual_mass[i], 1 - row.max(-1), atol=1e-5)
        logged = F.log_softmax(predictions[0, at].double(), -1)
        assert found.expected == int(usual.argmax())
        assert found.probability[i] == pytest.approx(float(logged[found.expected].exp()), rel=1e-3, abs=1e-6)
        divergence = float((usual.exp() * (usual - logged)).sum())
        assert found.divergence[i] == pytest.approx(divergence, rel=1e-3, abs=1e-5)
    assert found.divergence[0] == pytest.approx(0, abs=1e-6)
    assert found.divergence[-1] > 0


def test_what_cannot_shout_is_refused() -> None:
    for token, at in ((-1, None), (99, None), (5, 3)):
        with pytest.raises(InvalidInputError, match="can shout"):
            s.shout(DECODER, SENTENCE, token, [1.0], at=at)
    s.shout(ENCODER, SENTENCE, 5, [1.0], at=3)
    for loud in ([], [0.0], [math.nan], [-1.0]):
        with pytest.raises(InvalidInputError):
            s.shout(DECODER, SENTENCE, 2, loud)
    with pytest.raises(InvalidInputError, match="can shout"):
        s.shout(DECODER, SENTENCE, 2, [1.0], way="value")
    broken = model("decoder", "softmax")
    with pytest.raises(NonFiniteError, match="at a factor of 1e"):
        s.shout(broken, SENTENCE, 2, [1.0, 1e300])


def test_two_sentences_move_the_weight_of_some_heads() -> None:
    first, same = s.read_sentence(DECODER, SENTENCE), s.read_sentence(DECODER, SENTENCE)
    other = s.read_sentence(DECODER, s.sentence_tokens(TOKENIZER, TEXT.replace("!", "."), 40))
    assert not np.any(s.moved(first, same))
    found = s.moved(first, other)
    assert found is not None
    assert (found > 0).all()
    by_hand = np.abs(first.weights - other.weights).sum(-1).mean(-1) / 2
    np.testing.assert_allclose(found, by_hand, rtol=1e-5)
    shorter = s.read_sentence(DECODER, s.sentence_tokens(TOKENIZER, "No.", 40))
    assert s.moved(first, shorter) is None


@pytest.mark.parametrize("way", s.WAYS)
@pytest.mark.parametrize("made", [DECODER, ENCODER], ids=["decoder", "encoder"])
def test_an_expectation_is_the_models_with_and_without_a_loud_token(made: LanguageModel, way: str) -> None:
    ids = list(SENTENCE.ids[:6]) if made.config.causal else [*SENTENCE.ids[:5], 2, *SENTENCE.ids[6:]]
    usual = s.expectation(made, SENTENCE, 5)
    np.testing.assert_allclose(usual, softmax(made, ids, 5), rtol=1e-4)
    assert usual.sum() == pytest.approx(1)
    scale = torch.ones(1, len(ids))
    scale[0, 2] = 50
    changed = s.expectation(made, SENTENCE, 5, s.Loud(2, 50, way))
    direct = F.softmax(made(torch.tensor([ids]), **{f"{way}_scale": scale}).predictions[0, 5].double(), -1)
    np.testing.assert_allclose(changed, direct, rtol=1e-4)
    by_hand = float((direct.new_tensor(usual) * (direct.new_tensor(usual).log() - direct.log())).sum())
    assert s.divergence(usual, changed) == pytest.approx(by_hand, rel=1e-3)
    assert s.divergence(usual, usual) == 0
    sure, other = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    assert s.divergence(sure, other) == pytest.approx(math.log(2))
    assert s.divergence(other, sure) == math.inf


def test_a_decoder_does_not_hear_what_comes_later() -> None:
    np.testing.assert_array_equal(
        s.expectation(DECODER, SENTENCE, 3), s.expectation(DECODER, SENTENCE, 3, s.Loud(4, 1000))
    )


def test_a_reading_and_a_continuation_hear_the_loud_token() -> None:
    loud = s.Loud(2, 100)
    scale = torch.ones(1, len(SENTENCE.ids))
    scale[0, 2] = 100
    trace = DECODER(torch.tensor([SENTENCE.ids]), trace=True, key_scale=scale).trace
    assert trace is not None
    np.testing.assert_array_equal(s.read_sentence(DECODER, SENTENCE, loud).weights, trace.weights()[:, 0].numpy())
    written = s.continuation(DECODER, SENTENCE, count=1, seed=0, temperature=0, loud=loud)
    likeliest = s.expectation(DECODER, SENTENCE, len(SENTENCE.ids) - 1, loud)
    likeliest[[1, 2]] = 0
    assert written == [int(likeliest.argmax())]


@pytest.mark.parametrize(
    "loud",
    [s.Loud(-1, 2), s.Loud(99, 2), s.Loud(1, 0), s.Loud(1, math.inf), s.Loud(1, math.nan), s.Loud(1, 2, "value")],
)
def test_what_is_not_loud_is_refused(loud: s.Loud) -> None:
    with pytest.raises(InvalidInputError, match="can shout"):
        s.read_sentence(DECODER, SENTENCE, loud)


@pytest.mark.parametrize(
    ("after", "word", "expected"),
    [
        (0, "70", "70 The cat sat on the mat, and ran!"),
        (-1, "70", "The cat sat on the mat, and ran! 70"),
        (-2, "70", "The cat sat on the mat, and ran 70!"),
        (SENTENCE.labels.index(","), "70", "The cat sat on the mat, 70 and ran!"),
    ],
)
def test_a_word_goes_in_after_a_token(after: int, word: str, expected: str) -> None:
    assert s.with_word(TEXT, SENTENCE, after % len(SENTENCE.ids), word) == expected


def test_the_word_of_a_token_is_whole() -> None:
    words = {s.word_at(TEXT, SENTENCE, place) for place in range(1, len(SENTENCE.ids))}
    assert words - {""} <= set(TEXT.split())
    assert s.word_at(TEXT, SENTENCE, 1) == "The"
    assert s.word_at(TEXT, SENTENCE, len(SENTENCE.ids) - 1) == "ran!"
    assert s.word_at(TEXT, SENTENCE, 0) == ""
    for place in (-1, len(SENTENCE.ids)):
        with pytest.raises(InvalidInputError):
            s.word_at(TEXT, SENTENCE, place)
        with pytest.raises(InvalidInputError):
            s.with_word(TEXT, SENTENCE, place, "70")
