"""Rows that other packages bring, and what is refused."""

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from routeproof.cli.plugins import GROUP, load_plugins
from routeproof.errors import ConfigError
from routeproof.reports.formats import FORMATS, Format


@pytest.fixture
def brought():
    """Entry points of a module made here; its rows leave with the test."""
    before = dict(FORMATS)
    names = []

    def bring(name, plugin):
        module = types.ModuleType(f"brought_{name}")
        module.plugin = plugin
        sys.modules[module.__name__] = module
        names.append(module.__name__)
        return EntryPoint(name, f"{module.__name__}:plugin", GROUP)

    yield bring
    for name in names:
        del sys.modules[name]
    FORMATS.clear()
    FORMATS.update(before)


def a_format(name):
    return Format(
        name, f"{name}.txt", "a format of ours", lambda judgement, choices: ""
    )


def test_a_plugin_adds_its_row_once(brought):
    calls = []

    def plugin(doors):
        calls.append(doors)
        doors.add_format(a_format("ours"))

    entry = brought("adds_once", plugin)
    assert load_plugins([entry]) == ("adds_once",)
    assert load_plugins([entry]) == ()
    assert len(calls) == 1 and "ours" in FORMATS


def test_a_name_that_is_taken_is_refused(brought):
    entry = brought("takes", lambda doors: doors.add_format(a_format("html")))
    with pytest.raises(ConfigError, match="`html`, which is there already"):
        load_plugins([entry])


def test_a_plugin_that_cannot_be_loaded_stops_the_command():
    entry = EntryPoint("gone", "no_such_module_here:plugin", GROUP)
    with pytest.raises(ConfigError, match=r"`gone` .* cannot be loaded") as refused:
        load_plugins([entry])
    assert refused.value.exit_code == 2
