"""What users say, joined by response id; and what was edited between two attempts."""

import json

import pytest
from canary_cases import SHORT
from tasting_cases import a_copy, a_taster, standing, taste_all

from routeproof.canary.config import load_canary
from routeproof.canary.deciding.route_changes import changes, draft_of, note_routes
from routeproof.canary.gateway import Gateway
from routeproof.canary.tasting.feedback import take_feedback
from routeproof.errors import ConfigError


@pytest.fixture
def taster(tmp_path):
    found = a_taster(tmp_path, "error", "complaint")
    taste_all(
        found,
        a_copy(request_id="one", arm="canary"),
        a_copy(request_id="two", arm="control"),
        a_copy(request_id="three", arm="baseline"),
    )
    return found


def down(number, **more):
    return {"response_id": f"chatcmpl-{number}", "thumb": "down", **more}


def test_a_thumb_down_is_a_complaint_about_the_arm_that_answered(taster):
    assert take_feedback(taster, down("one")) == {"joined": True, "arm": "canary"}
    take_feedback(taster, {"response_id": "chatcmpl-two", "thumb": "up"})
    seen = standing(taster, "complaint")
    assert (seen.canary_share, seen.control_share) == (1.0, 0.0)


def test_the_reason_is_kept_redacted_and_only_with_a_complaint(taster):
    take_feedback(taster, down("one", reason="off-topic, ask jane@example.org"))
    kept = taster.spool.find("one")
    assert kept.request["feedback_reason"] == "off-topic, ask [email]"
    assert kept.signals["complaint"] is True and kept.signals["error"] is False
    take_feedback(taster, {"response_id": "chatcmpl-one", "thumb": "up"})
    kept = taster.spool.find("one")
    assert "feedback_reason" not in kept.request and not kept.signals["complaint"]


def test_a_second_word_on_one_answer_is_no_evidence_again(taster):
    for _ in range(5):
        take_feedback(taster, down("one"))
    assert standing(taster, "complaint").canary_seen == 1


def test_answers_nobody_sampled_and_those_of_the_direct_baseline_are_no_evidence(
    taster,
):
    assert take_feedback(taster, down("nobody"))["joined"] is False
    assert take_feedback(taster, down("three"))["joined"] is True
    seen = standing(taster, "complaint")
    assert (seen.canary_seen, seen.control_seen) == (0, 0)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"response_id": "x"},
        {"response_id": 3, "thumb": "up"},
        {"response_id": "x", "thumb": "sideways"},
    ],
)
def test_a_wrong_word_is_refused(taster, body):
    with pytest.raises(ConfigError):
        take_feedback(taster, body)


DRAFT = {
    "method": "eagle3",
    "draft": {"model": "org/draft", "revision": "0123456789abcdef"},
}
BEFORE = {
    "candidate": {
        "kv_cache": "fp8",
        "speculation": DRAFT,
        "auth": {"api_key_env": "A"},
    },
    "baseline": {"launch": {"env": {"TOKEN": "secret"}}},
}


def test_edits_are_named_with_both_values_and_secrets_never():
    after = json.loads(json.dumps(BEFORE))
    after["candidate"]["speculation"]["draft"]["revision"] = "fedcba9876543210"
    after["candidate"]["auth"]["api_key_env"] = "B"
    after["baseline"]["launch"]["env"]["TOKEN"] = "other"
    after["candidate"]["kv_cache"] = None
    assert changes(BEFORE, after) == {
        "candidate.kv_cache": "fp8 -> none",
        "candidate.speculation.draft.revision": "0123456789abcdef -> fedcba9876543210",
    }


def test_the_first_attempt_has_no_past_and_the_next_one_has(tmp_path):
    assert note_routes(tmp_path, BEFORE) == {}
    assert "secret" not in (tmp_path / "routes.json").read_text()
    assert note_routes(tmp_path, {**BEFORE, "candidate": {}})


def test_a_draft_has_a_name_with_its_revision():
    assert draft_of(BEFORE) == "eagle3 org/draft@0123456789ab"
    assert draft_of({"candidate": {"speculation": {"method": "ngram"}}}) == "ngram"
    assert draft_of({"candidate": {}}) is None


def a_gateway_on(folder, fast):
    file = folder / "canary.yaml"
    trusted = "http://127.0.0.1:2"
    file.write_text(SHORT.format(sample="5%", more="", fast=fast, trusted=trusted))
    return Gateway(load_canary(file), clock=lambda: 0.0)


def test_another_route_is_another_attempt_whose_edit_is_in_the_audit(tmp_path):
    a_gateway_on(tmp_path, "http://127.0.0.1:1")
    again = a_gateway_on(tmp_path, "http://127.0.0.1:3")
    entry = again.store.since(0)[-1]
    assert entry.action == "new_attempt"
    assert entry.numbers["url"] == "http://127.0.0.1:1 -> http://127.0.0.1:3"


def test_a_candidate_that_was_taken_back_tries_again_only_when_told_and_from_nothing(
    tmp_path,
):
    gateway = a_gateway_on(tmp_path, "http://127.0.0.1:1")
    gateway.command("start", actor="ops")
    salt = gateway.router.salt
    for _ in range(300):
        gateway.taster.observe("error", is_canary=True, bad=True, stratum="s")
        gateway.taster.observe("error", is_canary=False, bad=False, stratum="s")
    assert gateway.tick().phase == "rolling_back"
    assert gateway.tick().phase == "rolled_back"
    with pytest.raises(ConfigError, match="cannot start"):
        gateway.command("start", actor="ops")
    gateway.command("retry", actor="ops", reason="the disk was full")
    gateway.command("start", actor="ops")
    assert gateway.tick().phase in ("stepping", "held")
    assert gateway.router.salt != salt
    assert standing(gateway.taster, "error").canary_seen == 0
    assert gateway.store.since(0)[-2].reason == "the disk was full"
