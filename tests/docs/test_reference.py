"""Generated pages and schemas are what the code says now."""

import subprocess
import sys

import pytest
from doc_blocks import DOCS

from routeproof.cli.app import app
from routeproof.cli.table import COMMANDS


@pytest.mark.slow
def test_nothing_that_is_generated_is_stale():
    """In a process of its own: click remembers how a command was called before."""
    command = [sys.executable, str(DOCS / "reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_command_is_on_the_page():
    text = (DOCS / "cli.md").read_text()
    for name in COMMANDS:
        assert app.get_command(None, name) is not None, name
        assert f"\n## routeproof {name}\n" in text, name
