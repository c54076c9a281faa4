"""JUnit XML: one test suite per gate, one test case per question."""

import xml.etree.ElementTree as ElementTree
from typing import Literal

from routeproof.gates.result import Check, GateResult, Status
from routeproof.reports import figures
from routeproof.reports.judgement import Judgement
from routeproof.reports.requirement import MET, exit_code
from routeproof.verdict import Decision

Inconclusive = Literal["skipped", "failure"]


def render(
    judgement: Judgement,
    *,
    inconclusive: Inconclusive = "failure",
    require: Decision = Decision.ADOPT,
) -> str:
    """JUnit XML that CI servers show as tests.

    Args:
        judgement: What was decided, on which numbers.
        inconclusive: How a question without enough evidence, or one that was not
            measured, is shown. A check that is not required is skipped either way.
        require: The verdict the ``verdict`` test case asks for.
    """
    root = ElementTree.Element("testsuites", name="routeproof")
    suites = [_verdict_suite(judgement, require)]
    suites += [_gate_suite(gate, inconclusive) for gate in judgement.gates]
    for suite in suites:
        root.append(suite)
    for count in ("tests", "failures", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _verdict_suite(judgement: Judgement, require: Decision) -> ElementTree.Element:
    decision = judgement.verdict.decision
    met = exit_code(decision, require) == MET
    case = ElementTree.Element(
        "testcase", classname="routeproof.verdict", name=f"at least {require.value}"
    )
    if not met:
        _mark(case, "failure", judgement.headline, judgement.verdict.reasons)
    return _suite("verdict", [case])


def _gate_suite(gate: GateResult, inconclusive: Inconclusive) -> ElementTree.Element:
    if not gate.checks:
        whole = Check(name=gate.gate, status=gate.status, reason=gate.reason)
        return _suite(gate.gate, [_case(gate.gate, whole, inconclusive)])
    cases = [_case(gate.gate, check, inconclusive) for check in gate.checks]
    return _suite(gate.gate, cases)


def _case(gate: str, check: Check, inconclusive: Inconclusive) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=f"routeproof.{gate}", name=_clean(check.name)
    )
    if check.status is Status.PASSED:
        return case
    failed = check.status is Status.FAILED or inconclusive == "failure"
    kind = "failure" if failed and check.required else "skipped"
    word = figures.STATUS_WORD[check.status].lower()
    _mark(case, kind, f"{word}: {check.reason}", _details(check))
    return case


def _details(check: Check) -> tuple[str, ...]:
    interval = figures.bounds(check.interval, check.kind, check.unit)
    numbers = (
        f"{figures.estimate(check)} {interval}".strip(),
        figures.limit(check),
        figures.amount(check),
    )
    return (*(text for text in numbers if text), *check.notes)


def _mark(
    case: ElementTree.Element, kind: str, message: str, lines: tuple[str, ...]
) -> None:
    mark = ElementTree.SubElement(case, kind, message=_clean(message))
    mark.text = _clean("\n".join(lines))


def _suite(name: str, cases: list[ElementTree.Element]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=f"routeproof.{name}")
    suite.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("skipped", "skipped")):
        count = sum(case.find(tag) is not None for case in cases)
        suite.set(attribute, str(count))
    suite.extend(cases)
    return suite


def _clean(text: str) -> str:
    """Text without what XML 1.0 cannot hold (control characters, surrogates)."""
    return "".join(c if _is_allowed(ord(c)) else "\ufffd" for c in text)


def _is_allowed(code: int) -> bool:
    if code in (0x9, 0xA, 0xD):
        return True
    return 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
