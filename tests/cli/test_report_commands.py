"""`report`, `show`, `compare` and `history` as typed."""

import json

import pytest
from click.testing import CliRunner
from report_cases import a_judgement
from stored_runs import a_run

from routeproof.cli.app import app
from routeproof.errors import ConfigError, StoredRunError
from routeproof.reports.judgement import encode
from routeproof.verdict import Decision


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def run(tmp_path):
    (tmp_path / "judgement.json").write_bytes(encode(a_judgement()))
    return tmp_path


def test_one_format_can_be_printed(run):
    found = typed("report", run, "-f", "text", "-o", "-")
    assert found.exit_code == 0
    assert found.output.startswith("route diff ")


def test_paths_of_what_was_written_are_all_that_is_printed(run):
    found = typed("report", run, "-f", "csv", "-f", "junit")
    assert found.output.splitlines() == [
        str(run / "questions.csv"),
        str(run / "junit.xml"),
    ]


@pytest.mark.parametrize(
    ("decision", "require", "code"),
    [("pilot", "pilot", 0), ("pilot", "adopt", 1), ("no_verdict", "wait", 3)],
)
def test_require_sets_the_exit_code(run, decision, require, code):
    judgement = a_judgement(decision=Decision(decision))
    (run / "judgement.json").write_bytes(encode(judgement))
    assert typed("report", run, "-f", "csv", "--require", require).exit_code == code


def test_without_require_a_report_of_a_bad_run_is_a_success(run):
    assert typed("report", run, "-f", "csv").exit_code == 0


def test_inconclusive_questions_can_be_skipped(run):
    failing = typed("report", run, "-f", "junit", "-o", "-").output
    skipping = typed(
        "report", run, "-f", "junit", "-o", "-", "--inconclusive", "skipped"
    ).output
    assert failing.count("<failure") > skipping.count("<failure")


def test_the_schema_needs_no_run():
    schema = json.loads(typed("report", "--schema").output)
    assert schema["title"] == "routeproof judgement"


@pytest.mark.parametrize(
    "words", [("report",), ("report", "x", "-o", "-", "-f", "all")]
)
def test_wrong_use_is_exit_code_2(words):
    assert typed(*words).exit_code == 2


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("report", "nowhere"), StoredRunError),
        (("show", "nowhere", "--case", "x"), StoredRunError),
        (("compare", "nowhere", "nowhere"), StoredRunError),
        (("history", "nowhere"), StoredRunError),
        (("report", ".", "-f", "pdf"), ConfigError),
    ],
)
def test_what_is_wrong_is_one_error_with_a_hint(words, error):
    found = typed(*words)
    assert isinstance(found.exception, error)
    assert found.exception.hint


@pytest.mark.slow
def test_show_compare_and_history_speak_json_too(tmp_path):
    then = a_run(tmp_path / "then", cases=60)
    now = a_run(tmp_path / "now", cases=60, wrong=range(30))
    shown = json.loads(typed("show", now, "--case", "case-000", "--json").output)
    assert shown["case"]["id"] == "case-000"
    compared = typed("compare", then, now, "--json")
    assert compared.exit_code == 1
    assert json.loads(compared.output)["status"] == "worse"
    assert typed("compare", then, then).exit_code == 0
    past = json.loads(typed("history", tmp_path, "--json").output)
    assert {run["run_id"] for run in past} == {"then", "now"}


@pytest.mark.slow
def test_history_writes_a_page(tmp_path):
    a_run(tmp_path / "one", cases=12)
    page = tmp_path / "history.html"
    assert typed("history", tmp_path, "--html", page).exit_code == 0
    assert page.read_text().startswith("<!doctype html>")
