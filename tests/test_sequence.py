"""Text → numbers: what each text says is written beside it."""

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ssa_viz.errors import InvalidInputError
from ssa_viz.sequence import MAX_CHARS, Problem, parse

ROOT = Path(__file__).parents[1]

CLEAN = [
    # (text, numbers): one reading, nothing to remark
    ("", []),
    (" \n\t\u00a0\u200b\ufeff ,;[]", []),
    ("1 2 3", [1, 2, 3]),
    ("1, 2, 3", [1, 2, 3]),
    ("1,2,3", [1, 2, 3]),
    ("1;2;3", [1, 2, 3]),
    ("1\n2\r\n3\r4\u20285", [1, 2, 3, 4, 5]),
    ("1\t2\t\t3", [1, 2, 3]),
    ("| 1 | -2 |", [1, -2]),
    ("1,,2, ,3,", [1, 2, 3]),
    ("1\u00a02\u20093\u200b4\u20605\ufeff6\u30007", [1, 2, 3, 4, 5, 6, 7]),
    ("\ufeff1.5", [1.5]),
    ("\u200e-5", [-5]),
    ("1e3 1E+3 1.5e-3 .5 5. -.5 +7, 007", [1000, 1000, 0.0015, 0.5, 5, -0.5, 7, 7]),
    ("1e−3", [0.001]),
    ("−5 –4 ‐3 \u20112 ‒1 ﹣6 －7 −.5", [-5, -4, -3, -2, -1, -6, -7, -0.5]),
    ("１２ ３．５ ＋４， ５", [12, 3.5, 4, 5]),
    ("1、2、3", [1, 2, 3]),
    ("1،5", [1, 5]),
    ("[1, -2, 3]", [1, -2, 3]),
    ("(1, 2)", [1, 2]),
    ("{1,2}", [1, 2]),
    ("[1,5]", [1, 5]),
    ("[[1, 2], [3, 4]]", [1, 2, 3, 4]),
    ("[1 -2; 3]", [1, -2, 3]),
    ("[1,-2;3,4.5]'", [1, -2, 3, 4.5]),
    ("[1,2];", [1, 2]),
    ("[1, 2, ...\n 3]", [1, 2, 3]),
    ("[ 1.  -2.   0.5]", [1, -2, 0.5]),
    ("array([1., -2.])", [1, -2]),
    ("np.array([1, 2,\n       3], dtype=np.float32)", [1, 2, 3]),
    ("array([], shape=(0, 3), dtype=float64)", []),
    ("tensor([1., -2.], device='cuda:0', dtype=torch.float64)", [1, -2]),
    ("tensor([[1.]], grad_fn=<AddBackward0>, requires_grad=True)", [1]),
    ("[np.float64(1.5), np.float64(-2.0)]", [1.5, -2]),
    ("c(1, 2.5)", [1, 2.5]),
    ("x = [1, 2]", [1, 2]),
    ("x =\n\n     1    -2\n", [1, -2]),
    ("'1', '2'", [1, 2]),
    ('"1.5","2.5"', [1.5, 2.5]),
    ("“1.5” „2.5“", [1.5, 2.5]),
    ("['1', '-2']", [1, -2]),
    ("1,-2,3", [1, -2, 3]),
    ("1,.5,3", [1, 0.5, 3]),
    ("1.5,2.5\n3.5,4.5", [1.5, 2.5, 3.5, 4.5]),
    ("1,2,3 4,5,6", [1, 2, 3, 4, 5, 6]),
    ("1,2,3;4,5,6", [1, 2, 3, 4, 5, 6]),
    ("1, 2,5", [1, 2, 5]),
    ("1,2, 3", [1, 2, 3]),
    ("100,200,300", [100, 200, 300]),
    ("1,234,567", [1, 234, 567]),
    ("1000000 -1e6", [1e6, -1e6]),
    ("0e999 0.000", [0, 0]),
    ("1e-30", [1e-30]),
]

DECIMAL_COMMA = [
    # (text, numbers): a decimal comma, with no other reading worth a remark
    ("1,5; 2,5", [1.5, 2.5]),
    ("1,5;2,5", [1.5, 2.5]),
    ("1,5;", [1.5]),
    ("-1,5;-2,5", [-1.5, -2.5]),
    ("1,5;2", [1.5, 2]),
    ("1,5e3; −2,5E−1", [1500, -0.25]),
    ("1,5\t2,5", [1.5, 2.5]),
    ("1,5 | 2,5", [1.5, 2.5]),
    ("1,5\n2\n3,25\n", [1.5, 2, 3.25]),
    ("0,4967\n-0,0138\n", [0.4967, -0.0138]),
    ("0,05 1,25", [0.05, 1.25]),
    ("-0,5 1,5", [-0.5, 1.5]),
    ("1,123456789 2,5", [1.123456789, 2.5]),
    ("0,125; 2,345", [0.125, 2.345]),
    ('"1,5"', [1.5]),
    ('"1,5","2,5"', [1.5, 2.5]),
    ('"1,5";"2";"-0,25"', [1.5, 2, -0.25]),
    ("['1,5', '2,5']", [1.5, 2.5]),
]

AMBIGUOUS = [
    # (text, numbers, decimal comma, what the note says to write for the other reading)
    ("1,5", [1, 5], False, "write 1.5 or '1,5;'."),
    ("-1,5", [-1, 5], False, "write -1.5 or '-1,5;'."),
    ("1,5, 2,5", [1, 5, 2, 5], False, "write 1.5."),
    ("1,5; 2,5,", [1, 5, 2, 5], False, "write 1.5."),
    ("1,5; 2.5", [1, 5, 2.5], False, "write 1.5."),
    ("[1,5; 2,5]", [1, 5, 2, 5], False, "write 1.5."),
    ("(1,5; 2,5)", [1, 5, 2, 5], False, "write 1.5."),
    ("1,234", [1, 234], False, "write 1.234 or 1234."),
    ("1,234.5", [1, 234.5], False, "write 1234.5."),
    ("1.234,5", [1.234, 5], False, "write 1234.5."),
    ("1.234,5; 2.345,6", [1.234, 5, 2.345, 6], False, "write 1234.5."),
    ("1,5 2,5", [1.5, 2.5], True, "write 1, 5 for two numbers."),
    ("1,5 2", [1.5, 2], True, "write 1, 5 for two numbers."),
    ("1,5\n2,5\n", [1.5, 2.5], True, "write 1, 5 for two numbers."),
    ("1,234; 2,345", [1.234, 2.345], True, "1, 234 for two numbers, or 1234 if the comma groups thousands."),
    ('"1,234"', [1.234], True, "1, 234 for two numbers, or 1234 if the comma groups thousands."),
    ("1\u00a0234", [1, 234], False, "write 1234."),
    ("1\u202f234", [1, 234], False, "write 1234."),
    ("1 000 2", [1, 0, 2], False, "write 1000."),
]

NOT_FINITE = "is refused: NaN and infinity have no place in a sequence"
TOO_LARGE = "is too large; the limit is 1,000,000"
CURRENCY = "has a currency sign; write it as a plain number"
PERCENT = "has a percent sign; write it as a plain number"
FRACTION = "is a fraction; write it with a decimal point"
SIGN = "has a space after its sign"
UNDERSCORE = "has an underscore; write 1000, not 1_000"
HEXADECIMAL = "is hexadecimal; write it in decimal"
ELLIPSIS = "stands for numbers that are not in the text"
DIGITS = "has digits other than 0 to 9"
NO_NUMBER = "is not a number"
COMMA = (
    "has a comma of unclear meaning; for one number write a decimal point (or no comma if it groups "
    "thousands), for two put a space after it"
)

UNREADABLE = [
    # (text, numbers, problems)
    ("1 2 3 4 5 6 abc 8", [1, 2, 3, 4, 5, 6, 8], [(7, "abc", NO_NUMBER)]),
    ("1, abc, 3", [1, 3], [(2, "abc", NO_NUMBER)]),
    ("1,2,x,4", [1, 2, 4], [(3, "x", NO_NUMBER)]),
    ("Wert; 1,5; 2,5", [1.5, 2.5], [(1, "Wert", NO_NUMBER)]),
    ("a,b; 1,5", [1.5], [(1, "a,b", NO_NUMBER)]),
    ("sqrt(4)", [4], [(1, "sqrt", NO_NUMBER)]),
    ("−x １x", [], [(1, "−x", NO_NUMBER), (2, "１x", NO_NUMBER)]),
    ("- 5", [], [(1, "- 5", SIGN)]),
    ("1 − 5, 6", [1, 6], [(2, "− 5", SIGN)]),
    ("- 1,5; 2,5", [2.5], [(1, "- 1,5", SIGN)]),
    ("nan 1 -inf ∞ NaN Infinity", [1], [(1, "nan", NOT_FINITE), (3, "-inf", NOT_FINITE), (4, "∞", NOT_FINITE),
                                        (5, "NaN", NOT_FINITE), (6, "Infinity", NOT_FINITE)]),
    ("#N/A\n2\n#DIV/0!\nNone", [2], [(1, "#N/A", NOT_FINITE), (3, "#DIV/0!", NOT_FINITE),
                                     (4, "None", NOT_FINITE)]),
    ("[np.nan, float('inf'), -1.#IND]", [], [(1, "np.nan", NOT_FINITE), (2, "inf", NOT_FINITE),
                                             (3, "-1.#IND", NOT_FINITE)]),
    ("1e400 -1000000.1 1e6", [1e6], [(1, "1e400", TOO_LARGE), (2, "-1000000.1", TOO_LARGE)]),
    ("1e-400 -0.01e-399", [], [(1, "1e-400", "is too close to 0 for a model to tell it from 0"),
                               (2, "-0.01e-399", "is too close to 0 for a model to tell it from 0")]),
    ("5% 6‰", [], [(1, "5%", PERCENT), (2, "6‰", PERCENT)]),
    ("1,5%", [], [(1, "1,5%", PERCENT)]),
    ("$5 5€ -£3", [], [(1, "$5", CURRENCY), (2, "5€", CURRENCY), (3, "-£3", CURRENCY)]),
    ("€1,5; €2,5; 3,5", [3.5], [(1, "€1,5", CURRENCY), (2, "€2,5", CURRENCY)]),
    ("1/2 ½ 1½", [], [(1, "1/2", FRACTION), (2, "½", FRACTION), (3, "1½", FRACTION)]),
    ("1_000 0x1F", [], [(1, "1_000", UNDERSCORE), (2, "0x1F", HEXADECIMAL)]),
    ("10² ٣ १", [], [(1, "10²", DIGITS), (2, "٣", DIGITS), (3, "१", DIGITS)]),
    ("[0, 1, ..., 9]", [0, 1, 9], [(3, "...", ELLIPSIS)]),
    ("1 … 9", [1, 9], [(2, "…", ELLIPSIS)]),
    ("1,000", [], [(1, "1,000", COMMA)]),
    ("5, 1,050.5, 7", [5, 7], [(2, "1,050.5", COMMA)]),
    ("1,000,000", [], [(1, "1,000,000", COMMA)]),
    ("[1,05]", [], [(1, "1,05", COMMA)]),
    ("-0,5", [], [(1, "-0,5", COMMA)]),
    ('"9999999,5"; 1', [1], [(1, "9999999,5", TOO_LARGE)]),
    ("x" * 29, [], [(1, "x" * 24 + "…", NO_NUMBER)]),
    ("\ud800x", [], [(1, "?x", NO_NUMBER)]),
]  # fmt: skip


NO_NUMBERS = [
    "--5", "1-2", "5-", "+-5", "±5", "-", "+", "1.2.3", "5..", ".", "e5", "1e", "1e5.5", "1:5", "1+2j",
    "1'234", "2024-01-05", "—5", "12:30", "O", "1d3", "1.0f", "#", "1·5",
]  # fmt: skip


@pytest.mark.parametrize(("text", "numbers"), CLEAN)
def test_numbers_with_one_reading(text, numbers):
    parsed = parse(text)
    assert parsed.numbers == tuple(numbers)
    assert (parsed.problems, parsed.decimal_comma, parsed.note, parsed.left_out) == ((), False, None, 0)


@pytest.mark.parametrize(("text", "numbers"), DECIMAL_COMMA)
def test_decimal_commas_without_doubt(text, numbers):
    parsed = parse(text)
    assert parsed.numbers == tuple(numbers)
    assert (parsed.problems, parsed.decimal_comma, parsed.note) == ((), True, None)


@pytest.mark.parametrize(("text", "numbers", "decimal_comma", "advice"), AMBIGUOUS)
def test_two_readings_come_with_a_note(text, numbers, decimal_comma, advice):
    parsed = parse(text)
    assert parsed.numbers == tuple(numbers)
    assert (parsed.problems, parsed.decimal_comma) == ((), decimal_comma)
    assert parsed.note is not None
    assert parsed.note.endswith(advice)


@pytest.mark.parametrize(
    ("advice", "numbers"),
    [
        ("1.5", [1.5]),
        ("1,5;", [1.5]),
        ("1, 5", [1, 5]),
        ("1, 234", [1, 234]),
        ("1234", [1234]),
        ("1234.5", [1234.5]),
    ],
)
def test_what_a_note_advises_has_one_reading(advice, numbers):
    parsed = parse(advice)
    assert (parsed.numbers, parsed.problems, parsed.note) == (tuple(numbers), (), None)


@pytest.mark.parametrize(("text", "numbers", "problems"), UNREADABLE)
def test_what_is_unreadable_is_pointed_at_and_the_rest_kept(text, numbers, problems):
    parsed = parse(text)
    assert parsed.numbers == tuple(numbers)
    assert [(problem.item, problem.text, problem.reason) for problem in parsed.problems] == problems


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_stays_whole(text):
    assert parse(f"3 [{text}] 5").numbers == (3, 5)
    assert parse(f"3 [{text}] 5").problems == (Problem(2, text, NO_NUMBER),)


def test_two_remarks_make_one_note():
    assert parse("1\u00a0234,5 2,5").note == (
        "Each comma is read as a decimal comma: '2,5' is 2.5; write 2, 5 for two numbers. "
        "'1\u00a0234' is read as two numbers; for one number write 1234."
    )


def test_a_problem_reads_as_a_sentence():
    assert Problem(7, "abc", NO_NUMBER).sentence == "item 7, 'abc', is not a number"


def test_minus_zero_becomes_zero():
    assert [math.copysign(1, number) for number in parse("-0 -0.0 −0e5 -0").numbers] == [1, 1, 1, 1]


def test_every_white_space_character_parts_and_none_joins():
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    assert len(spaces) > 20
    assert {parse(f"1{space}2").numbers for space in spaces} == {(1, 2)}


def test_limit_keeps_the_first_and_counts_the_rest():
    parsed = parse("1 2 x 3 4 5", limit=3)
    assert (parsed.numbers, parsed.left_out) == ((1, 2, 3), 2)
    assert [problem.item for problem in parsed.problems] == [3]
    assert parse("1 2", limit=0).left_out == 2
    assert parse("1 2", limit=2).left_out == 0
    with pytest.raises(InvalidInputError, match="at least 0, not -1"):
        parse("1", limit=-1)


@pytest.mark.parametrize("separator", [" ", ", ", ",", ";", "\n", "\u00a0", "][", "\t"])
def test_a_huge_paste_is_cut_between_two_numbers(separator):
    width = len("12345" + separator)
    count = 5_000_000 // width
    parsed = parse(("12345" + separator) * count)
    kept = len(parsed.numbers)
    assert set(parsed.numbers) == {12345.0}
    assert MAX_CHARS - 2 * width <= kept * width <= MAX_CHARS + len(separator)
    (problem,) = parsed.problems
    assert problem.item == kept + 1
    assert problem.sentence.endswith("and all that follows is left out: only the first 100,000 characters are read")


def test_a_decimal_comma_at_the_cut_is_not_torn():
    text = "x" * (MAX_CHARS - 7) + " 1,5; 2,5; 3,5"  # the limit falls on the comma of 2,5
    assert text[MAX_CHARS] == ","
    parsed = parse(text)
    assert parsed.numbers == (1.5,)
    assert [problem.item for problem in parsed.problems] == [1, 3]
    assert parsed.problems[1].text == "2,5; 3,5"


def test_exactly_the_most_characters_are_read():
    text = "1 " * (MAX_CHARS // 2)
    assert len(parse(text).numbers) == MAX_CHARS // 2
    assert parse(text).problems == ()
    assert parse(text + " \n];").problems == ()
    assert len(parse(text + "2").problems) == 1


@pytest.mark.parametrize(
    "part",
    ["1", "1x", "1.", ".", "...", "... ", "-", "- ", "+ 1", ",", "1,", "1,5 ", "1,000", "0,", '"', '"1',
     "'1,5'", "e1", "[", "](", "dtype=", "dtype=(", "dtype=<", "shape=(", "array(", "x=", " ", "\n ", "\t",
     "_", "#", "€1,", "1 000 ", "1\u00a0", "x\ud800"],
)  # fmt: skip
def test_time_is_linear(part):
    # A quadratic scan of this many characters takes a minute; a linear one a fraction of a second.
    text = part * (MAX_CHARS // 2 // len(part)) + "!"
    start = time.process_time()
    parse(text)
    assert time.process_time() - start < 5


def test_reading_needs_neither_torch_nor_streamlit():
    code = "import sys, ssa_viz.sequence; print(sorted({'torch', 'numpy', 'streamlit'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
