import pytest
from hypothesis import given
from hypothesis import strategies as st
from scorer_cases import a_case, an_answer, data_rows, some_records

from routeproof.errors import ConfigError
from routeproof.scorers.code import CodeScorer
from routeproof.scorers.pass_at_k import case_pass_at_k, pass_at_k, pass_hat_k
from routeproof.scorers.program import TaskProblem, extract_program, read_task
from routeproof.scorers.sandbox.survey import possible_tiers
from routeproof.scorers.scored import score_records

TASK = {
    "entry_point": "double",
    "context": 'def double(x):\n    """Twice x."""\n',
    "tests": "def check(candidate):\n    assert candidate(2) == 4\n",
    "solution": "def double(x):\n    return 2 * x\n",
}
RIGHT = "def double(x):\n    return x + x"


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        f"```python\n{RIGHT}\n```",
        f"Here:\n\n```\n{RIGHT}\n```\nExample:\n```python\nprint(double(2))\n```",
        f"```python\n{RIGHT}",
        "    return x + x",
        "return x + x",
        "    return x + x\n\nprint(double(3))\n```\nThis works because",
        "    return x + x\n\nQuestion: what next?",
        f"```python\ny = 1\n```\n```py\n{RIGHT}\n```",
    ],
)
def test_the_program_is_found_however_it_is_wrapped(text):
    program, _ = extract_program(text, read_task(TASK))
    scope = {}
    exec(program, scope)
    assert scope["double"](2) == 4


@pytest.mark.parametrize(
    "text", ["I cannot do that.", "```json\n{}\n```", "def other(): 1"]
)
def test_no_program_is_said_to_be_none(text):
    program, why = extract_program(text, read_task({**TASK, "context": ""}))
    assert program is None and "double" in why


@pytest.mark.parametrize(
    "changes",
    [
        {"tests": ""},
        {"tests": "def check(c:"},
        {"entry_point": None, "solution": None},
        {"context": "def ("},
    ],
)
def test_a_reference_that_is_no_task_is_named(changes):
    with pytest.raises(TaskProblem):
        read_task({**TASK, **changes})
    with pytest.raises(TaskProblem):
        read_task("tests")


@pytest.mark.slow
@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
    )
)
def test_pass_at_k_is_bounded_monotone_and_right_at_the_ends(numbers):
    n, c, k = numbers
    value, all_k = pass_at_k(n, c, k), pass_hat_k(n, c, k)
    assert 0 <= all_k <= c / n + 1e-12 and c / n - 1e-12 <= value <= 1
    assert pass_at_k(n, c, 1) == pytest.approx(c / n) == pass_hat_k(n, c, 1)
    assert (value == 0) == (c == 0) and (all_k == 1) == (c == n)
    if k < n:
        assert pass_at_k(n, c, k + 1) >= value and pass_hat_k(n, c, k + 1) <= all_k
    if c < n:
        assert pass_at_k(n, c + 1, k) >= value


def test_pass_at_k_is_the_mean_over_all_draws():
    from itertools import combinations

    samples = [1, 1, 0, 0, 0]
    draws = list(combinations(samples, 3))
    assert pass_at_k(5, 2, 3) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(5, 3, 3) == pytest.approx(1 / 10)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 1, 0), (0, 0, 1), (3, 4, 1)])
def test_impossible_questions_are_errors(n, c, k):
    with pytest.raises(ConfigError):
        pass_at_k(n, c, k)


def scores_of(rows):
    cases = [a_case("1", id=name, scorers=("numeric",)) for name in ("a", "b")]
    return score_records(cases, some_records(rows))


def test_samples_of_a_case_become_one_value():
    rows = [
        ("a", "baseline", "1"),
        ("a", "baseline", "2"),
        ("b", "baseline", "1"),
        ("b", "baseline", "1"),
        ("a", "candidate", "2"),
        ("a", "candidate", None, "timeout"),
    ]
    found = case_pass_at_k(scores_of(rows), 1, scorer="numeric")
    assert list(zip(found.arm, found.case_id, strict=True)) == [
        ("baseline", "a"),
        ("baseline", "b"),
        ("candidate", "a"),
    ]
    assert list(found.value.values[:2]) == [0.5, 1.0]
    assert list(found.value.known) == [True, True, False]
    assert list(
        case_pass_at_k(scores_of(rows[:4]), 2, scorer="numeric").value.values
    ) == [1, 1]
    with pytest.raises(ConfigError, match="case a: pass@3"):
        case_pass_at_k(scores_of(rows), 3, scorer="numeric")


@pytest.fixture(scope="module")
def scorer():
    if not set(possible_tiers()) & {"T3", "T2"}:
        pytest.skip("this machine has no strong tier")
    with CodeScorer(workers=2) as opened:
        yield opened


def ask(scorer, *texts, reference=TASK, **changes):
    case = a_case(reference, scorers=("code",))
    return scorer([(case, an_answer(text, **changes)) for text in texts])


@pytest.mark.slow
def test_answers_are_scored_by_running_them(scorer):
    right, wrong, none = ask(scorer, RIGHT, "    return x", "Sorry.")
    assert (right.class_, right.value) == ("correct", 1.0)
    assert (wrong.class_, wrong.value) == ("wrong", 0.0)
    assert (none.class_, none.value) == ("unparseable", 0.0) or none.class_ == "wrong"


@pytest.mark.slow
def test_loops_cuts_failures_and_broken_references_have_their_own_class(scorer):
    slow = a_case(TASK, id="slow", options={"code": {"wall_s": 0.5}})
    looping = scorer([(slow, an_answer("def double(x):\n    while 1: pass"))])[0]
    assert (looping.class_, looping.value) == ("timed_out", 0.0)
    cut = ask(scorer, "```python\ndef double(x", outcome="truncated")[0]
    assert (cut.class_, cut.value) == ("truncated", 0.0)
    assert ask(scorer, RIGHT, outcome="timeout")[0].value is None
    assert ask(scorer, "")[0].class_ == "empty"
    broken = a_case({**TASK, "solution": "def double(x):\n    return 1"}, id="broken")
    found = scorer([(broken, an_answer(RIGHT))])[0]
    assert found.class_ == "unscored" and "reference solution" in found.trace
    nothing = a_case("tests", id="nothing")
    assert scorer([(nothing, an_answer(RIGHT))])[0].class_ == "unscored"


PERTURB = """

_original = {name}
def {name}(*args):
    value = _original(*args)
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, list):
        return value + ["x"]
    if isinstance(value, tuple):
        return value + ("x",)
    if isinstance(value, dict):
        return {{**value, "x": "x"}}
    return 0 if value is None else None
"""
LIAR = """

class _Liar:
    __class__ = int
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return 0
    def __abs__(self): return 0
    def __lt__(self, other): return True
    def __hash__(self): return 0
def {name}(*args):
    return _Liar()
"""


@pytest.mark.slow
def test_humaneval_solutions_pass_and_their_mutants_fail(scorer):
    asked, wanted = [], []
    for at, row in enumerate(data_rows("humaneval/HumanEval.jsonl")):
        case = a_case(row, id=row["task_id"], scorers=("code",))
        solution = row["prompt"] + row["canonical_solution"]
        asked.append((case, an_answer(row["canonical_solution"])))
        wanted.append((row["task_id"], 1.0))
        mutant = LIAR if at % 8 == 0 else PERTURB
        source = solution + mutant.format(name=row["entry_point"])
        asked.append((case, an_answer(f"```python\n{source}```")))
        wanted.append((row["task_id"], 0.0))
    scores = scorer(asked)
    got = [(case.id, s.value) for (case, _), s in zip(asked, scores, strict=True)]
    assert got == wanted
    assert {s.class_ for s in scores} == {"correct", "wrong"}


@pytest.mark.slow
def test_mbpp_solutions_pass(scorer):
    rows = data_rows("mbpp_sanitized/sanitized-mbpp.jsonl")[::6]
    asked = [
        (a_case(r, id=str(r["task_id"])), an_answer(f"```python\n{r['code']}\n```"))
        for r in rows
    ]
    assert [s.value for s in scorer(asked)] == [1.0] * len(asked)
