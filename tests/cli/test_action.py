"""The script of the GitHub Action, run by the shell that would run it."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from report_cases import a_judgement

from routeproof.reports.judgement import encode

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
FAKE = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$CALLS"
if [ "$1" = qualify ]; then
  if [ -n "$JUDGED" ]; then mkdir -p runs/ci; cp "$JUDGED" runs/ci/judgement.json; fi
  exit "$CODE"
fi
echo '## the report' > runs/ci/report.md
"""


def script():
    [step] = [s for s in ACTION["runs"]["steps"] if s.get("id") == "proof"]
    return step["run"]


def ran(folder, *, code, judged=True, arguments=""):
    fake = folder / "bin" / "routeproof"
    fake.parent.mkdir()
    fake.write_text(FAKE)
    fake.chmod(0o755)
    judgement = folder / "judgement.json"
    judgement.write_bytes(encode(a_judgement()))
    environment = {
        "PATH": f"{fake.parent}:{os.environ['PATH']}",
        "CALLS": str(folder / "calls"),
        "CODE": str(code),
        "JUDGED": str(judgement) if judged else "",
        "PROOF": "my proof.yaml",
        "REQUIRE": "pilot",
        "INCONCLUSIVE": "skipped",
        "OUT": "runs/ci",
        "ARGUMENTS": arguments,
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }
    (folder / "output").touch()
    (folder / "summary").touch()
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script()],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("code", [0, 1])
def test_reports_are_written_and_the_exit_code_is_that_of_the_verdict(tmp_path, code):
    assert ran(tmp_path, code=code).returncode == code
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert first == "qualify my proof.yaml --out runs/ci --require pilot"
    assert second.endswith("-f junit -f json --inconclusive skipped")
    assert (tmp_path / "summary").read_text() == "## the report\n"
    output = (tmp_path / "output").read_text()
    assert output == "verdict=avoid\nreport=runs/ci/report.html\n"


def test_a_proof_that_could_not_be_measured_ends_with_3_and_no_report(tmp_path):
    assert ran(tmp_path, code=3, judged=False).returncode == 3
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    assert (tmp_path / "output").read_text() == ""


def test_further_arguments_are_words_and_never_commands(tmp_path):
    ran(tmp_path, code=0, arguments="--keep-going $(touch owned) ; touch owned2")
    assert not (tmp_path / "owned").exists() and not (tmp_path / "owned2").exists()
    first = (tmp_path / "calls").read_text().splitlines()[0]
    assert first.endswith("--keep-going $(touch owned) ; touch owned2")


def test_no_input_is_pasted_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
