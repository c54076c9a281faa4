"""Builders and strategies for the tests of the scorers."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from routeproof.records.columns import Column, Records
from routeproof.scorers.score import ScoredAnswer
from routeproof.workloads.case import Case

DATA = Path(__file__).parents[2] / "shared" / "data"

PIECES = (
    "<think>", "</think>", "####", "\\boxed{", "}", "```json\n", "\n```", "{", "[",
    '"a"', ":", "1,000", "$29.00", "50%", "½", "−", "1e999999", "The answer is ",
    "(B)", "**C**", "I cannot", "I'm sorry, but", "\ud800", "\U0001f600", "\x00",
    "Question:", "******", "<<t>>", "[x]", "は", "漢", "٣", " ", "\n", "a", "7", ".",
)  # fmt: skip
any_text = st.one_of(
    st.text(alphabet=st.characters(), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
)


def a_case(reference=None, *, scorers=("exact_match",), **changes):
    given = {"id": "c1", "class_": "any", "prompt": "?", "reference": reference}
    return Case(scorers=scorers, **{**given, **changes})


def an_answer(text="", **changes):
    return ScoredAnswer(text=text, **changes)


def a_call(name, /, **arguments):
    return {"name": name, "arguments": json.dumps(arguments)}


def some_records(rows):
    """Records of (case_id, arm, text[, outcome]) rows."""
    n = len(rows)
    full = [(*row, "completed")[:4] for row in rows]
    texts = {
        "request_id": [f"r{i}" for i in range(n)],
        "arm": [row[1] for row in full],
        "phase": ["quality"] * n,
        "level": ["c1"] * n,
        "case_id": [row[0] for row in full],
        "outcome": [row[3] for row in full],
        "finish_reason": ["stop"] * n,
        "text": [row[2] for row in full],
    }
    columns = {}
    for name, values in texts.items():
        columns[name] = np.empty(n, dtype=object)
        columns[name][:] = values
    trial = Column(np.zeros(n), np.ones(n, dtype=bool))
    return Records(n, {"trial": trial}, columns)


def data_rows(relative):
    path = DATA / relative
    if not path.exists():
        pytest.skip(f"public data set {relative} is not beside the repository")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
