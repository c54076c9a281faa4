import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workloads_data import data_file

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.case import Case
from routeproof.workloads.cases import case_problem
from routeproof.workloads.filler import filler, fitted, prompt_of
from routeproof.workloads.sessions import plan_sessions
from routeproof.workloads.synthesize import read_chat_log, synthesize
from routeproof.workloads.trace_readers import read_trace, write_trace

SECRET = "Dear Ada, the merger with Globex closes on Tuesday. "


def words(text):
    return text.split()


@pytest.mark.slow
@given(n=st.integers(0, 300), more=st.integers(0, 50), seed=st.integers(0, 999))
def test_filler_has_the_length_asked_for_and_grows_at_its_end(n, more, seed):
    short, long = filler(n, (seed, 1)), filler(n + more, (seed, 1))
    assert len(words(short)) == n
    assert long.startswith(short)


@pytest.mark.slow
@given(
    shared=st.integers(0, 4),
    block=st.integers(1, 40),
    tails=st.tuples(st.integers(1, 60), st.integers(1, 60)),
)
def test_prompts_share_exactly_the_blocks_they_are_said_to_share(shared, block, tails):
    prefix = tuple(range(shared))
    one, two = (
        words(
            prompt_of(
                shared * block + tail,
                key=(7, number),
                prefix=(*prefix, 100 + number),
                block_tokens=block,
            )
        )
        for number, tail in enumerate(tails)
    )
    assert (len(one), len(two)) == tuple(shared * block + tail for tail in tails)
    assert one[: shared * block] == two[: shared * block]
    assert one[shared * block :][:12] != two[shared * block :][:12] or min(tails) < 12


def test_fitted_hits_the_length_of_any_tokenizer_that_adds_a_few_tokens():
    def count(text):
        return 11 + len(text.split()) + sum(len(w) > 7 for w in text.split())

    text = prompt_of(400, key=(1, 2))
    exact = fitted(text, 400, count)
    assert count(exact) == 400
    assert exact[:500] == text[:500]


def test_fitted_gives_the_nearest_when_no_text_has_the_length():
    assert len(fitted("a b c d", 5, lambda text: 2 * len(text.split())).split()) in (
        2,
        3,
    )


def test_a_case_per_request_with_its_lengths_class_and_session(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"offset_s":0,"input_tokens":40,"output_tokens":9,"class":"chat","session":3}\n'
        '{"offset_s":2,"input_tokens":60,"output_tokens":1,"class":"code","session":3}\n'
    )
    cases = synthesize(read_trace(path), seed=5, overhead_tokens=10)
    assert [len(words(c.messages[0]["content"])) for c in cases] == [30, 50]
    assert [c.parameters["max_tokens"] for c in cases] == [9, 1]
    assert [c.class_ for c in cases] == ["chat", "code"]
    assert cases[0].cluster == cases[1].cluster == "session-0"
    assert synthesize(read_trace(path), seed=5, overhead_tokens=10) == cases
    assert synthesize(read_trace(path), seed=6, overhead_tokens=10) != cases


def test_exact_output_forces_the_length_and_carries_no_scorer(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"offset_s":0,"input_tokens":4,"output_tokens":9}\n')
    (case,) = synthesize(read_trace(path), seed=5, exact_output=True)
    assert case.parameters == {"max_tokens": 9, "ignore_eos": True, "min_tokens": 9}
    assert case.scorers == ()


def chat_log(tmp_path, *rows):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
    return path


def logged(at, text, **more):
    return {
        "timestamp": at,
        "messages": [{"role": "user", "content": text}],
        "usage": {"prompt_tokens": len(text) // 4, "completion_tokens": 7},
        **more,
    }


def test_a_private_log_becomes_a_shape_without_a_word_of_its_text(tmp_path):
    long = SECRET * 30
    path = chat_log(
        tmp_path,
        logged(1700000010, long + "Summarise.", session="ada", **{"class": "mail"}),
        logged(1700000000, SECRET * 3),
        logged(1700000030, long + "Translate.", session="ada", **{"class": "mail"}),
        logged(1700000040, "x", usage={"prompt_tokens": 1, "completion_tokens": 0}),
    )
    trace = read_chat_log(path)
    assert trace.offsets_s.tolist() == [0.0, 10.0, 30.0]
    assert trace.left_out == {"nothing was generated": 1}
    assert trace.sessions[1] == trace.sessions[2] != trace.sessions[0]
    shared = [a == b for a, b in zip(*trace.prefixes[1:], strict=True)]
    assert shared[:5] == [True] * 5 and shared[-1] is False
    write_trace(trace, tmp_path / "shape.jsonl")
    cases = synthesize(read_trace(tmp_path / "shape.jsonl"), seed=1)
    kept = (tmp_path / "shape.jsonl").read_text() + str(cases)
    for word in ("Ada", "Globex", "merger", "Tuesday", "Summarise", "1700000"):
        assert word not in kept
    one, two = (words(c.messages[0]["content"]) for c in cases[1:])
    assert one[: 5 * 64] == two[: 5 * 64]
    assert one[-10:] != two[-10:]


def test_lengths_are_estimated_where_the_log_does_not_count(tmp_path):
    row = {"time": "2026-01-02T03:04:05Z", "prompt": "a" * 400, "response": "b" * 41}
    trace = read_chat_log(chat_log(tmp_path, row))
    assert (trace.input_tokens.tolist(), trace.output_tokens.tolist()) == ([100], [11])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not a JSON object"),
        ({"timestamp": 1}, "line 2: neither `messages` nor `prompt`"),
        ({"prompt": "a", "response": "b"}, "line 2: no time"),
        ({"prompt": "a", "response": "b", "time": "soon"}, "line 2: no time"),
    ],
)
def test_a_log_line_that_is_no_request_is_named(tmp_path, row, said):
    with pytest.raises(FormatError, match=said):
        read_chat_log(chat_log(tmp_path, logged(1, "hi"), row))


def test_a_log_without_answers_is_an_error(tmp_path):
    with pytest.raises(FormatError, match="no answered request"):
        read_chat_log(chat_log(tmp_path, {"prompt": "a", "time": 1}))
    with pytest.raises(ConfigError, match="cannot read the log"):
        read_chat_log(tmp_path / "none.jsonl")


def sessions_of(n_turns, mean):
    cases = [
        Case(id=f"{k}", class_="c", prompt="x", cluster=f"s{k % n_turns}")
        for k in range(4 * n_turns)
    ]
    starts = np.arange(float(n_turns))
    return cases, plan_sessions(cases, starts, mean_think_s=mean, seed=3)


def test_the_cases_of_one_cluster_are_turns_of_one_session():
    cases, sessions = sessions_of(5, 2.0)
    assert [s.start_s for s in sessions] == [0.0, 1.0, 2.0, 3.0, 4.0]
    for number, session in enumerate(sessions):
        assert [t.case_index % 5 for t in session.turns] == [number] * 4
        assert session.turns[0].think_s == 0.0
        assert all(turn.think_s > 0 for turn in session.turns[1:])
    assert sessions == plan_sessions(cases, np.arange(5.0), mean_think_s=2.0, seed=3)


def test_think_times_have_the_mean_asked_for():
    _, sessions = sessions_of(4000, 2.0)
    thinks = [turn.think_s for s in sessions for turn in s.turns[1:]]
    assert np.mean(thinks) == pytest.approx(2.0, rel=0.05)
    _, hurried = sessions_of(3, 0.0)
    assert {turn.think_s for s in hurried for turn in s.turns} == {0.0}


def test_sessions_without_a_start_are_refused():
    with pytest.raises(ConfigError, match="5 sessions need as many"):
        plan_sessions(sessions_of(5, 1.0)[0], np.zeros(4), mean_think_s=1, seed=0)
    with pytest.raises(ConfigError, match="mean_think_s"):
        plan_sessions([], np.zeros(0), mean_think_s=float("nan"), seed=0)


def test_a_real_trace_becomes_cases_that_can_be_sent():
    name = "trace_mooncake/conversation_10min_with_hash_ids.jsonl"
    trace = read_trace(data_file(name)).window(max_requests=20)
    cases = synthesize(trace, seed=1)
    assert [case_problem(c) for c in cases] == [None] * 20
    assert [len(words(c.messages[0]["content"])) for c in cases] == [
        int(n) for n in trace.input_tokens
    ]
    one, two = (words(c.messages[0]["content"]) for c in cases[:2])
    assert one[:512] == two[:512]
    assert one[512:540] != two[512:540]
