"""A spot check that finds a change to be lossy: all cases, judged by their quality."""

import json

import msgspec
import pytest
from builders import Plan, a_case, a_proof, a_run, a_speculative_diff
from fakes.openai_server import event
from qualify_cases import Answering, cases_sent, crates, two_routes, write_proof

from routeproof.gates.result import Status
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Options, qualify
from routeproof.proof.policy import PolicySpec, QualityGateSpec
from routeproof.records.manifest import Manifest
from routeproof.records.store import RunFolder
from routeproof.workloads.cases import read_cases

pytestmark = pytest.mark.slow

LIST = [["lamps", -0.01], ["lanterns", -6.0]]


class Telling(Answering):
    """Tells log probabilities; calls lamps what it likes."""

    def __init__(self, word="lamps", **given):
        super().__init__(**given)
        self.word = word

    def __call__(self, seen):
        steps = super().__call__(seen)
        if seen.method == "GET" or not seen.json.get("stream"):
            return steps
        return [self._told(step) for step in steps]

    def _told(self, step):
        if not isinstance(step, bytes) or b"lamps." not in step:
            return step
        body = json.loads(step[step.index(b"{") : step.rindex(b"}") + 1])
        choice = body["choices"][0]
        choice["delta"]["content"] = f"{self.word}."
        choice["logprobs"] = {
            "content": [
                {
                    "token": self.word,
                    "logprob": -0.01,
                    "top_logprobs": [{"token": t, "logprob": v} for t, v in LIST],
                }
            ]
        }
        return event(body)


def qualified(folder, candidate, **options):
    cases = crates(200, parameters={"logprobs": True, "top_logprobs": 2})
    with two_routes(Telling(), candidate) as servers:
        proof = write_proof(folder, servers, cases=cases, tolerance=0.1)
        plain = msgspec.json.decode(proof.read_bytes())
        plain["candidate"] = {
            "like": "baseline",
            "endpoint": servers[1].url,
            "changes": ["speculation"],
            "speculation": {"method": "ngram", "draft_tokens": 4},
        }
        proof.write_bytes(msgspec.json.encode(plain))
        given = {"has_probes": False, **options}
        return qualify(proof, folder / "run", options=Options(**given))


def test_a_lossless_claim_that_fails_sends_all_cases_and_quality_decides(tmp_path):
    found = qualified(tmp_path, Telling("lanterns"))
    folder = RunFolder.open(tmp_path / "run")
    assert sorted(cases_sent(folder)) == sorted(f"c{i}" for i in range(200))
    ids = [i for part in folder.parts() for i in part.text("request_id").tolist()]
    assert len(ids) == len(set(ids)) == 600
    assert len(read_cases(folder.cases_path)) == 200
    gate = found.gate("correctness")
    checks = {check.name: check for check in gate.checks}
    assert "0 of 200 texts equal" in checks["greedy_equality"].reason
    assert checks["greedy_equality"].status is Status.PASSED
    assert checks["headline"].n == 200 and gate.status is Status.PASSED
    assert any("judged as a lossy change" in note for note in found.evidence.notes)


def test_one_that_holds_sends_the_sample_alone(tmp_path):
    found = qualified(tmp_path, Telling())
    assert len(cases_sent(RunFolder.open(tmp_path / "run"))) == 100
    assert not found.evidence.judged_as_lossy


def test_going_on_with_a_run_that_was_found_out_sends_nothing_twice(tmp_path):
    qualified(tmp_path, Telling("lanterns"))
    run = tmp_path / "run"
    manifest = RunFolder.open(run).read_manifest()
    part = sorted((run / "records").glob("*.parquet"))[-1]
    part.unlink()
    RunFolder.open(run).write_manifest(
        msgspec.structs.replace(manifest, finished=False)
    )
    before = {i for p in RunFolder.open(run).parts() for i in p.text("request_id")}
    with two_routes(Telling(), Telling("lanterns")) as servers:
        text = json.loads((tmp_path / "proof.yaml").read_text())
        text["baseline"]["endpoint"] = servers[0].url
        text["candidate"]["endpoint"] = servers[1].url
        for place in (tmp_path / "proof.yaml", run / "proof.yaml"):
            place.write_text(json.dumps(text))
        options = Options(has_probes=False, resume=True)
        qualify(tmp_path / "proof.yaml", run, options=options)
    ids = [i for p in RunFolder.open(run).parts() for i in p.text("request_id")]
    assert len(ids) == len(set(ids)) == 600 and before < set(ids)


def test_who_asks_for_the_full_plan_asks_for_quality_and_not_for_equality(tmp_path):
    def judged(name, plan):
        path = a_run(
            tmp_path / name,
            plan=Plan(
                cases=tuple(a_case(i) for i in range(110)),
                stages=(("quality", "c1", 1),),
            ),
            proof=a_proof(
                policy=PolicySpec(plan=plan),
                quality=(QualityGateSpec(metric="contains", tolerance=0.03),),
            ),
            route_diff=a_speculative_diff(),
        )
        return judge(path).evidence.judged_as_lossy

    assert judged("a", "full") and not judged("b", "by_change")
    assert "reclassed" not in Manifest.__struct_fields__
