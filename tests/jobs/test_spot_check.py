"""A smaller sample where a change claims to lose nothing; else all cases."""

import msgspec
import pytest
from builders import a_route_diff
from qualify_cases import cases_sent, crates, two_routes, write_proof

from routeproof.gates.evidence import Agreed
from routeproof.jobs.planning.questions import pairs_of
from routeproof.jobs.qualify import Options, qualify
from routeproof.jobs.qualifying.spot_check import (
    LEAST,
    change_class_of,
    is_spot_check,
    spot_checked,
)
from routeproof.proof.policy import PolicySpec, QualityGateSpec, UntilDecidedSpec
from routeproof.records.store import RunFolder


def agreed(*asked, **required):
    return Agreed(quality=asked, classes_required=required)


WHOLE = QualityGateSpec(metric="headline", tolerance=0.03)
ODD = QualityGateSpec(metric="headline", tolerance=0.05, slice={"class": "odd"})


@pytest.mark.parametrize(
    ("plan", "change", "is_spot"),
    [
        ("by_change", "lossless", True),
        ("by_change", "lossy", False),
        ("by_change", "unknown", False),
        ("full", "lossless", False),
        ("spot_check", "lossy", True),
    ],
)
def test_the_class_of_the_change_decides_unless_the_policy_does(plan, change, is_spot):
    assert is_spot_check(PolicySpec(plan=plan), change) == is_spot


def test_a_declared_change_that_nobody_sees_is_unknown():
    lossless = a_route_diff(changes=(), change_class="lossless")
    assert change_class_of(lossless, ()) == "lossless"
    assert change_class_of(lossless, ("kv_cache",)) == "unknown"
    seen = a_route_diff()
    assert change_class_of(seen, ("kv_cache",)) == "lossy"


def test_a_run_that_stops_early_starts_from_all_cases():
    policy = PolicySpec(until_decided=UntilDecidedSpec())
    assert not is_spot_check(policy, "lossless")


def test_every_required_question_keeps_what_it_needs():
    cases = crates(1000)
    chosen = spot_checked(cases, agreed(WHOLE, ODD, even=120), seed=1)
    needed = pairs_of(0.01, 0.03, 0.05, 0.8)
    odd = [case for case in chosen if case.class_ == "odd"]
    assert needed <= len(chosen) < 400
    assert len(odd) >= pairs_of(0.01, 0.05, 0.05, 0.8)
    assert len(chosen) - len(odd) >= 120
    assert [c.id for c in chosen] == [c.id for c in cases if c in chosen]


def test_the_sample_follows_from_the_seed_and_is_never_tiny():
    cases = crates(500)
    loose = agreed(QualityGateSpec(metric="headline", tolerance=0.3))
    first, again = (spot_checked(cases, loose, seed=s) for s in (1, 1))
    assert first == again
    assert len(first) == LEAST
    assert spot_checked(cases, loose, seed=2) != first


def test_a_workload_smaller_than_the_sample_is_sent_whole():
    assert spot_checked(crates(80), agreed(WHOLE), seed=1) == crates(80)


def test_conversations_are_taken_whole():
    cases = tuple(
        msgspec.structs.replace(case, cluster=f"talk-{i // 4}")
        for i, case in enumerate(crates(1000))
    )
    chosen = spot_checked(cases, agreed(WHOLE), seed=1)
    assert all(
        sum(c.cluster == case.cluster for c in chosen) == 4 for case in chosen[:40]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "sent"), [(["speculation"], LEAST), (["kv_cache"], 200)]
)
def test_a_run_sends_what_its_change_needs(tmp_path, changes, sent):
    fields = {"speculation": {"method": "ngram", "draft_tokens": 4}}
    if changes == ["kv_cache"]:
        fields = {"kv_cache": "fp8_e4m3"}
    with two_routes() as servers:
        proof = write_proof(tmp_path, servers, cases=crates(200), tolerance=0.1)
        plain = msgspec.json.decode(proof.read_bytes())
        plain["candidate"] = {
            "like": "baseline",
            "endpoint": servers[1].url,
            "changes": changes,
            **fields,
        }
        proof.write_bytes(msgspec.json.encode(plain))
        found = qualify(proof, tmp_path / "run", options=Options(has_control=False))
    assert len(cases_sent(RunFolder.open(tmp_path / "run"))) == sent
    noted = any("a spot check: 100 of 200" in n for n in found.evidence.notes)
    assert noted == (sent < 200)
