"""Features that a candidate accepts and does badly."""

import pytest

from routeproof.gates.facts import QualityRow
from routeproof.gates.fallback import broken_features
from routeproof.stats.interval import Interval, NonInferiority


def a_row(metric="contains", decision="harmed", **where):
    answer = NonInferiority(
        decision=decision,
        estimate=-0.2,
        interval=Interval(low=-0.3, high=-0.1, level=0.9, method="tango"),
        tolerance=0.02,
        p_value=None,
        harm_p_value=0.001,
        n=80,
        n_needed=None,
        method="tango",
    )
    return QualityRow(
        question=metric, metric=metric, slice=where, origin="declared", answer=answer
    )


@pytest.mark.parametrize(
    ("row", "features"),
    [
        (a_row("json_schema"), ("json_schema",)),
        (a_row("schema_valid"), ("json_schema",)),
        (a_row("exact_match", structured="yes"), ("json_schema",)),
        (a_row("headline", **{"class": "tool_call"}), ("tools",)),
        (a_row("tool_call", decision="certified"), ()),
        (a_row("contains"), ()),
    ],
)
def test_what_is_harmed_goes_around_the_candidate(row, features):
    assert broken_features([row]) == features


def test_a_question_without_an_answer_breaks_nothing():
    row = QualityRow(question="q", metric="json_schema", origin="declared")
    assert broken_features([row]) == ()
