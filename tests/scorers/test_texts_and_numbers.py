from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scorer_cases import a_case, an_answer, any_text, data_rows

from routeproof.scorers.choice import extract_choice
from routeproof.scorers.number import parse_number
from routeproof.scorers.numeric import extract_number, is_same_number
from routeproof.scorers.reasoning import strip_reasoning
from routeproof.scorers.table import SCORERS
from routeproof.scorers.text_match import normalise


def value_of(name, reference, text, **options):
    case = a_case(reference, options=options)
    return SCORERS[name].of(case, an_answer(text)).value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("42", 42),
        ("1,000", 1000),
        ("1,234,567.5", Fraction("1234567.5")),
        ("$29.00", 29),
        ("-$5", -5),
        ("$-5", -5),
        ("−7", -7),
        ("½", Fraction(1, 2)),
        ("1½", Fraction(3, 2)),
        ("3/4", Fraction(3, 4)),
        ("2 1/4", Fraction(9, 4)),
        ("٤٢", 42),
        ("４２", 42),
        ("1\u202f000", 1000),
        ("1e3", 1000),
        ("2^3", 8),
        ("10²", 100),
        ("10^-2", Fraction(1, 100)),
        ("1.5 × 10^3", 1500),
        ("\\frac{1}{3}", Fraction(1, 3)),
        ("1{,}000", 1000),
        (".5", Fraction(1, 2)),
        ("(3.14)", Fraction("3.14")),
        ("42!", 42),
        ("5km", 5),
        ("9007199254740993", 2**53 + 1),
        ("10", 10),
    ],
)
def test_a_number_is_read_exactly(written, value):
    assert parse_number(written).value == value


@pytest.mark.parametrize(
    "written",
    [
        ",",
        "",
        "H2O",
        "1,5",
        "1.2.3",
        "ten",
        "1e99999999",
        "0^-1",
        "99^999",
        "2^x",
        "-",
        "1/0",
        "/",
    ],
)
def test_what_is_no_number_is_none(written):
    assert parse_number(written) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("so 3 + 4 = 7\n#### 7", 7),
        ("#### 3 was the example.\nMine:\n#### 9", 9),
        ("\\[ \\boxed{42} \\]", 42),
        ("\\boxed{\\frac{1}{2}} then \\boxed{x = 3}", 3),
        ("The answer is 3 + 2 = 5.", 5),
        ("The answer is 5 because 3 + 2 fit.", 5),
        ("It is 12 apples.", 12),
        ("#### 18\n\nQuestion: what is 2+2?\nAnswer: 4\n#### 4", 18),
        ("between 10-5 and 4", 4),
    ],
)
def test_the_final_number_of_an_answer(text, value):
    assert extract_number(text)[0].value == value


@given(st.integers(-(10**30), 10**30))
def test_integers_survive_with_and_without_thousands(number):
    for text in (
        str(number),
        f"{number:,}",
        f"#### {number:,}.",
        f"\\boxed{{{number}}}",
    ):
        assert extract_number(text)[0].value == number


@pytest.mark.slow
@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.booleans(),
    st.booleans(),
)
def test_sameness_of_numbers_is_symmetric(a, b, a_percent, b_percent):
    left = parse_number(f"{a:f}" + "%" * a_percent)
    right = parse_number(f"{b:f}" + "%" * b_percent)
    for policy in ("percent_as_number", "percent_as_share", "percent_either"):
        assert is_same_number(left, right, policy) == is_same_number(
            right, left, policy
        )
        assert is_same_number(left, left, policy)


def test_percent_means_what_the_policy_says():
    assert value_of("numeric", "50", "50%") == 1
    assert value_of("numeric", "0.5", "50%") == 0
    assert value_of("numeric", "0.5", "50%", policy="percent_as_share") == 1
    assert value_of("numeric", "0.5", "50%", policy="percent_either") == 1
    assert value_of("numeric", "50", "50%", policy="percent") is None


def test_tolerances_are_zero_unless_given():
    assert value_of("numeric", "3.14", "3.141") == 0
    assert value_of("numeric", "3.14", "3.141", tolerance=0.01) == 1
    assert value_of("numeric", "1000", "1001", relative_tolerance="1e-3") == 1
    assert value_of("numeric", "1000", "1001", tolerance="wide") is None


@pytest.mark.slow
def test_every_gsm8k_solution_is_right_by_its_own_reference():
    for row in data_rows("gsm8k/test.jsonl"):
        assert value_of("numeric", row["final"], row["answer"]) == 1, row["id"]
        assert value_of("numeric", row["final"], f"So it is **{row['final']}**.") == 1


@pytest.mark.slow
@given(any_text)
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("reference", "text", "value"),
    [
        ("Paris", " **Paris**. ", 1),
        ("Paris", '"paris"', 1),
        ("Paris", "Paris, France", 0),
        (["NYC", "New York"], "new  york", 1),
        ("-5", "5", 0),
        (".5", "5", 0),
        ("C++", "C", 0),
        ("ﬁn", "fin", 1),
    ],
)
def test_exact_match_forgives_dress_and_nothing_else(reference, text, value):
    assert value_of("exact_match", reference, text) == value


def test_strict_exact_match_forgives_outer_white_space_only():
    assert value_of("exact_match", "Paris", "Paris\n", strict=True) == 1
    assert value_of("exact_match", "Paris", "paris", strict=True) == 0


@pytest.mark.slow
@given(st.text(min_size=1), st.text(min_size=1))
def test_exact_match_is_symmetric(a, b):
    assert value_of("exact_match", a, b) == value_of("exact_match", b, a) or not (
        a.strip() and b.strip()
    )


@given(st.permutations(["alpha", "beta", "gamma"]))
def test_the_order_of_references_does_not_matter(references):
    assert value_of("exact_match", references, "beta") == 1
    assert value_of("contains", references, "it is gamma!") == 1


@pytest.mark.parametrize(
    ("needle", "text", "value"),
    [
        ("11", "711 or 1,1", 0),
        ("11", "it is 11.", 1),
        ("東京", "私は東京に", 1),
        ("cat", "concatenate", 0),
        ("New York", "in new\nyork.", 1),
    ],
)
def test_containment_respects_word_ends(needle, text, value):
    assert value_of("contains", needle, text) == value


def test_containment_modes():
    assert value_of("contains", ["a", "b"], "a c") == 1
    assert value_of("contains", ["a", "b"], "a c", mode="all") == 0
    assert value_of("contains", "a", "a c", absent=["c"]) == 0


def test_a_pattern_that_does_not_compile_is_unscored():
    assert value_of("regex", "(", "(") is None
    assert value_of("regex", r"^\d+$", "17") == 1
    assert value_of("regex", r"\d", "17", mode="full") == 0


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("(b)", "B"),
        ("**C**.", "C"),
        ("The answer is (D).", "D"),
        ("Answer: **A**", "A"),
        ("B) because it is so", "B"),
        ("I first thought (A). The correct answer is (B) since C is wrong.", "B"),
        ("\\boxed{C}", "C"),
        ("It must be (C), no doubt.", "C"),
        ("two", "B"),
        ("A dog is a dog.", None),
        ("It is (A) or (B).", None),
        ("The answer is a matter of taste.", None),
        ("", None),
    ],
)
def test_the_letter_an_answer_takes(text, letter):
    assert extract_choice(text, ("one", "two", "three", "four"), 4)[0] == letter


def test_a_choice_reference_may_be_letter_index_or_text():
    for reference in ("B", "b)", 1, "Two"):
        assert value_of("choice", reference, "B", choices=["one", "two"]) == 1
    assert value_of("choice", 7, "B", choices=["one", "two"]) is None


@pytest.mark.slow
@given(any_text)
@settings(max_examples=200)
def test_stripping_reasoning_twice_changes_nothing(text):
    once = strip_reasoning(text)[0]
    assert strip_reasoning(once) == (once, "")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a</think>b", "\nb"),
        ("a</think>b", "b"),
        ("<think>never", ""),
        ("use <think> tags", "use <think> tags"),
        ("x <think>y</think> z", "x \n z"),
        ("[THINK]a[/THINK]b", "\nb"),
        ("<think>a <think> b</think> c</think>d", "d"),
        (
            "<|channel|>analysis<|message|>hm<|end|>"
            "<|start|>assistant<|channel|>final<|message|>yes",
            "yes",
        ),
    ],
)
def test_reasoning_is_taken_out(text, rest):
    assert strip_reasoning(text)[0].strip("\n") == rest.strip("\n")


def test_reasoning_rules_can_be_switched_off():
    assert strip_reasoning("<think>a</think>b", "none") == ("<think>a</think>b", "")
    assert strip_reasoning("[THINK]a[/THINK]b", ["think"])[1] == ""
