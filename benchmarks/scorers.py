"""Speed of scorers and statistics, and how far scorers agree with people.

Reads the public data sets beside the repository; run it as

    python benchmarks/scorers.py [--data ../shared/data]
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from routeproof.records.columns import Column, Records
from routeproof.scorers.code import CodeScorer
from routeproof.scorers.grounded import grounded
from routeproof.scorers.judge.agreement import calibrate
from routeproof.scorers.label_files import (
    read_begin,
    read_factscore,
    read_llmbar_verdicts,
    read_refusal_labels,
)
from routeproof.scorers.refusal import refusal_phrase
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.scored import score_records
from routeproof.stats.clusters import clustered
from routeproof.stats.exact_paired import exact_p_value
from routeproof.stats.mean_bounds import bca_bound
from routeproof.stats.two_sample import mmd_test
from routeproof.workloads.case import Case

ANSWERS = 10_000
SIX = (
    "numeric",
    "exact_match",
    "contains",
    "json_schema_fenced",
    "degeneration",
    "instruction",
)


def rows_of(path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def speed(data):
    rows = rows_of(data / "gsm8k/test.jsonl")
    options = {
        "json_schema_fenced": {"schema": {"type": "object"}},
        "instruction": {
            "constraints": [{"id": "no_comma"}, {"id": "number_words", "num_words": 10}]
        },
    }
    cases = [
        Case(
            id=row["id"],
            class_="math",
            prompt=row["question"],
            reference=row["final"],
            scorers=SIX,
            options=options,
        )
        for row in rows
    ]
    picked = [rows[i % len(rows)] for i in range(ANSWERS)]
    texts = {
        "request_id": [f"r{i}" for i in range(ANSWERS)],
        "arm": ["baseline"] * ANSWERS,
        "phase": ["quality"] * ANSWERS,
        "level": ["c1"] * ANSWERS,
        "case_id": [row["id"] for row in picked],
        "outcome": ["completed"] * ANSWERS,
        "finish_reason": ["stop"] * ANSWERS,
        "text": [f"{row['answer']}\n({i})" for i, row in enumerate(picked)],
    }
    trial = Column(np.zeros(ANSWERS), np.ones(ANSWERS, dtype=bool))
    records = Records(
        ANSWERS, {"trial": trial}, {k: objects(v) for k, v in texts.items()}
    )
    began, began_cpu = time.perf_counter(), time.process_time()
    scores = score_records(cases, records)
    took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    print(f"{ANSWERS} answers x {len(SIX)} scorers: {took:.1f} s ({cpu:.1f} s CPU)")
    assert scores.n == ANSWERS * len(SIX)


def programs(data):
    rows = rows_of(data / "humaneval/HumanEval.jsonl")
    asked = [
        (
            Case(id=row["task_id"], class_="code", prompt="?", reference=row),
            ScoredAnswer(text=row["canonical_solution"]),
        )
        for row in rows
    ]
    with CodeScorer(workers=2) as scorer:
        scorer(asked[:1])
        began = time.perf_counter()
        scores = scorer(asked)
        took = time.perf_counter() - began
        right = sum(score.value == 1 for score in scores)
        print(
            f"{len(asked)} HumanEval programs and as many reference solutions, tier "
            f"{scorer.tested.tier}: {took:.1f} s, {right} pass"
        )


def timed(what, bar_s, call):
    began = time.perf_counter()
    call()
    took = time.perf_counter() - began
    print(f"{what}: {took:.2f} s (bar {bar_s:g} s)")


def statistics():
    rng = np.random.default_rng(1)

    def exact(n):
        exact_p_value(n // 50, n // 60, n, 0.02)

    timed("exact paired test, n 1,000", 0.3, lambda: exact(1000))
    timed("exact paired test, n 3,000", 3, lambda: exact(3000))
    values = rng.normal(0, 0.2, 10_000).clip(-1, 1)
    sample = clustered(values, np.arange(10_000))
    timed(
        "BCa, 10,000 resamples x 10,000 cases",
        3,
        lambda: bca_bound(
            sample, tolerance=0.02, alpha=0.05, resamples=10_000, rng=rng
        ),
    )
    arms = [
        [
            ["".join(map(chr, row)) for row in rng.integers(97, 123, (10, 256))]
            for _ in range(500)
        ]
        for _ in range(2)
    ]
    timed("MMD, 500 prompts x 10 x 10 answers", 10, lambda: mmd_test(*arms, seed=1))


def agreement(data):
    people, ours = {}, {}
    for row in rows_of(data / "paired_xstest_refusals/completions_sample.jsonl"):
        key = f"{row['route']}/{row['id']}"
        people[key] = not row["label"].startswith("1")
        ours[key] = refusal_phrase(row["completion"]) is not None
    print(calibrate("refusal (XSTest, 397 completions)", ours, people).line())
    for route in ("gpt4", "llama2orig", "mistralguard"):
        labels = read_refusal_labels(data / "paired_xstest_refusals/labels.csv", route)
        share = sum(labels.values()) / len(labels)
        print(f"  people: {route} refuses {share:.1%} of {len(labels)} prompts")
    people, ours = {}, {}
    for name in ("wow", "cmu", "tc"):
        for row in read_begin(data / f"begin_groundedness/{name}.jsonl"):
            case = Case(
                id=row["id"], class_="x", prompt="?", reference=row["knowledge"]
            )
            score = grounded(case, ScoredAnswer(text=row["response"]))
            people[row["id"]] = row["label"] == "Fully attributable"
            ours[row["id"]] = score.value == 1
    print(calibrate("grounded (BEGIN, 660 responses)", ours, people).line())
    found = {}
    for path in sorted((data / "factscore_human").glob("*.jsonl")):
        for name, (supported, checked) in read_factscore(path).items():
            if checked:
                found.setdefault(name.split(":")[0], []).append(supported / checked)
    for name, shares in found.items():
        print(
            f"people: {name} supports {np.mean(shares):.1%} of its facts "
            f"({len(shares)} answers, FActScore)"
        )
    verdicts = read_llmbar_verdicts(data / "llmbar/judge_verdicts.csv")
    human = {one.item_id: one.human for one in verdicts}
    for name in sorted({one.judge for one in verdicts}):
        own = [one for one in verdicts if one.judge == name]
        both = [one for one in own if one.both is not None]
        turned = sum(one.both == "tie" for one in both) / len(both)
        line = calibrate(name, {one.item_id: one.both for one in own}, human).line()
        print(f"{line}, order changes {turned:.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    beside = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=beside)
    given = parser.parse_args()
    statistics()
    speed(given.data)
    programs(given.data)
    agreement(given.data)
