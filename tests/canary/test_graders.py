"""Opinions of those who are asked: every outcome has a class, unknown is never good."""

import json
import math

import pytest
from canary_cases import a_gateway, ask, run
from fakes.openai_server import head, json_reply, serving_in_thread
from tasting_cases import USUAL, a_copy, a_taster, standing, taste_all

from routeproof.canary.deciding.state import SignalOutcome
from routeproof.canary.samples.cleaning import Cleaner
from routeproof.canary.tasting.asked_http import Endpoint
from routeproof.canary.tasting.asking import Asker
from routeproof.canary.tasting.graders import (
    CALIBRATION,
    Exchange,
    Floor,
    Opinion,
    cosine,
    embedding_grader,
    off_topic_grader,
    read_embeddings,
)
from routeproof.canary.tasting.likelihood_grader import LikelihoodGrader, likelihood
from routeproof.canary.tasting.shadow_pairs import CopiedPair
from routeproof.canary.weighing.health import Budget
from routeproof.canary.weighing.policies import ASKED, KNOWN
from routeproof.engines.adapters import adapter
from routeproof.scorers.judge.endpoint import ask_endpoint


def an_exchange(text="Paris.", *, arm="canary", path="/v1/chat/completions", **given):
    from routeproof.canary.samples.spool import Sample

    copy = a_copy(text, arm=arm, **given)
    sample = Sample(
        request_id=copy.request_id,
        arm=arm,
        at_s=0.0,
        stratum="whole",
        record=copy.record(adapter("openai"), 0.0),
        signals={},
    )
    return Exchange(sample, copy.body, path)


def verdict(text):
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json_reply({"choices": [choice]})


def judge_says(word):
    return verdict(json.dumps({"reason": "r", "verdict": word}))


@pytest.mark.parametrize(
    ("reply", "opinion"),
    [
        (judge_says("off_topic"), Opinion(bad=True)),
        (judge_says("on_topic"), Opinion(bad=False)),
        (judge_says("unclear"), Opinion()),
        (judge_says("maybe"), Opinion(problem="the judge gave no verdict")),
        (verdict("It is fine."), Opinion(problem="the judge gave no verdict")),
        ([head(500, content_length=0)], Opinion(problem="the judge gave no verdict")),
    ],
)
def test_every_answer_of_the_judge_has_its_class(reply, opinion):
    with serving_in_thread(reply) as server:
        grade = off_topic_grader(ask_endpoint(server.url, "j"), Cleaner())
        (found,) = grade([an_exchange()])
    assert found.bad == opinion.bad
    assert (found.problem is None) == (opinion.problem is None)


def test_a_judge_that_is_not_there_is_a_problem_and_no_opinion():
    grade = off_topic_grader(ask_endpoint("http://127.0.0.1:9/v1", "j"), Cleaner())
    (found,) = grade([an_exchange()])
    assert found.bad is None and found.problem


@pytest.mark.parametrize(
    "exchange",
    [
        an_exchange(""),
        an_exchange(status=500),
        an_exchange(request={"messages": []}),
    ],
    ids=["empty", "failed", "no prompt"],
)
def test_what_is_no_answer_or_has_no_prompt_is_not_asked_about(exchange):
    with serving_in_thread(judge_says("off_topic")) as server:
        grade = off_topic_grader(ask_endpoint(server.url, "j"), Cleaner())
        assert grade([exchange]) == [Opinion()]
    assert server.seen == []


def test_what_a_judge_is_sent_is_redacted():
    secret = "sk-plantedKEY1234567890abcdef"
    request = {"messages": [{"role": "user", "content": f"my key is {secret}"}]}
    with serving_in_thread(judge_says("on_topic")) as server:
        grade = off_topic_grader(ask_endpoint(server.url, "j"), Cleaner())
        grade([an_exchange(request=request)])
    assert secret not in server.seen[0].body.decode()
    assert "[key]" in server.seen[0].body.decode()


def test_a_floor_is_fixed_by_the_control_before_anything_is_held_against_it():
    floor, control = Floor(), an_exchange(arm="control").sample
    for i in range(CALIBRATION):
        assert floor.is_below(i / CALIBRATION, control) is None
    canary = an_exchange(arm="canary").sample
    assert floor.is_below(0.02, canary) is True
    assert floor.is_below(0.5, canary) is False
    fresh = Floor()
    for _ in range(3 * CALIBRATION):
        assert fresh.is_below(0.0, canary) is None


def by_length(seen):
    """Embeds a text by its length alone, in the wrong order of rows."""
    rows = [
        {"index": i, "embedding": [math.cos(len(t) / 50), math.sin(len(t) / 50)]}
        for i, t in enumerate(seen.json["input"])
    ]
    return json_reply({"data": rows[::-1]})


def test_answers_further_from_their_request_than_the_controls_are_unrelated():
    near = [an_exchange("x" * (28 + i % 5), arm="control") for i in range(20)]
    with serving_in_thread(by_length) as server:
        grade = embedding_grader(Endpoint(server.url, {}), "e", Cleaner())
        for _ in range(CALIBRATION // 20):
            assert {o.bad for o in grade(near)} == {None}
        far = an_exchange("x" * 120, arm="canary")
        close = an_exchange("x" * 30, arm="canary")
        assert [o.bad for o in grade([far, close])] == [True, False]
    assert server.seen[0].path.endswith("/embeddings")


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
        {"data": [{"embedding": ["a"]}, {"embedding": [1.0]}]},
        {"data": [{"index": 5, "embedding": [1.0]}, {"embedding": [1.0]}]},
        {"data": [{"embedding": [True]}, {"embedding": [1.0]}]},
    ],
)
def test_embeddings_that_are_none_are_not_taken(body):
    assert read_embeddings(body, 2) is None


def test_a_vector_without_a_direction_has_no_cosine():
    assert cosine([0.0, 0.0], [1.0, 0.0]) is None
    assert cosine([3.0, 4.0], [3.0, 4.0]) == pytest.approx(1.0)


ROWS = [["Q", None, []], [" A", -0.5, []], [" B", -1.5, []]]


def test_likelihood_is_that_of_the_answers_tokens_alone():
    assert likelihood(" A B", ROWS) == pytest.approx(math.exp(-1.0))
    assert likelihood("elsewhere", ROWS) is None


def vllm(seen):
    """As vLLM answers ``prompt_logprobs: 0``."""
    messages = seen.json["messages"]
    assert (
        seen.json["continue_final_message"] and not seen.json["add_generation_prompt"]
    )
    words = [messages[0]["content"], messages[-1]["content"]]
    tokens = [None, *({"7": {"logprob": -2.0, "decoded_token": w}} for w in words)]
    return json_reply({"choices": [], "prompt_logprobs": tokens})


def test_the_baseline_is_asked_in_chat_by_prompt_logprobs():
    with serving_in_thread(vllm) as server:
        grade = LikelihoodGrader(Endpoint(server.url, {}))
        grade.floor.at = 0.2
        assert grade([an_exchange()]) == [Opinion(bad=True)]
        grade.floor.at = 0.1
        assert grade([an_exchange()]) == [Opinion(bad=False)]


def test_the_baseline_is_asked_in_completions_by_echo():
    def echo(seen):
        assert seen.json["echo"] and seen.json["prompt"].endswith("Paris.")
        logprobs = {"tokens": ["Say:", "Paris.", "x"], "token_logprobs": [None, -1, 0]}
        return json_reply({"choices": [{"logprobs": logprobs}]})

    exchange = an_exchange(path="/v1/completions", request={"prompt": "Say:"})
    with serving_in_thread(echo) as server:
        grade = LikelihoodGrader(Endpoint(server.url, {}))
        grade.floor.at = 0.9
        assert grade([exchange]) == [Opinion(bad=True)]


@pytest.mark.parametrize(
    "reply", [json_reply({"choices": []}), json_reply({"error": "no"}, status=400)]
)
def test_a_baseline_without_log_probabilities_is_asked_once(reply):
    with serving_in_thread(reply) as server:
        grade = LikelihoodGrader(Endpoint(server.url, {}))
        assert grade([an_exchange()])[0].problem
        assert grade([an_exchange()]) == [Opinion()]
    assert len(server.seen) == 1 and not grade.is_offered


def an_asker(taster, graders, *, judge=None, per_minute=6e6):
    asker = Asker(taster, graders, judge, Budget(per_minute, lambda: 0.0))
    taster.on_tasted.append(asker.offer)
    taster.on_paired.append(asker.offer_pair)
    return asker


def always(opinion):
    return lambda exchanges: [opinion] * len(exchanges)


def copies(n):
    return [
        a_copy(request_id=f"request-{arm}-{i}", arm=arm)
        for i in range(n)
        for arm in ("control", "canary")
    ]


def asked_about(tmp_path, grader, *, n=20, per_minute=6e6, name="off_topic", **given):
    taster = a_taster(tmp_path, "error", name)
    asker = an_asker(taster, {name: grader}, per_minute=per_minute, **given)
    asker.budget._saved = per_minute
    asker.start()
    taste_all(taster, *copies(n))
    asker.finish()
    return taster, asker


def test_opinions_become_evidence_and_are_kept_with_the_sample(tmp_path):
    def bad_canary(exchanges):
        return [Opinion(bad=e.sample.arm == "canary") for e in exchanges]

    taster, asker = asked_about(tmp_path, bad_canary, n=30)
    seen = standing(taster, "off_topic")
    assert seen.outcome is SignalOutcome.FAIL
    kept = {s.arm: s.signals["off_topic"] for s in taster.spool.latest()}
    assert kept == {"canary": True, "control": False}
    assert asker.asked["off_topic", "canary"] == 30


def test_a_silent_judge_is_an_error_of_its_signal_alone(tmp_path):
    taster, _ = asked_about(tmp_path, always(Opinion(problem="no answer")))
    assert standing(taster, "off_topic").outcome is SignalOutcome.ERROR
    assert standing(taster, "off_topic").canary_seen == 0
    assert standing(taster, "error").outcome is not SignalOutcome.ERROR


def test_a_grader_that_breaks_is_counted_and_the_thread_goes_on(tmp_path):
    def breaks(exchanges):
        raise ZeroDivisionError

    taster, asker = asked_about(tmp_path, breaks)
    assert taster.ledger.failed["off_topic", "canary"] == 20
    assert "ZeroDivisionError" in standing(taster, "off_topic").reason


def test_what_the_budget_does_not_cover_is_counted_and_takes_both_arms(tmp_path):
    _, asker = asked_about(tmp_path, always(Opinion(bad=False)), n=50, per_minute=20)
    assert sum(asker.asked.values()) == 20
    assert asker.over_budget.total() == 80
    assert abs(asker.over_budget["canary"] - asker.over_budget["control"]) <= 2


def test_a_full_queue_drops_and_counts(tmp_path):
    taster = a_taster(tmp_path, "off_topic")
    asker = Asker(
        taster, {"off_topic": always(Opinion())}, None, Budget(1e9, lambda: 0.0)
    )
    asker.budget._saved = 1e9
    for i in range(asker.waiting_max + 5):
        asker.offer(an_exchange(request_id=f"r{i}").sample, a_copy())
    assert asker.dropped["canary"] == 5


def test_a_judge_that_prefers_the_controls_answers_in_both_orders_is_harm(tmp_path):
    def judge(questions):
        said = []
        for question in questions:
            text = question.messages[-1]["content"]
            is_first = text.index("Paris.") < text.index("Bananas.")
            word = "first" if is_first else "second"
            said.append(json.dumps({"reason": "r", "verdict": word}))
        return said

    taster = a_taster(tmp_path, paired=["shadow.preference"])
    asker = an_asker(taster, {}, judge=judge)
    asker.start()
    pairs = [
        CopiedPair(
            a_copy("Paris.", arm="control", request_id=f"live-{i}"),
            a_copy("Bananas.", arm="canary", request_id=f"live-{i}.shadow"),
        )
        for i in range(30)
    ]
    taste_all(taster, *(p.live for p in pairs), *pairs)
    asker.finish()
    assert standing(taster, "shadow.preference").outcome is SignalOutcome.FAIL
    assert {s.shadow.preference for s in taster.spool.latest()} == {0.0}


def test_a_judge_that_goes_by_position_shows_no_harm(tmp_path):
    def judge(questions):
        return [json.dumps({"reason": "r", "verdict": "first"})] * len(questions)

    taster = a_taster(tmp_path, paired=["shadow.preference"])
    asker = an_asker(taster, {}, judge=judge)
    asker.start()
    for i in range(30):
        live = a_copy("Paris.", arm="control", request_id=f"live-{i}")
        replay = a_copy("Bananas.", request_id=f"live-{i}.shadow")
        taste_all(taster, CopiedPair(live, replay))
    asker.finish()
    seen = standing(taster, "shadow.preference")
    assert seen.canary_seen == 30 and seen.harm_log_e < 0.1


def test_every_signal_that_is_asked_for_is_known():
    assert set(ASKED) <= set(KNOWN)


@pytest.mark.slow
def test_a_candidate_that_talks_of_something_else_is_taken_back_by_the_judge(tmp_path):
    def judge(seen):
        text = seen.json["messages"][-1]["content"]
        is_off = "Bananas" in text
        return judge_says("off_topic" if is_off else "on_topic")

    def says(text):
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return json_reply({"id": "c", "choices": [choice]})

    async def go(url):
        more = (
            "  steps: [0.5, 1.0]\n  graders:\n"
            f"    judge: {{endpoint: '{url}', model: j}}\n"
            "    asks_per_minute: 100000\n"
        )
        async with a_gateway(
            tmp_path,
            trusted=says("Paris."),
            fast=says("Bananas are yellow."),
            more=more,
        ) as stand:
            stand.gateway.command("start", actor="test")
            for i in range(600):
                body = {**USUAL, "user": f"u{i}"}
                await ask(stand.url, json.dumps(body).encode())
                if stand.gateway.store.read("fast").phase != "stepping":
                    break
            return stand.gateway.store.read("fast")

    with serving_in_thread(judge) as server:
        state = run(go(server.url))
    assert state.phase in ("rolling_back", "rolled_back")
    assert "off_topic" in state.reason
