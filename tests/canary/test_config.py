"""The canary file: the short form as people write it, and what is refused."""

import pytest
from proof_text import CANARY

from routeproof.canary.config import in_words, load_canary
from routeproof.canary.config_checks import check_pairing
from routeproof.errors import ConfigError
from routeproof.jobs.canary import check, serve
from routeproof.jobs.drill import drill
from routeproof.proof.file import load_proof
from routeproof.routes.inventory import take_inventory
from routeproof.routes.lock import FILE_NAME, lock_of, write_lock
from routeproof.routes.resolve import resolve

LONG_FORM = """\
canary:
  candidate: fast
  baseline: trusted
  routes: {fast: "http://127.0.0.1:1", trusted: "http://127.0.0.1:2"}
"""


def a_file(folder, text):
    file = folder / "canary.yaml"
    file.write_text(text)
    return file


def routes_of(folder):
    routes = folder / "routes"
    routes.mkdir()
    (routes / "bf16.yaml").write_text("endpoint: http://127.0.0.1:9801/v1\n")
    (routes / "fp8-kv-dflash.yaml").write_text("endpoint: http://127.0.0.1:9802/v1\n")


def test_the_short_form_finds_its_routes_beside_the_file(tmp_path):
    routes_of(tmp_path)
    config = load_canary(a_file(tmp_path, CANARY))
    assert config.upstreams == {
        "baseline": "http://127.0.0.1:9801",
        "canary": "http://127.0.0.1:9802",
    }
    said = " ".join(in_words(config))
    assert "fp8-kv + dflash (http://127.0.0.1:9802) is tried against bf16" in said
    assert "5.00% of the answers" in said and "some 400,000 requests" in said


def test_the_short_form_inside_a_proof_takes_the_routes_of_the_proof(tmp_path):
    proof = (
        "baseline: {endpoint: 'http://127.0.0.1:9801/v1'}\n"
        "candidate: {endpoint: 'http://127.0.0.1:9802/v1'}\n"
        "performance: {slo: {time_to_first_token_s: {p95: 0.5}}}\n"
    )
    config = load_canary(a_file(tmp_path, proof + CANARY))
    assert config.upstreams["canary"] == "http://127.0.0.1:9802"
    assert config.policies["slow_first_token"].is_required


def test_a_name_that_leads_nowhere_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_canary(a_file(tmp_path, CANARY))
    assert "`bf16` names no route" in caught.value.message
    assert "routes/bf16.yaml" in caught.value.hint


def test_a_split_is_one_step(tmp_path):
    config = load_canary(a_file(tmp_path, LONG_FORM + "  split: {fast: 0.05}\n"))
    assert config.steps.weights_ppm == (50_000,)


@pytest.mark.parametrize(
    "line",
    [
        "alpha: 2",
        "alpha: 0",
        "lease_s: 0",
        "lease_s: .nan",
        "steps: [0]",
        "steps: [2]",
        "steps: [1.0e-9]",
        "steps: [0.5, 0.5]",
        "online_sample: 0",
        "online_sample: 0.0000001",
        "online_sample: 500%",
        "minimum_scored: 0",
        "per_caller: 0",
        "deadlines: {step: -5}",
        "deadlines: {lunch: 5}",
        "listen: nonsense",
        "listen: 127.0.0.1:99999",
        "admin: 127.0.0.1:8080",
        "store: redis",
        "split: {fast: 3}",
        "split: {trusted: 0.5}",
        "split: {fast: 0.1}\n  steps: [0.1]",
        "traffic: {sticky_by: moon}",
        "traffic: {sticky_by: 'header:'}",
        "traffic: {drain: slowly}",
        "traffic: {body_bytes_max: -1}",
        "traffic: {idle_deadline_s: 0}",
        "traffic: {api_keys_env: {other: X}}",
        "traffic: {fallback: [telepathy]}",
        "traffic: {tls_certificate: a.pem}",
        "privacy: {retention_s: -1}",
        "graders: {asks_per_minute: 0}",
        "graders: {judge: {endpoint: ftp://x, model: m}}",
        "unknown: 1",
    ],
)
def test_rubbish_is_refused_and_its_place_named(tmp_path, line):
    with pytest.raises(ConfigError) as caught:
        load_canary(a_file(tmp_path, f"{LONG_FORM}  {line}\n"))
    assert "canary." in str(caught.value)


PAIR = """\
baseline: {endpoint: "http://127.0.0.1:1/v1", model: org/target, revision: "a1"}
candidate:
  like: baseline
  endpoint: http://127.0.0.1:2/v1
  speculation:
    {method: eagle3, draft: {model: org/draft, revision: "b1"}, draft_tokens: 4}
  changes: [speculation]
canary: {candidate: fast, baseline: trusted}
"""


def locked(folder):
    """A proof whose pair is locked beside it."""
    file = a_file(folder, PAIR)
    _, candidate = resolve(load_proof(file))
    write_lock(folder / FILE_NAME, lock_of(take_inventory(candidate, None)))
    return file


def test_a_pair_that_is_not_locked_is_said_and_the_locked_one_is_not(tmp_path):
    file = a_file(tmp_path, PAIR)
    assert any("not locked as a pair" in line for line in check(file))
    assert check_pairing(locked(tmp_path)) == []


@pytest.mark.parametrize(
    "edits",
    [{"a1": "a2"}, {"b1": "b2"}, {"a1": "a2", "b1": "b2"}],
    ids=["target alone", "draft alone", "both"],
)
def test_an_unpaired_target_or_draft_does_not_start_nor_drill(tmp_path, edits):
    file = locked(tmp_path)
    text = PAIR
    for old, new in edits.items():
        text = text.replace(old, new)
    file.write_text(text)
    for act in (check, lambda f: serve(f, say=print), drill):
        with pytest.raises(ConfigError, match="locked"):
            act(file)
    load_canary(file)  # a rollback by command reads the file all the same


def test_another_draft_length_than_qualified_is_said(tmp_path):
    file = locked(tmp_path)
    file.write_text(PAIR.replace("draft_tokens: 4", "draft_tokens: 6"))
    assert any("the pair was qualified with 4" in line for line in check(file))
