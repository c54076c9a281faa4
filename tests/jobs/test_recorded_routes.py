"""Real routes, recorded: each gets the reading that is true of it."""

import json
from pathlib import Path

import msgspec
import pytest
from builders import a_proof, a_route_diff, a_speculative_diff, healthy
from record_cases import a_manifest, a_record

from routeproof.gates.result import Status
from routeproof.jobs.judge import judge
from routeproof.proof.policy import QualityGateSpec
from routeproof.proof.workload import SamplingSpec, WorkloadSpec
from routeproof.records.store import RunFolder
from routeproof.workloads.case import Case
from routeproof.workloads.cases import write_cases

DATA = Path(__file__).parents[3] / "shared" / "data"

pytestmark = pytest.mark.slow


def recorded(folder, name="paired_outputs.jsonl"):
    path = DATA / folder / name
    if not path.exists():
        pytest.skip(f"the recordings of {folder} are not beside the repository")
    return [json.loads(line) for line in path.read_text().splitlines()]


def a_recorded_run(path, arms, *, route_diff, temperature=0.0, trials=1):
    """A run folder of recorded answers: arm to its rows, each with id and trial."""
    folder = RunFolder.create(path)
    ids = sorted({row["id"] for rows in arms.values() for row in rows})
    cases = [
        Case(
            id=f"case-{i}",
            class_="chat",
            messages=({"role": "user", "content": f"Question {i}"},),
            scorers=("degeneration",),
        )
        for i in ids
    ]
    write_cases(cases, folder.cases_path)
    folder.append(
        [
            a_record(
                request_id=f"{arm}-{row['id']}-{row['trial']}",
                arm=arm,
                case_id=f"case-{row['id']}",
                trial=row["trial"],
                text=row["text"],
                outcome="completed",
                finish_reason="stop",
            )
            for arm, rows in arms.items()
            for row in rows
        ]
    )
    folder.flush()
    proof = a_proof(
        quality=(QualityGateSpec(metric="degeneration", tolerance=0.05),),
        workload=WorkloadSpec(
            sampling=SamplingSpec(temperature=temperature), trials=trials
        ),
    )
    folder.write_manifest(
        a_manifest(
            proof=msgspec.to_builtins(proof),
            fingerprint="f" * 64,
            route_diff=msgspec.to_builtins(route_diff),
            health=healthy(),
            finished=True,
        )
    )
    return judge(path)


def greedy(path, folder, baseline, candidate, route_diff, control=None):
    """The judgement of a recorded pair, the baseline's second run as its control."""
    rows = recorded(folder)

    def of(route, trial=0):
        found = [r for r in rows if r["route"] == route and r["trial"] == trial]
        return [{**row, "trial": 0} for row in found]

    arms = {
        "baseline": of(baseline),
        "candidate": of(candidate),
        "control": of(baseline, 1) if control is None else of(control),
    }
    assert {len(each) for each in arms.values()} == {24}
    return a_recorded_run(path, arms, route_diff=route_diff)


def equality_of(found):
    checks = found.gate("correctness").checks
    return next(check for check in checks if check.name == "greedy_equality")


@pytest.mark.parametrize("route", ["spec-ngram-simple", "spec-draft-q2_k"])
def test_llama_cpp_speculation_is_equal(tmp_path, route):
    found = greedy(
        tmp_path / "r",
        "engine_captures_llamacpp",
        "baseline-q4_1",
        route,
        a_speculative_diff(),
    )
    check = equality_of(found)
    assert check.status is Status.PASSED
    assert check.reason.startswith("24 of 24 texts equal")


def test_llama_cpp_speculation_draws_the_same_sampled_texts(tmp_path):
    rows = recorded("engine_captures_llamacpp", "repeated_trials.jsonl")
    routes = {
        arm: [
            {**row, "trial": row["seed"] - 1000} for row in rows if row["route"] == name
        ]
        for arm, name in (
            ("baseline", "baseline-q4_1"),
            ("candidate", "spec-draft-q2_k"),
            ("control", "baseline-q4_1"),
        )
    }
    found = a_recorded_run(
        tmp_path / "r",
        routes,
        route_diff=a_speculative_diff(),
        temperature=0.8,
        trials=8,
    )
    sampled = found.evidence.quality.sampled
    assert {row["test"] for row in sampled} == {"distribution", "first_token", "length"}
    assert all(row["p_value"] > 0.5 for row in sampled)
    assert all(
        check.status is Status.PASSED
        for check in found.gate("correctness").checks
        if check.name.startswith("sampled[")
    )


def test_vllm_drafting_for_itself_is_equal(tmp_path):
    found = greedy(
        tmp_path / "r",
        "engine_captures_vllm",
        "vllm-bf16",
        "vllm-draft-self",
        a_speculative_diff(),
    )
    assert equality_of(found).status is Status.PASSED


def test_vllm_n_gram_differs_and_is_neither_cleared_nor_accused(tmp_path):
    """17 of 24 texts equal, without log probabilities: nobody can say why they part."""
    found = greedy(
        tmp_path / "r",
        "engine_captures_vllm",
        "vllm-bf16",
        "vllm-ngram",
        a_speculative_diff(),
    )
    check = equality_of(found)
    assert check.status is Status.INCONCLUSIVE
    assert check.reason.startswith("divergences that cannot be told from near ties: 17")
    assert found.gate("correctness").status is not Status.FAILED


def test_vllm_n_gram_differs_less_than_its_own_precision_does(tmp_path):
    """The same weights in float32 part from bf16 in 13 of 24 texts, n-gram in 7."""
    found = greedy(
        tmp_path / "r",
        "engine_captures_vllm",
        "vllm-bf16",
        "vllm-ngram",
        a_speculative_diff(),
        control="vllm-fp32",
    )
    seen, floor = found.evidence.quality.equality
    assert (seen.equal, floor.equal) == (17, 11)
    assert seen.candidate_only > seen.control_only
    check = equality_of(found)
    assert check.status is Status.PASSED
    assert check.reason.startswith("no more than the noise: 17 of 24 texts equal")


def test_vllm_fp8_kv_is_not_equal_and_is_judged_by_quality(tmp_path):
    found = greedy(
        tmp_path / "r",
        "engine_captures_vllm",
        "vllm-bf16",
        "vllm-fp8kv",
        a_route_diff(),
    )
    check = equality_of(found)
    assert check.status is Status.PASSED and not check.required
    assert check.reason.startswith("0 of 24 texts equal")
    question = found.gate("correctness").checks[0]
    assert question.name == "degeneration" and question.required
    assert question.status is Status.INCONCLUSIVE, "24 pairs cannot adopt"


def likelihood_run(path, candidate):
    """A run of the recorded texts: each token's own log probability, by language."""
    rows = recorded("engine_captures_vllm", "prompt_logprobs.jsonl")
    folder = RunFolder.create(path)
    # The same paragraph has one id in every language.
    rows = [{**row, "id": f"{row['lang']}-{row['id']}"} for row in rows]
    texts = {row["id"]: row for row in rows if row["route"] == "vllm-bf16"}
    cases = [
        Case(
            id=name,
            class_="text",
            tags={"language": row["lang"]},
            prompt="t" * row["n_tokens"],
            reference="t" * row["n_tokens"],
            scorers=("reference_likelihood",),
        )
        for name, row in texts.items()
    ]
    write_cases(cases, folder.cases_path)
    folder.append(
        [
            a_record(
                request_id=f"{arm}-{row['id']}",
                arm=arm,
                case_id=row["id"],
                trial=0,
                text="t" * row["n_tokens"],
                logprobs=json.dumps([["t", value, []] for value in row["logprobs"]]),
                outcome="completed",
                finish_reason="stop",
            )
            for row in rows
            for arm, route in (("baseline", "vllm-bf16"), ("candidate", candidate))
            if row["route"] == route
        ]
    )
    folder.flush()
    proof = a_proof(
        quality=tuple(
            QualityGateSpec(
                metric="reference_likelihood",
                slice={"language": language},
                tolerance=0.002,
            )
            for language in ("en", "es", "zh")
        )
    )
    folder.write_manifest(
        a_manifest(
            proof=msgspec.to_builtins(proof),
            fingerprint="f" * 64,
            route_diff=msgspec.to_builtins(a_route_diff()),
            health=healthy(),
            finished=True,
        )
    )
    return judge(path)


def relative_loss(judgement, language):
    """Mean loss of likelihood, as a share of the baseline's own."""
    row = next(
        row
        for row in judgement.evidence.quality.rows
        if row.slice.get("language") == language and row.is_required
    )
    return 1 - row.means.candidate / row.means.baseline


def test_an_fp8_kv_cache_hurts_chinese_more_than_english_and_the_slices_say_so(
    tmp_path,
):
    """Perplexity rose by 3.1 % in English, 4.8 % in Spanish and 11.1 % in Chinese."""
    found = likelihood_run(tmp_path / "fp8", "vllm-fp8kv")
    english, spanish, chinese = (
        relative_loss(found, language) for language in ("en", "es", "zh")
    )
    assert english == pytest.approx(0.03, abs=0.015)
    assert spanish == pytest.approx(0.05, abs=0.02)
    assert chinese == pytest.approx(0.10, abs=0.03)
    control = likelihood_run(tmp_path / "fp32", "vllm-fp32")
    assert all(abs(relative_loss(control, each)) < 0.01 for each in ("en", "es", "zh"))
