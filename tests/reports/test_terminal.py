import re

import msgspec
import pytest
from report_cases import a_judgement

from routeproof.gates.result import Check, Status
from routeproof.reports import terminal
from routeproof.verdict import Decision


def with_gate(judgement, name, **changes):
    gates = tuple(
        msgspec.structs.replace(g, **changes) if g.gate == name else g
        for g in judgement.gates
    )
    return msgspec.structs.replace(judgement, gates=gates)


def test_one_screen_says_what_changed_what_was_judged_and_what_to_do():
    text = terminal.render(a_judgement(), report="runs/x/report.html")
    assert text.count("\n") <= 30
    assert "kv_cache     bf16 -> fp8_e4m3" in text
    row = next(line for line in text.splitlines() if "-3.3 pts" in line)
    for part in ("[-6.1, -0.5]", "tolerance 1.0", "120 pairs", "FAILED"):
        assert part in row
    assert re.search(r"^verdict +AVOID ", text, re.M)
    assert "worst slice: exact match, prompt length over 4k: 11 of 38 broken" in text
    assert "runs/x/report.html" in text


def test_without_colour_there_is_not_one_escape():
    assert "\x1b" not in terminal.render(a_judgement())


def test_colour_adds_nothing_to_the_words():
    painted = terminal.render(a_judgement(), colour=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == terminal.render(a_judgement())


def test_the_worst_question_comes_first():
    lines = terminal.render(a_judgement()).splitlines()
    quality = next(line for line in lines if line.startswith("quality"))
    assert "FAILED" in quality


def test_a_screened_slice_without_evidence_never_hides_what_is_required():
    screened = tuple(
        Check(
            name=f"headline[class=c{i}]",
            status=Status.INCONCLUSIVE,
            reason="thin",
            kind="difference",
            unit="share",
            estimate=0.0,
            required=False,
        )
        for i in range(20)
    )
    required = Check(
        name="headline",
        status=Status.PASSED,
        reason="fine",
        kind="difference",
        unit="share",
        estimate=0.0,
        limit=0.02,
    )
    judgement = with_gate(a_judgement(), "correctness", checks=(*screened, required))
    lines = terminal.render(judgement).splitlines()
    first = next(line for line in lines if line.startswith("quality"))
    assert first.endswith("PASSED")
    assert any("15 more in the report: 15 inconclusive" in line for line in lines)


def test_speed_that_was_not_judged_says_why():
    judgement = with_gate(
        a_judgement(),
        "latency",
        status=Status.NOT_MEASURED,
        reason="a quality gate failed",
        checks=(),
    )
    assert "not judged: a quality gate failed" in terminal.render(judgement)


def test_a_broken_fact_is_shown_although_it_has_no_number():
    guard = Check(name="loops", status=Status.FAILED, reason="answers loop")
    judgement = with_gate(a_judgement(), "correctness", checks=(guard,))
    assert "answers loop" in terminal.render(judgement)


@pytest.mark.parametrize("decision", list(Decision))
def test_every_verdict_can_be_told(decision):
    text = terminal.render(a_judgement(decision=decision))
    assert f"verdict      {decision.value.upper().replace('_', ' ')}" in text


def test_a_run_without_routes_says_so():
    judgement = a_judgement()
    evidence = msgspec.structs.replace(judgement.evidence, routes=None)
    text = terminal.render(msgspec.structs.replace(judgement, evidence=evidence))
    assert "the routes were not written down" in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_sentences_are_wrapped_to_the_width(width):
    judgement = a_judgement()
    verdict = msgspec.structs.replace(judgement.verdict, reasons=("word " * 60,))
    text = terminal.render(
        msgspec.structs.replace(judgement, verdict=verdict), width=width
    )
    told = [line for line in text.splitlines() if "word word" in line]
    assert told and max(map(len, told)) <= width
