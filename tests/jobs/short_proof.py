"""The demo's routes with a handful of answers of a few words."""

import re

from routeproof.jobs.demo import demo_proof
from routeproof.workloads.case import Case
from routeproof.workloads.cases import write_cases

CASES = tuple(
    Case(
        id=f"s{i}",
        class_="chat",
        messages=({"role": "user", "content": f"Write {i} and {i} and {i}."},),
        parameters={"max_tokens": 12},
        reference=[str(i)],
        scorers=("contains",),
    )
    for i in range(8)
)


def short_proof(folder, variant):
    """The proof file; prompts and answers that the engine is done with in a blink."""
    path = folder / f"{variant}.yaml"
    write_cases(CASES, folder / "cases.jsonl")
    text = demo_proof(variant, path)
    text = text.replace("cases: [golden]", "cases: [cases.jsonl]")
    path.write_text(re.sub(r"classes_required: {.*}", "classes_required: {}", text))
    return path
