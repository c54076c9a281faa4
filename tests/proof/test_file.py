import os
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proof_text import COMPLETE, SMALL, edited, written

from routeproof.errors import ConfigError
from routeproof.proof.file import load_proof, proof_of
from routeproof.proof.yaml_text import parse


def refused(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_proof(path)
    assert caught.value.exit_code == 2
    return caught.value


def test_the_complete_proof_loads_with_its_values(tmp_path):
    proof = load_proof(written(tmp_path, COMPLETE))
    assert proof.candidate.like == "baseline"
    assert proof.candidate.speculation.draft_tokens == 7
    assert proof.workload.load.sweep.concurrency == (1, 4, 16, 64)
    assert proof.performance.slo["request_latency_s"] == {"p99": 20.0}
    assert proof.quality[1].slice == {"class": "structured"}
    assert proof.canary.online_sample == "5%"
    assert proof.rollback.drilled is None


def test_a_single_value_may_stand_for_a_list_of_one(tmp_path):
    text = SMALL + "workload: {cases: golden, load: {latency: {concurrency: 4}}}\n"
    proof = load_proof(written(tmp_path, text))
    assert proof.workload.cases == ("golden",)
    assert proof.workload.load.latency.concurrency == (4,)


def test_a_launched_route_needs_no_endpoint(tmp_path):
    text = "baseline: {launch: {command: [serve, --port, '{port}']}}\n"
    proof = load_proof(written(tmp_path, text + "candidate: {like: baseline}\n"))
    assert proof.baseline.launch.command == ("serve", "--port", "{port}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("just words\n", "single value, not a mapping"),
        ("- a\n- b\n", "list, not a mapping"),
        ("baseline: {endpoint: 'http\n", "is not valid YAML"),
        ("a: 1\n---\nb: 2\n", "is not valid YAML"),
        ("baseline: !!python/object:os.system {}\n", "YAML tag"),
        ("baseline: !!set {a, b}\n", "YAML tag"),
        ("baseline: !!int many\n", "YAML tag"),
        ("? [a, b]\n: 1\n", "a key must be plain text"),
        ("a: &a [*a]\n", "is nested or repeated beyond reason"),
        ("a: " + "[" * 60 + "]" * 60, "is nested or repeated beyond reason"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path, text, says):
    error = refused(written(tmp_path, text))
    assert says in str(error)
    assert str(tmp_path / "proof.yaml") in str(error)


def test_an_exponential_alias_is_refused_quickly(tmp_path):
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "beyond reason" in str(refused(written(tmp_path, "\n".join(levels))))


def test_a_tab_is_named(tmp_path):
    error = refused(edited(tmp_path, "  weights: bf16", "\tweights: bf16"))
    assert "line 6" in str(error)
    assert "tab" in error.hint


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00a"), "not UTF-8"),
        (lambda path: path.write_bytes(b"#" * (1 << 21)), "at most"),
    ],
    ids=["missing", "directory", "binary", "huge"],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, make, says):
    path = tmp_path / "proof.yaml"
    make(path)
    error = refused(path)
    assert says in str(error)
    assert error.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads any file")
def test_an_unreadable_file_is_refused(tmp_path):
    path = written(tmp_path, SMALL)
    path.chmod(0)
    assert "cannot be read" in str(refused(path))


def test_a_byte_order_mark_is_harmless(tmp_path):
    path = tmp_path / "proof.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load_proof(path).baseline.model == "m"


@pytest.mark.parametrize(
    ("old", "new", "key", "hint"),
    [
        ("kv_cache: bf16", "kv_cach: bf16", "baseline.kv_cach", "`kv_cache`"),
        (
            "  draft_tokens: 7",
            "  draft_token: 7",
            "candidate.speculation.draft_token",
            "`draft_tokens`",
        ),
        ("policy:", "polcy:", "polcy", "`policy`"),
        (
            "  weights: bf16",
            "  draft_tokens: 3",
            "baseline.draft_tokens",
            "baseline.speculation",
        ),
        ("k: 1, samples", "zzz: 1, samples", "quality[2].zzz", "knows the keys"),
        (
            "online_sample: 5%",
            "sample: 5%",
            "canary.sample",
            "`online_sample`",
        ),
    ],
)
def test_an_unknown_key_names_its_place_and_the_nearest_key(
    tmp_path, old, new, key, hint
):
    error = refused(edited(tmp_path, old, new))
    assert error.key == key
    assert "unknown key (line " in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        (
            "version: 0.5.23",
            "version: 0.5",
            "baseline.engine.version",
            'put it in quotes: "0.5"',
        ),
        ("tolerance: 0.01", "tolerance: '0.01'", "quality[0].tolerance", "a number"),
        ("trials: 1", "trials: 1.5", "workload.trials", "a whole number"),
        ("trials: 1", "trials: [1]", "workload.trials", "a whole number"),
        ("maturity: release", "maturity: nightly", "baseline.engine.maturity", ""),
        (
            "{p99: 20}",
            "{p99: soon}",
            "performance.slo.request_latency_s.p99",
            "a number",
        ),
        ("memory: {", "memory: 3 #", "memory", "a mapping"),
        (
            "changes: [kv_cache, speculation]",
            "changes: {kv_cache: true}",
            "candidate.changes",
            "a list",
        ),
    ],
)
def test_a_wrong_type_says_what_was_expected_and_where(tmp_path, old, new, key, says):
    error = refused(edited(tmp_path, old, new))
    assert error.key == key
    assert says in str(error)
    assert "(line " in str(error)


def test_a_missing_required_key_is_named(tmp_path):
    error = refused(written(tmp_path, "baseline: {model: m}\n"))
    assert error.key == "candidate"
    assert "is required and missing" in str(error)
    assert error.hint


def test_a_key_given_twice_is_refused_with_both_lines(tmp_path):
    error = refused(edited(tmp_path, "  trials: 1\n", "  trials: 1\n  trials: 2\n"))
    assert error.key == "workload.trials"
    assert "lines 24 and 25" in str(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("2026-11-30", "2026-11-30"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("0.5.23", "0.5.23"),
        ("5e1", 50.0),
        ("true", True),
        ("~", None),
        ("-7", -7),
        ("'7'", "7"),
    ],
)
def test_scalars_follow_yaml_1_2(text, value):
    assert parse(f"a: {text}\n", Path("x")).values == {"a": value}


@pytest.mark.slow
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-9, 9)
        | st.floats(allow_nan=True)
        | st.text(string.ascii_letters, max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["model", "launch", "command", "p95", "x", "judge"]),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    ),
    st.sampled_from(
        ["baseline", "candidate", "workload", "quality", "performance", "canary", "x"]
    ),
)
@settings(max_examples=150, deadline=None)
def test_any_content_either_loads_or_gives_a_config_error(value, key):
    document = parse(SMALL, Path("x"))
    document.values[key] = value
    try:
        proof_of(document, Path("x"))
    except ConfigError as error:
        assert str(error)
