"""Numbers → text → numbers, and any text at all. The oracle is Python's float() on separate words."""

import math
from urllib.parse import parse_qs, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssa_viz.errors import NonFiniteError
from ssa_viz.items import split
from ssa_viz.sequence import LABEL_WIDTH, LARGEST, MAX_CHARS, SMALLEST, format_number, format_numbers, label, parse

quick = settings(deadline=None, derandomize=True, database=None)

# Every size that is read: up to LARGEST, and 0 or at least SMALLEST.
ORDINARY = st.floats(-LARGEST, LARGEST).filter(lambda value: value == 0 or abs(value) >= SMALLEST)
WRITTEN = st.sampled_from(
    [
        format_number,
        repr,
        lambda value: f"{value:+.17g}",
        lambda value: f"{value:.20e}",
        lambda value: f"{value:.17G}".replace("-", "−"),
        lambda value: f"'{value!r}'",
        lambda value: f"np.float64({value!r})",
    ]
)
SEPARATOR = st.sampled_from([" ", ", ", "; ", ";", "\n", "\r\n", "\t", " | ", "\u00a0;", ",\n", " , "])
BRACKETS = st.sampled_from(
    [("[", "]"), ("(", ",)"), ("{", "}"), ("[[", "]]"), ("np.array([", "], dtype=float32)"), ("x = [", "];")]
)


@quick
@given(st.lists(st.tuples(ORDINARY, WRITTEN, SEPARATOR)), BRACKETS, st.booleans())
def test_numbers_written_any_way_are_read_back(entries, brackets, bracketed):
    text = "".join(write(value) + separator for value, write, separator in entries)
    if bracketed:
        text = text.join(brackets)
    elif "," not in "".join(separator for *_, separator in entries):
        assert parse(text).note is None
    parsed = parse(text)
    assert parsed.numbers == tuple(value for value, *_ in entries)
    assert (parsed.problems, parsed.decimal_comma) == ((), False)


@quick
@given(st.lists(ORDINARY))
def test_tight_commas_alone_part_numbers(values):
    parsed = parse(",".join(map(format_number, values)))
    assert (parsed.numbers, parsed.problems) == (tuple(values), ())


@quick
@given(st.lists(st.floats(-LARGEST, LARGEST), min_size=2), st.sampled_from([";", "; ", "\t", " | "]))
def test_decimal_commas_between_strong_separators(values, separator):
    text = separator.join(f"{value:.9f}".replace(".", ",") for value in values)
    parsed = parse(text)
    assert parsed.numbers == tuple(float(f"{value:.9f}") for value in values)
    assert (parsed.problems, parsed.decimal_comma, parsed.note) == ((), True, None)


WORD = st.one_of(
    st.text("0123456789.+-eE", min_size=1),
    st.tuples(st.integers(-(10**7), 10**7), st.integers(-400, 400)).map("{0[0]}e{0[1]}".format),
    st.tuples(st.sampled_from(["", "+", "-"]), st.integers(0, 10**7)).map("{0[0]}.{0[1]}".format),
)


@quick
@given(st.lists(WORD))
def test_separate_words_are_read_as_python_reads_them(words):
    numbers, refused = [], []
    for item, word in enumerate(words, 1):
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        vanished = abs(value) < SMALLEST and any(digit in word.lower().split("e")[0] for digit in "123456789")
        if abs(value) <= LARGEST and not vanished:
            numbers.append(value)
        else:
            refused.append(item)
    parsed = parse(";".join(words))
    assert parsed.numbers == tuple(numbers)
    assert [problem.item for problem in parsed.problems] == refused


SIGNS = "0123456789eE.,;+- \t\n\r[](){}|\"'−–％５%€½_/\u00a0\u200b\ufeff"


@quick
@given(st.one_of(st.text(), st.text(SIGNS), st.text(st.characters(codec=None))), st.none() | st.integers(0, 5))
def test_any_text_is_read_without_an_error_and_in_full(text, limit):
    parsed = parse(text, limit=limit)
    items = split(text, MAX_CHARS).items
    assert len(parsed.numbers) + parsed.left_out + len(parsed.problems) == len(items)
    assert all(math.isfinite(number) and abs(number) <= LARGEST for number in parsed.numbers)
    places = [problem.item for problem in parsed.problems]
    assert places == sorted(set(places))
    assert all(1 <= place <= len(items) for place in places)
    for problem in parsed.problems:
        problem.sentence.encode()  # a lone surrogate would raise


@quick
@given(st.text(SIGNS))
def test_no_digit_lies_outside_the_items(text):
    left = list(text)
    end = 0
    for item in split(text, MAX_CHARS).items:
        assert end <= item.start < item.stop <= len(text)
        end = item.stop
        left[item.start : item.stop] = " " * (item.stop - item.start)
    assert not any(sign.isnumeric() or sign in "eE.+-−–_/%€％" for sign in left)


@quick
@given(st.lists(ORDINARY))
def test_formatted_numbers_are_read_back_exactly_and_pass_a_url(values):
    text = format_numbers(values)
    assert set(text) <= set("0123456789.e- ")
    assert parse(text).numbers == tuple(values)
    assert parse(text).note is None
    query = parse_qs(f"numbers={text.replace(' ', '+')}&escaped={quote_plus(text)}")
    assert query.get("numbers", [""]) == query.get("escaped", [""]) == [text]


@quick
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_has_its_fewest_digits(value):
    text = format_number(value)
    assert float(text) == value
    digits = next(count for count in range(1, 18) if float(f"{value:.{count}g}") == value)
    assert len(text.split("e")[0].replace(".", "").lstrip("-0").rstrip("0")) <= digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (70.0, "70"),
        (-0.0, "0"),
        (1e6, "1000000"),
        (0.1, "0.1"),
        (-1e-7, "-1e-7"),
        (1e22, "1e22"),
        (2.5e-10, "2.5e-10"),
    ],
)
def test_format_number(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_finite_numbers_are_formatted(value):
    with pytest.raises(NonFiniteError, match="only a finite number"):
        format_number(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-0.0, "0"), (70, "70"), (-70, "−70"), (123456, "123456"), (-123456, "−123456"),
        (1e6, "1e6"), (-1e6, "−1e6"), (1234567, "1.23e6"), (1234.5, "1234"), (999999.7, "1e6"),
        (99.96, "100"), (1.2345, "1.23"), (0.1234, "0.123"), (-0.412345, "−0.412"), (0.00123, "0.0012"),
        (0.000412, "4.1e-4"),
        (1e-5, "1e-5"), (5e-324, "5e-324"), (1.7e308, "2e308"),
        (math.nan, "NaN"), (math.inf, "∞"), (-math.inf, "−∞"),
    ],
)  # fmt: skip
def test_label(value, text):
    assert label(value) == text


@quick
@given(st.floats())
def test_a_label_is_short_and_close(value):
    text = label(value)
    assert 0 < len(text.removeprefix("−")) <= LABEL_WIDTH
    if 1e-3 <= abs(value) <= LARGEST:
        (shown,) = parse(text).numbers
        assert shown == pytest.approx(value, rel=0.05)
