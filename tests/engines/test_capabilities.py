import asyncio
import json
from collections.abc import Callable

import pytest
from engine_pages import rows
from page_server import Page, serving

from routeproof.engines.alignment import tokenizers_differ
from routeproof.engines.capabilities import (
    FEATURES,
    Capability,
    as_flags,
    needs_fallback,
    probe_capabilities,
    refused_by_one,
    sendable,
)
from routeproof.engines.dialects import DIALECTS, dialect, json_schema
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.tokenize import tokenize
from routeproof.errors import ConfigError
from routeproof.routes.alignment import PROBES

Answer = Callable[[dict], Page]


def chat(content: str = "Hello", **choice) -> Page:
    made = {"message": {"content": content}, "finish_reason": "length", **choice}
    return Page(json.dumps({"choices": [made]}))


def refusal(message: str, *, wrapped: bool = True) -> Page:
    inner = {"message": message, "type": "BadRequestError", "code": 400}
    return Page(json.dumps({"error": inner} if wrapped else inner), status=400)


def tried(answer: Answer, **options) -> dict[str, Capability]:
    async def run() -> dict[str, Capability]:
        async with serving({"/v1/chat/completions": answer}) as served:
            return await probe_capabilities(
                Endpoint(f"{served.url}/v1"), "m", **options
            )

    return asyncio.run(run())


def obliging(body: dict) -> Page:
    if body.get("stream"):
        return Page('data: {"usage": {"completion_tokens": 4}}\n\ndata: [DONE]\n\n')
    choice = {}
    if body.get("logprobs"):
        choice["logprobs"] = {"content": [{"logprob": -0.5}, {"logprob": -0.25}]}
    if body.get("return_token_ids"):
        choice["token_ids"] = [1, 2]
    made = {"message": {"content": "{"}, **choice}
    return Page(json.dumps({"choices": [made] * body.get("n", 1)}))


def test_a_server_that_does_everything_accepts_everything():
    found = tried(obliging, engine="vllm", extra={"detail": True})
    assert set(found) == {*FEATURES, "token_ids", "field:detail"}
    assert {each.state for each in found.values()} == {"accepted"}
    assert as_flags(found)["min_p"] is True


def test_what_a_speculating_vllm_refuses_needs_the_baseline():
    def speculating(body: dict) -> Page:
        if "min_p" in body or "logit_bias" in body:
            return refusal("not yet supported with speculative decoding")
        return obliging(body)

    baseline, candidate = tried(obliging), tried(speculating)
    assert candidate["min_p"].state == "refused"
    assert "speculative decoding" in candidate["min_p"].note
    assert needs_fallback(baseline, candidate) == ("min_p", "logit_bias")
    assert list(refused_by_one(baseline, candidate)) == ["logit_bias", "min_p"]
    assert needs_fallback(candidate, baseline) == ()
    assert "baseline: refused" in refused_by_one(candidate, baseline)["min_p"]


def test_an_error_without_a_wrapper_and_one_inside_a_200_are_understood():
    def sglang(body: dict) -> Page:
        if "min_p" in body:
            return refusal("no min_p", wrapped=False)
        if "logit_bias" in body:
            return Page(json.dumps({"error": {"message": "engine died"}}))
        return obliging(body)

    found = tried(sglang)
    assert found["min_p"] == Capability(state="refused", note="no min_p")
    assert found["logit_bias"] == Capability(state="failed", note="engine died")


def test_an_answer_that_looks_away_is_empty():
    found = tried(lambda body: chat("Hello"))
    notes = {name: each.note for name, each in found.items() if each.state == "empty"}
    assert notes == {
        "stream_usage": "the stream ends without token counts",
        "logprobs": "the answer carries no log-probabilities",
        "json_object": "the answer is not JSON",
        "several_choices": "one answer came instead of two",
    }
    assert as_flags(found)["logprobs"] is False


def test_log_probabilities_that_are_all_zero_are_worthless():
    def zeros(body: dict) -> Page:
        content = [{"logprob": 0.0}] * 4
        return chat(logprobs={"content": content} if body.get("logprobs") else None)

    assert tried(zeros)["logprobs"].note == "every log-probability is 0.0"


def test_a_crash_is_a_failure_and_not_a_refusal():
    def crashing(body: dict) -> Page:
        return Page("boom", status=500) if "tools" in body else obliging(body)

    found = tried(crashing)
    assert found["tools"] == Capability(state="failed", note="HTTP 500: boom")
    assert as_flags(found)["tools"] is None


def test_an_endpoint_that_refuses_a_plain_request_is_an_error():
    with pytest.raises(ConfigError, match="plain request: no such model"):
        tried(lambda body: refusal("no such model"))


def test_an_extra_field_one_arm_refuses_is_sent_to_neither():
    def strict(body: dict) -> Page:
        known = {"model", "messages", "max_tokens", "temperature"}
        asked = {key for feature in FEATURES.values() for key in feature}
        extra = set(body) - known - asked
        return refusal(f"unknown {extra}") if extra else obliging(body)

    extra = {"return_spec_tokens_details": True}
    loose, tight = tried(obliging, extra=extra), tried(strict, extra=extra)
    assert sendable(extra, loose) == extra
    assert sendable(extra, loose, tight) == {}
    assert sendable(extra, {}) == {}


def test_recorded_refusals_are_those_of_the_recording():
    recorded = rows("engine_captures_vllm", "vllm-ngram.errors.jsonl")
    row = next(r for r in recorded if "min_p" in r["request"])
    page = Page(row["body"], status=row["status"])

    def answer(body: dict) -> Page:
        return page if "min_p" in body or "logit_bias" in body else obliging(body)

    found = tried(answer)
    assert found["min_p"].state == "refused"
    assert "min_p and logit_bias" in found["min_p"].note


def test_every_engine_has_a_dialect_and_an_unknown_one_the_protocols():
    assert dialect("vllm").regex("a+") == {"structured_outputs": {"regex": "a+"}}
    assert dialect("sglang").grammar("x") == {"ebnf": "x"}
    assert dialect("somebody").regex is None
    assert all(d.logprobs(5)["top_logprobs"] == 5 for d in DIALECTS.values())
    assert not DIALECTS["llama.cpp"].logprobs_under_speculation
    assert json_schema("a", {"type": "object"})["response_format"]["type"] == (
        "json_schema"
    )


def tokenizer(shift: int = 0, only: str | None = None) -> Answer:
    """One token per character; ``shift`` moves those of one probe text."""

    def answer(body: dict) -> Page:
        text = body.get("prompt") or body["content"]
        moved = shift if only is None or text == PROBES[only] else 0
        return Page(json.dumps({"tokens": [ord(letter) + moved for letter in text]}))

    return answer


def test_two_engines_tokenizers_are_compared_probe_by_probe():
    async def run(other: Answer, engine: str = "sglang"):
        async with serving({"/tokenize": tokenizer()}) as a:
            async with serving({"/tokenize": other}) as b:
                one = (Endpoint(f"{a.url}/v1"), "sglang", "m")
                return await tokenizers_differ(one, (Endpoint(b.url), engine, "m"))

    assert asyncio.run(run(tokenizer())) == ()
    (found,) = asyncio.run(run(tokenizer(1, "thai")))
    assert (found.probe, found.at) == ("thai", 0)
    assert found.other == found.one + 1
    assert asyncio.run(run(tokenizer(), "openai")) is None


def test_another_chat_template_shows_as_other_tokens():
    def server(prompt: str) -> dict:
        return {
            "/tokenize": tokenizer(),
            "/apply-template": Page(json.dumps({"prompt": prompt})),
        }

    async def run():
        async with serving(server("<user>hi")) as a, serving(server("[user]hi")) as b:
            asked = [(Endpoint(s.url), "llama.cpp", "m") for s in (a, b)]
            return await tokenizers_differ(*asked)

    (found,) = asyncio.run(run())
    assert (found.probe, found.at) == ("chat_template", 0)


@pytest.mark.parametrize(
    "page", [Page("x"), Page("[]"), Page('{"tokens": ["a"]}'), Page(status=404)]
)
def test_an_engine_that_does_not_tokenize_is_unknown(page):
    async def run():
        async with serving({"/tokenize": page}) as served:
            return await tokenize(Endpoint(served.url), "vllm", "m", "text")

    assert asyncio.run(run()) is None


def test_a_feature_that_ends_the_engine_is_named():
    dead = []

    def mortal(body: dict) -> Page:
        if "top_k" in body or dead:
            dead.append(body)
            return Page('{"error": {"message": "EngineCore is gone"}}', status=500)
        return obliging(body)

    with pytest.raises(ConfigError, match="since it was asked for `top_k`") as found:
        tried(mortal, parallel=1)
    assert "EngineCore is gone" in found.value.message
    assert "ends this engine" in found.value.hint


def test_a_feature_that_fails_alone_is_no_end():
    def picky(body: dict) -> Page:
        if "top_k" in body:
            return Page('{"error": {"message": "oops"}}', status=500)
        return obliging(body)

    assert tried(picky)["top_k"].state == "failed"
