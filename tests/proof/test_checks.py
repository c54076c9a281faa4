import pytest
from proof_text import COMPLETE, SMALL, edited, written

from routeproof.errors import ConfigError
from routeproof.proof.file import load_proof


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("tolerance: 0.01", "tolerance: .nan", "quality[0].tolerance", "finite"),
        ("tolerance: 0.01", "tolerance: .inf", "quality[0].tolerance", "finite"),
        ("tolerance: 0.01", "tolerance: -0.01", "quality[0].tolerance", "at least 0"),
        ("tolerance: 0.01", "tolerance: 2", "quality[0].tolerance", "at most 1"),
        ("alpha: 0.05", "alpha: 0", "policy.alpha", "above 0 and below 0.5"),
        ("alpha: 0.05", "alpha: 0.5", "policy.alpha", "above 0 and below 0.5"),
        ("power: 0.8", "power: 1", "policy.power", "below 1"),
        ("trials: 1", "trials: 0", "workload.trials", "at least 1"),
        ("{p95: 0.5}", "{p95: 0}", "performance.slo.time_to_first_token_s.p95", ""),
        ("{p95: 0.5}", "{q95: 1}", "performance.slo.time_to_first_token_s", "p95"),
        ("[1, 4, 16, 64]", "[0]", "workload.load.sweep.concurrency[0]", "at least 1"),
        (
            "[1, 4, 16, 64]",
            "[1], request_rate: [2]",
            "workload.load.sweep",
            "exactly one of",
        ),
        ("{concurrency: 1}", "{duration_s: 3}", "workload.load.latency", "none of"),
        ("[kv_cache, spec", "[kvcache, spec", "candidate.changes[0]", "`kv_cache`"),
        ("like: baseline", "like: other", "candidate.like", "no route `other`"),
        ("to: baseline", "to: spare", "rollback.to", "no route `spare`"),
        ("online_sample: 5%", "online_sample: some", "canary.online_sample", "5%"),
        ("online_sample: 5%", "online_sample: 500%", "canary.online_sample", "100 %"),
        (
            "draft_tokens: 7",
            "draft_tokens: 0",
            "candidate.speculation.draft_tokens",
            "",
        ),
        ("cases: [cases/*.jsonl]", "cases: []", "workload.cases", "empty"),
        (
            "- {metric: exact_match, tolerance: 0.01}",
            "- {metric: pass_at_k, k: 1, tolerance: 0.01}",
            "quality[2]",
            "asks the same as quality[0]",
        ),
    ],
)
def test_a_value_out_of_its_limits_is_refused(tmp_path, old, new, key, says):
    with pytest.raises(ConfigError) as caught:
        load_proof(edited(tmp_path, old, new))
    assert caught.value.key == key
    assert says in str(caught.value)


def test_one_trial_at_a_temperature_says_why_it_cannot_work(tmp_path):
    with pytest.raises(ConfigError, match="unlucky draw") as caught:
        load_proof(edited(tmp_path, "{temperature: 0}", "{temperature: 0.7}"))
    assert caught.value.key == "workload.trials"


def test_several_trials_at_a_temperature_are_fine(tmp_path):
    text = COMPLETE.replace("{temperature: 0}", "{temperature: 0.7}")
    proof = load_proof(written(tmp_path, text.replace("trials: 1", "trials: 4")))
    assert proof.workload.trials == 4


def test_perplexity_may_not_be_the_only_quality_metric(tmp_path):
    alone = SMALL + "quality: [{metric: perplexity, tolerance: 0.01}]\n"
    with pytest.raises(ConfigError, match="perplexity alone"):
        load_proof(written(tmp_path, alone))
    beside = (
        SMALL + "quality: [{metric: perplexity, tolerance: 0.01}, "
        "{metric: exact_match, tolerance: 0.02}]\n"
    )
    assert len(load_proof(written(tmp_path, beside)).quality) == 2


def test_a_route_without_endpoint_and_launch_is_refused(tmp_path):
    text = "baseline: {model: m}\ncandidate: {like: baseline}\n"
    with pytest.raises(ConfigError, match="neither `endpoint` nor `launch`") as caught:
        load_proof(written(tmp_path, text))
    assert caught.value.key == "baseline"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("localhost:8000", "is not a URL"),
        ("ftp://host/v1", "is not a URL"),
        ("http://", "is not a URL"),
        ("http://host:99999/v1", "port"),
        ("http://host:abc/v1", "port"),
        ("http://user:secret@host/v1", "user name or password"),
        ("http://host/v1?x=1", "base URL"),
        ("http://ho st/v1", "is not a URL"),
    ],
)
def test_a_bad_endpoint_is_refused(tmp_path, url, says):
    text = SMALL.replace("http://127.0.0.1:8001/v1", url)
    with pytest.raises(ConfigError, match=says) as caught:
        load_proof(written(tmp_path, text))
    assert caught.value.key == "candidate.endpoint"
    assert "secret" not in says or "secret" not in str(caught.value)


def test_a_variable_that_is_not_set_is_named_only_when_asked(tmp_path):
    path = written(tmp_path, COMPLETE)
    with pytest.raises(ConfigError, match="JUDGE_KEY is not set") as caught:
        load_proof(path, environ={})
    assert caught.value.key == "quality[3].judge.api_key_env"
    with pytest.raises(ConfigError, match="JUDGE_KEY is empty"):
        load_proof(path, environ={"JUDGE_KEY": ""})
    assert load_proof(path, environ={"JUDGE_KEY": "k"}) == load_proof(path)
