"""The proof on vLLM for CPU: its files say what they should, before it is run."""

import json
import runpy
from pathlib import Path

import pytest

from routeproof.jobs.diff import diff
from routeproof.proof.file import load_proof
from routeproof.workloads.cases import load_cases

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "22-vllm-cpu"


def cases():
    return load_cases(load_proof(FOLDER / "ngram.yaml").workload, FOLDER)


def test_the_cases_are_those_that_the_script_writes():
    made = runpy.run_path(str(FOLDER / "make_cases.py"))
    wanted = [made["question"](i, *q) for i, q in enumerate(made["QUESTIONS"])]
    for language, texts in (("en", made["ENGLISH"]), ("zh", made["CHINESE"])):
        wanted += [made["text"](i, language, words) for i, words in enumerate(texts)]
    lines = (FOLDER / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == wanted


def test_every_question_brings_what_tells_a_near_tie():
    asked = [case for case in cases() if case.class_ == "question"]
    assert asked[0].messages[0]["content"] == "What is the capital of France?"
    assert all(case.parameters["logprobs"] for case in asked)
    assert all(case.parameters["top_logprobs"] >= 5 for case in asked)


def test_both_languages_have_as_many_texts_and_a_question_of_their_own():
    counts = {}
    for case in cases():
        language = case.tags.get("language")
        counts[language] = counts.get(language, 0) + 1
        if language is not None:
            assert case.prompt.endswith(case.reference)
            assert case.parameters["echo"] is True
    assert counts["en"] == counts["zh"] == 16
    for name in ("ngram", "fp8-kv"):
        asked = [gate.slice for gate in load_proof(FOLDER / f"{name}.yaml").quality]
        assert {"language": "en"} in asked and {"language": "zh"} in asked


@pytest.mark.parametrize(
    ("name", "change_class", "fields"),
    [
        ("ngram", "lossless", {"speculation"}),
        ("fp8-kv", "lossy", {"kv_cache"}),
    ],
)
def test_only_what_is_tested_differs(name, change_class, fields):
    found = diff(FOLDER / f"{name}.yaml", offline=True)
    assert found.change_class == change_class
    assert {change.field.partition(".")[0] for change in found.changes} == fields


def test_the_environment_is_pinned_and_its_target_is_there():
    lines = (ROOT / "requirements" / "vllm.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert (pins["vllm-cpu"], pins["torch"]) == ("0.32.0", "2.13.0")
    assert not {"torchvision", "torchaudio", "torchcodec"} & set(pins)
    makefile = (ROOT / "Makefile").read_text()
    assert "\nvllm-proof:" in makefile
    assert "/.vllm-proof/" in (ROOT / ".gitignore").read_text().splitlines()
