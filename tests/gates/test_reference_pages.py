"""The reference pages say what the tables say, and the tables say everything."""

import fnmatch
import importlib.util
from pathlib import Path

import pytest
from gate_cases import changed, evidence

from routeproof.gates.catalogue import CHECKS
from routeproof.gates.result import Status
from routeproof.gates.table import GATES, judge
from routeproof.metrics.table import METRICS

DOCS = Path(__file__).parents[2] / "docs"


def writer():
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["checks", "metrics"])
def test_the_generated_part_of_a_page_is_up_to_date(name):
    module = writer()
    page, part = module.PARTS[name]
    text = (DOCS / page).read_text()
    message = "run `python docs/reference.py`"
    assert module.rewritten(text, name, part()) == text, message


def test_every_gate_is_described():
    assert {check.gate for check in CHECKS} == set(GATES)


def test_every_check_that_is_made_is_described():
    found = changed(evidence(), "stability", events=())
    for result in judge(found):
        names = [
            name
            for check in CHECKS
            if check.gate == result.gate
            for name in check.name.split(", ")
        ]
        for check in result.checks:
            assert any(
                fnmatch.fnmatchcase(check.name, _pattern(name)) for name in names
            ), f"{result.gate}: {check.name}"


def _pattern(name):
    """`slo[*]` as a pattern: its brackets are themselves."""
    return name.replace("[", "[[]")


def test_every_metric_is_on_its_page():
    text = (DOCS / "metrics.md").read_text()
    assert all(f"`{name}`" in text for name in METRICS)


def test_every_status_is_on_the_page():
    text = (DOCS / "gates.md").read_text()
    assert all(f"`{status.value}`" in text for status in Status)
