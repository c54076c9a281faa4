"""Generated pages and schemas are what the code says now."""

import runpy

import pytest
from doc_blocks import DOCS

from routeproof.cli.table import COMMANDS

REFERENCE = runpy.run_path(str(DOCS / "reference.py"))


@pytest.mark.slow
def test_nothing_that_is_generated_is_stale():
    assert REFERENCE["stale"]() == [], "run `python docs/reference.py`"


def test_every_command_is_on_the_page():
    text = (DOCS / "cli.md").read_text()
    for name in COMMANDS:
        assert f"\n## routeproof {name}\n" in text or not _is_there(name), name


def _is_there(name):
    from routeproof.cli.app import app

    return app.get_command(None, name) is not None
