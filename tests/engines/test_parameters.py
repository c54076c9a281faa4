import asyncio
import json

from page_server import Page, serving

from routeproof.engines.capabilities import probe_capabilities, refused_by_one
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.parameters import parameter_sets
from routeproof.proof.workload import SamplingSpec
from routeproof.workloads.case import Case

PLAIN = SamplingSpec(temperature=0.0)


def case(number: int, **parameters) -> Case:
    said = ({"role": "user", "content": "x"},)
    return Case(id=f"c{number}", class_="chat", messages=said, parameters=parameters)


def test_each_combination_is_tried_once_the_common_ones_first():
    cases = [case(i, max_tokens=9) for i in range(3)]
    cases += [case(9, min_p=0.1, logit_bias={"7": 2}), case(8, stop=["x"])]
    found = parameter_sets(cases, PLAIN)
    assert list(found) == [
        "params:temperature",
        "params:logit_bias+min_p+temperature",
        "params:stop+temperature",
    ]
    assert found["params:stop+temperature"] == {"temperature": 0.0, "stop": ["x"]}
    assert list(parameter_sets(cases, PLAIN, most=1)) == ["params:temperature"]


def test_a_case_wins_over_the_sampling_and_formats_are_told_apart():
    cases = [
        case(1, temperature=0.5, response_format={"type": "json_object"}),
        case(2, response_format={"type": "json_schema", "json_schema": {}}),
    ]
    found = parameter_sets(cases, SamplingSpec(temperature=0.0, seed=3))
    first = "params:response_format=json_object+seed+temperature"
    assert found[first]["temperature"] == 0.5
    assert len(found) == 2


def test_a_combination_only_one_route_refuses_is_found():
    def speculating(body: dict) -> Page:
        if "min_p" in body and "logit_bias" in body:
            return Page('{"error": {"message": "not with speculation"}}', status=400)
        return Page(json.dumps({"choices": [{"message": {"content": "x"}}]}))

    def plain(body: dict) -> Page:
        return Page(json.dumps({"choices": [{"message": {"content": "x"}}]}))

    sets = parameter_sets([case(1, min_p=0.1, logit_bias={"1": 5})], PLAIN)

    async def run(answer):
        async with serving({"/v1/chat/completions": answer}) as served:
            endpoint = Endpoint(f"{served.url}/v1")
            return await probe_capabilities(endpoint, "m", more=sets)

    found = refused_by_one(asyncio.run(run(plain)), asyncio.run(run(speculating)))
    assert found == {
        "params:logit_bias+min_p+temperature": "candidate: refused "
        "(not with speculation)"
    }


def test_cases_with_a_prompt_are_tried_as_completions():
    seen = []

    def answer(body: dict) -> Page:
        seen.append(body)
        return Page(json.dumps({"choices": [{"text": "x"}]}))

    asked = Case(id="p", class_="text", prompt="x", parameters={"logprobs": 5})
    sets = parameter_sets([asked], PLAIN)
    assert list(sets) == ["params:logprobs+temperature (completions)"]

    async def run():
        chat = Page(json.dumps({"choices": [{"message": {"content": "x"}}]}))
        pages = {"/v1/chat/completions": chat, "/v1/completions": answer}
        async with serving(pages) as served:
            endpoint = Endpoint(f"{served.url}/v1")
            return await probe_capabilities(endpoint, "m", features={}, more=sets)

    found = asyncio.run(run())
    assert found["params:logprobs+temperature (completions)"].state == "accepted"
    (body,) = seen
    assert body["logprobs"] == 5 and "messages" not in body and body["prompt"]
