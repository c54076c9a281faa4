"""The way back is walked on a shadow, and gate 7 reads what was seen."""

import contextlib

import msgspec
import pytest
from canary_cases import SHORT
from fakes.openai_server import json_reply, serving_in_thread

from routeproof.canary.config import load_canary
from routeproof.canary.deciding.store import SqliteStore
from routeproof.errors import ConfigError
from routeproof.jobs.drill import DrillOptions, drill
from routeproof.jobs.gathering.drill_evidence import Drilled, keep_drill, with_drill
from routeproof.proof.policy import RollbackSpec
from routeproof.proof.proof import Proof
from routeproof.proof.route import RouteSpec

GOOD = json_reply(
    {"id": "c", "choices": [{"message": {"content": "sea"}, "finish_reason": "stop"}]}
)


@contextlib.contextmanager
def a_file(folder, trusted=GOOD, fast=GOOD):
    with serving_in_thread(trusted) as one, serving_in_thread(fast) as two:
        path = folder / "canary.yaml"
        path.write_text(
            SHORT.format(sample="5%", fast=two.url, trusted=one.url, more="")
        )
        yield path, two


@pytest.mark.slow
@pytest.mark.parametrize("how", ["trigger", "fault"])
def test_the_way_back_is_walked_and_noted_and_the_real_canary_stays(tmp_path, how):
    with a_file(tmp_path) as (path, fast):
        found, kept = drill(path, DrillOptions(how=how))
        reached = len(fast.seen)
        config = load_canary(path)
    assert found.problem() is None
    assert found.candidate_before > 0 and found.candidate_after == 0
    assert found.to_last_byte_s < 2.0
    assert found.to_last_byte_s <= found.to_share_zero_s < 2.0
    assert (reached > 0) is (how == "trigger")
    assert msgspec.json.decode(kept.read_bytes(), type=Drilled) == found
    store = SqliteStore(config.folder / "state.db")
    assert [e.action for e in store.since(0)] == ["drill"]
    assert store.read(config.name).phase == "ready"


@pytest.mark.slow
def test_a_drill_without_a_baseline_is_refused(tmp_path):
    with a_file(tmp_path, trusted=json_reply({}, status=500)) as (path, _):
        with pytest.raises(ConfigError, match="does not answer"):
            drill(path, DrillOptions(how="trigger"))


SEEN = Drilled(
    canary="c",
    how="fault",
    at_s=1_790_000_000.0,
    candidate_digest="d",
    reason="signal error failed",
    requests_before=40,
    candidate_before=18,
    requests_after=40,
    candidate_after=0,
    failed_after=0,
    to_last_byte_s=0.25,
    to_share_zero_s=1.25,
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"candidate_before": 0}, "got no request"),
        ({"to_last_byte_s": None}, "did not go back in time"),
        ({"candidate_after": 1}, "still got 1 requests"),
        ({"failed_after": 2}, "2 requests failed"),
        ({"to_last_byte_s": 2.5}, "2.50 s later"),
        ({"to_share_zero_s": None}, "never seen at 0"),
        ({"to_share_zero_s": 2.5}, "share was 0 only 2.50 s later"),
    ],
)
def test_a_drill_that_shows_no_way_back_says_so(change, words):
    found = msgspec.structs.replace(SEEN, **change).in_words()
    assert found.startswith("failed: ") and words in found


def a_proof(drilled):
    return Proof(
        baseline=RouteSpec(endpoint="http://a"),
        candidate=RouteSpec(endpoint="http://b"),
        rollback=RollbackSpec(drilled=drilled),
    )


def test_the_evidence_goes_with_the_run_and_its_words_into_the_proof(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "evidence.json").write_bytes(msgspec.json.encode(SEEN))
    proof = a_proof("evidence.json")
    keep_drill(proof, tmp_path, run)
    (tmp_path / "evidence.json").unlink()
    assert with_drill(proof, run).rollback.drilled == SEEN.in_words()
    assert "0 of 40 requests" in SEEN.in_words()
    assert "an observed share of 0 1.25 s after the trigger" in SEEN.in_words()


def test_a_text_instead_of_evidence_stays_as_it_is(tmp_path):
    proof = a_proof("2026-01-01 by hand")
    keep_drill(proof, tmp_path, tmp_path)
    assert with_drill(proof, tmp_path) == proof


def test_evidence_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        keep_drill(a_proof("nowhere.json"), tmp_path, tmp_path)
