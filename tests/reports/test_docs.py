"""The pages about reports and CI say what is true, and their commands run."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from stored_runs import a_run

from routeproof.cli.app import app
from routeproof.reports.formats import FORMATS
from routeproof.reports.json_report import json_schema

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = ("index.md", "reports.md", "ci.md", "glossary.md")
READERS = {"report", "show", "compare", "history", "judge"}


def table(text, heading):
    """Rows of the first table after a heading, cells without code marks."""
    lines = text[text.index(heading) :].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    return [
        [cell.strip().strip("`") for cell in row.strip("|").split("|")]
        for row in rows[2:]
    ]


def commands(text):
    blocks = re.findall(r"```bash\n(.*?)```", text, re.S)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def test_the_table_of_formats_is_the_table_of_formats():
    rows = table((DOCS / "reports.md").read_text(), "## Formats")
    told = [(name, file, what) for name, file, what in rows[: len(FORMATS)]]
    assert told == [(f.name, f.file_name, f.what) for f in FORMATS.values()]


def shape(schema):
    """A schema without its prose."""
    if isinstance(schema, dict):
        return {k: shape(v) for k, v in schema.items() if k != "description"}
    return [shape(each) for each in schema] if isinstance(schema, list) else schema


def test_the_published_schema_is_the_schema():
    published = json.loads((DOCS / "schemas" / "report.json").read_text())
    today = json.loads(json.dumps(json_schema()))
    assert shape(published) == shape(today), (
        "write it again: routeproof report --schema > docs/schemas/report.json"
    )


def test_the_glossary_is_short_enough_to_be_read():
    assert len(table((DOCS / "glossary.md").read_text(), "# Glossary")) <= 25


def test_the_inputs_of_the_action_are_documented_with_their_defaults():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    text = (DOCS / "ci.md").read_text()
    rows = table(text[: text.index("Outputs:")], "Its inputs:")
    told = {name: default for name, default, _ in rows}
    given = {n: str(i.get("default", "")) for n, i in action["inputs"].items()}
    assert told == given


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_pages_that_are_there(page):
    text = (DOCS / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (DOCS / target).exists(), target


def test_the_contents_of_the_site_are_there():
    site = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]

    def pages(entries):
        for entry in entries:
            for value in entry.values():
                yield from pages(value) if isinstance(value, list) else (value,)

    for page in pages(site["nav"]):
        assert (DOCS / page).exists(), page


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    a_run(folder / "runs" / "yesterday", cases=60)
    a_run(folder / "runs" / "today", cases=60)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_commands_on_a_run_do_what_the_page_says(page, runs, monkeypatch):
    monkeypatch.chdir(runs)
    lines = [line for line in commands((DOCS / page).read_text())]
    ours = [line for line in lines if shlex.split(line)[1] in READERS]
    for line in ours:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code in {0, 1}, (line, result.output, result.exception)
        assert result.output
