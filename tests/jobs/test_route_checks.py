import asyncio
import json
from pathlib import Path

import pytest
from page_server import Page, serving

from routeproof.engines.capabilities import Capability
from routeproof.errors import ConfigError
from routeproof.jobs.qualifying.route_checks import RouteChecks, check_routes
from routeproof.jobs.qualifying.stand_up import stand_up
from routeproof.proof.proof import Proof
from routeproof.proof.route import DraftSpec, RouteSpec, SpeculationSpec
from routeproof.proof.workload import SamplingSpec
from routeproof.routes.lock import FILE_NAME, lock_of, write_lock
from routeproof.workloads.case import Case

CASES = (
    Case(id="a", class_="chat", prompt="x"),
    Case(id="b", class_="chat", prompt="y", parameters={"min_p": 0.1}),
)


def engine(*, speculates: bool, shift: int = 0) -> dict:
    """A small server that calls itself vLLM."""

    def chat(body: dict) -> Page:
        if speculates and "min_p" in body:
            refusal = {"error": {"message": "min_p is not supported with speculation"}}
            return Page(json.dumps(refusal), status=400)
        return Page(json.dumps({"choices": [{"message": {"content": "{"}}]}))

    def tokens(body: dict) -> Page:
        text = body.get("prompt") or json.dumps(body["messages"])
        return Page(json.dumps({"tokens": [ord(c) + shift for c in text]}))

    models = {"data": [{"id": "m", "owned_by": "vllm", "root": "org/M"}]}
    return {
        "/v1/models": Page(json.dumps(models)),
        "/v1/chat/completions": chat,
        "/v1/completions": chat,
        "/tokenize": tokens,
    }


def checked(
    candidate: dict, lock_path=None, *, has_features=True, **route
) -> RouteChecks:
    async def run() -> RouteChecks:
        async with serving(engine(speculates=False)) as a, serving(candidate) as b:
            proof = Proof(
                baseline=RouteSpec(endpoint=f"{a.url}/v1", model="org/M"),
                candidate=RouteSpec(endpoint=f"{b.url}/v1", model="org/M", **route),
            )
            async with stand_up(proof, logs=Path()) as routes:
                assert routes.candidate.model == "m"
                return await check_routes(
                    routes,
                    CASES,
                    SamplingSpec(),
                    lock_path=lock_path,
                    has_features=has_features,
                )

    return asyncio.run(run())


def test_fields_of_the_workload_that_one_route_refuses_are_unfair():
    found = checked(engine(speculates=True))
    assert found.fallback == ("min_p",)
    assert list(found.unfair_cases()) == ["params:min_p+temperature (completions)"]
    assert "not supported with speculation" in found.refused["min_p"]
    assert found.token_differences == ()


def test_features_that_the_workload_does_not_use_can_be_left_alone():
    asked = engine(speculates=False)

    def fragile(body: dict) -> Page:
        return Page("gone", status=500) if "top_k" in body else chat(body)

    chat = asked["/v1/chat/completions"]
    found = checked({**asked, "/v1/chat/completions": fragile}, has_features=False)
    assert (found.refused, found.fallback) == ({}, None), "unknown, not none"
    assert "params:min_p+temperature (completions)" in found.candidate


def test_two_equal_routes_have_nothing_between_them():
    found = checked(engine(speculates=False))
    assert (found.refused, found.fallback, found.lock) == ({}, (), ())


def test_names_about_speculation_that_nobody_knows_are_kept_by_arm():
    page = 'vllm:spec_decode_new_counter_total{engine="0"} 5\n'
    found = checked({**engine(speculates=False), "/metrics": Page(page)})
    assert found.unknown_series == {
        "baseline": (),
        "candidate": ("vllm:spec_decode_new_counter_total",),
    }


def test_another_tokenizer_is_found():
    found = checked(engine(speculates=False, shift=1))
    assert {d.probe for d in found.token_differences} >= {"thai", "chat_template"}


def test_a_pair_upgraded_on_one_side_stops_before_anything_is_sent(tmp_path):
    path = tmp_path / FILE_NAME
    pair = {
        "revision": "aaaaaaaa",
        "speculation": SpeculationSpec(
            method="eagle3", draft=DraftSpec(model="org/D", revision="dddddddd")
        ),
    }

    async def written() -> None:
        async with serving(engine(speculates=True)) as served:
            spec = RouteSpec(endpoint=f"{served.url}/v1", model="org/M", **pair)
            proof = Proof(baseline=spec, candidate=spec)
            async with stand_up(proof, logs=tmp_path) as routes:
                lock = lock_of(routes.found.candidate)
                assert lock is not None
                write_lock(path, lock)

    asyncio.run(written())
    assert checked(engine(speculates=True), path, **pair).lock == ()
    upgraded = {**pair, "revision": "bbbbbbbb"}
    with pytest.raises(ConfigError, match="its draft was not"):
        checked(engine(speculates=True), path, **upgraded)


def test_details_are_asked_for_only_in_words_that_both_routes_accept():
    yes, no = Capability(state="accepted"), Capability(state="refused")
    both = RouteChecks(
        baseline={"field:a": yes, "field:b": yes, "field:c": yes},
        candidate={"field:a": yes, "field:b": no},
    )
    assert both.sendable({"a": 1, "b": 2, "c": 3}) == {"a": 1}
