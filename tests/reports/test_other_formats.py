import csv
import io
import json

import jsonschema_rs
import msgspec
import pytest
from report_cases import a_judgement, evidence

from routeproof.gates.result import Check, GateResult, Status
from routeproof.reports import csv_report, json_report, release_sheet
from routeproof.reports.formats import FORMATS, Choices
from routeproof.reports.requirement import exit_code
from routeproof.verdict import Decision


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_of_the_table_can_be_written_twice_the_same(name):
    first = FORMATS[name].of(a_judgement(), Choices())
    assert first == FORMATS[name].of(a_judgement(), Choices())
    assert first.endswith("\n")


def test_json_fits_its_published_schema():
    schema = json_report.json_schema()
    document = json.loads(json_report.render(a_judgement()))
    jsonschema_rs.validate(schema, document)
    assert set(document["atrt"]) == {
        "framework",
        "route",
        "baseline",
        "acceptance",
        "latency",
        "memory",
        "decision",
        "stop_use",
    }


def test_the_schema_notices_a_foreign_document():
    schema = json_report.json_schema()
    document = json.loads(json_report.render(a_judgement()))
    document["verdict"]["decision"] = "ship it"
    assert not jsonschema_rs.is_valid(schema, document)


def rows_of(judgement):
    return list(csv.DictReader(io.StringIO(csv_report.render(judgement))))


def test_csv_has_one_row_per_question_in_base_units():
    rows = {row["question"]: row for row in rows_of(a_judgement())}
    row = rows["schema_valid[class=structured]"]
    assert float(row["estimate"]) == -0.033
    assert (row["status"], row["n"], row["n_needed"]) == ("failed", "120", "")
    assert len(rows) == sum(len(gate.checks) for gate in a_judgement().gates)


def test_csv_lets_no_spreadsheet_run_a_formula():
    check = Check(name="=1+1", status=Status.PASSED, reason="@SUM(A1)")
    gate = GateResult(gate="latency", status=Status.PASSED, reason="r", checks=(check,))
    [row] = rows_of(msgspec.structs.replace(a_judgement(), gates=(gate,)))
    assert (row["question"], row["reason"]) == ("'=1+1", "'@SUM(A1)")


def test_the_release_sheet_names_pair_search_way_back_and_who_agreed():
    text = release_sheet.render(a_judgement())
    assert "| revision | 5b2c91d0 | 5b2c91d0 | declared |" in text
    assert "Chosen: 3 drafted tokens." in text
    assert "Agreed by: serving team." in text
    assert "- Drill: 2026-11-28, 1.4 s." in text
    assert "route all traffic to `baseline`" in text


def test_what_nobody_wrote_down_is_said_on_the_release_sheet():
    judgement = a_judgement()
    bare = msgspec.structs.replace(
        evidence(), routes=None, agreed=type(evidence().agreed)()
    )
    text = release_sheet.render(
        msgspec.structs.replace(judgement, evidence=bare, tables={})
    )
    assert "not written down" in text
    assert "nobody named" in text
    assert "never drilled" in text
    assert "No search was made" in text


@pytest.mark.parametrize(
    ("decision", "require", "code"),
    [
        (Decision.ADOPT, Decision.ADOPT, 0),
        (Decision.ADOPT, Decision.WAIT, 0),
        (Decision.PILOT, Decision.ADOPT, 1),
        (Decision.WAIT, Decision.PILOT, 1),
        (Decision.AVOID, Decision.WAIT, 1),
        (Decision.NONE, Decision.WAIT, 3),
    ],
)
def test_the_exit_code_says_whether_the_verdict_is_good_enough(decision, require, code):
    assert exit_code(decision, require) == code
