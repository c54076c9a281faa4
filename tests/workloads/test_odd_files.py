"""Files of another version: every importer gives a result or a sentence."""

import json
import random

import pytest
from workloads_data import data_file

from routeproof.errors import RouteproofError
from routeproof.workloads.cases import case_line, decode_case
from routeproof.workloads.importers.table import IMPORTERS
from routeproof.workloads.results.compare import refusals
from routeproof.workloads.results.table import RESULTS

FILES = {
    "vllm-bench": "client_results/vllm_bench_serve/vllm-ngram.json",
    "guidellm": "client_results/guidellm/vllm-ngram.json",
    "aiperf": "client_results/aiperf/profile_export_aiperf.json",
    "lm-eval": "client_results/lm_eval/baseline-q4_1/samples_xquad_en_mini.jsonl",
    "inference-perf": "inference_perf_vllm_sweep/reports.jsonl",
    "inspect": "inspect_logs/2025-05-12T20-28-13-04-00_popularity.json",
    "inferencex": "bench_results_vllm_random/results.jsonl",
    "gsm8k": "gsm8k/test.jsonl",
    "humaneval": "humaneval/HumanEval.jsonl",
    "mbpp": "mbpp_sanitized/sanitized-mbpp.jsonl",
    "ifeval": "ifeval/en_input_data.jsonl",
    "bfcl": "bfcl_v4/multiple.jsonl",
    "xstest": "xstest/prompts.jsonl",
    "jsonschemabench": "jsonschemabench/cases_a.jsonl",
    "mt-bench": "mt_bench/question.jsonl",
    "spec-bench": "spec_bench/question.jsonl",
    "nq-open": "nq_open/dev.jsonl",
    "xquad": "xquad_multilingual/qa.jsonl",
    "longfact": "longfact/prompts.jsonl",
    "lm-eval-cases": "client_results/lm_eval/baseline-q4_1/samples_xquad_en_mini.jsonl",
    "inspect-cases": "inspect_logs/2025-05-12T20-28-13-04-00_popularity.json",
}
ODD = [None, 3, -1, 1.5, "x", "", [], {}, [1], {"a": 1}, True, ["a"], [[]], [{}]]
DEPTH = 6


def places(value, found, place=()):
    """Every place in a document down to ``DEPTH``, three items of each list."""
    found.append(place)
    if len(place) < DEPTH and isinstance(value, dict):
        for key in value:
            places(value[key], found, (*place, key))
    elif len(place) < DEPTH and isinstance(value, list):
        for index in range(min(3, len(value))):
            places(value[index], found, (*place, index))
    return found


def changed(value, place, new):
    if not place:
        return new
    copy = value.copy()
    if new is ODD and isinstance(copy, dict) and len(place) == 1:
        del copy[place[0]]
    else:
        copy[place[0]] = changed(
            value[place[0]], place[1:], None if new is ODD else new
        )
    return copy


def first_row(path):
    text = path.read_text()
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text.split("\n", 1)[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_an_odd_value_anywhere_is_a_sentence_not_a_traceback(tmp_path, kind):
    row = first_row(data_file(FILES[kind]))
    rng = random.Random(20261130)
    everywhere = places(row, [])
    path = tmp_path / "samples_odd.json"
    refused = 0
    for _ in range(60):
        place = rng.choice(everywhere)
        path.write_text(json.dumps(changed(row, place, rng.choice([*ODD, ODD, ODD]))))
        try:
            check(kind, path)
        except RouteproofError as error:
            refused += 1
            assert str(path) in str(error)
    assert refused < 60


def check(kind, path):
    if kind in RESULTS:
        results = RESULTS[kind].of(path)
        found = {refusal.field for refusal in refusals(results, results)}
        assert found <= {"fault", "load"}
        return
    for case in IMPORTERS[kind].of(path).cases:
        assert decode_case(case_line(case)) == case
