"""The house rules that no linter knows."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_can_be_read_in_one_go(path):
    text = path.read_text()
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 80, node.name


def test_importing_routeproof_loads_no_heavy_library():
    code = (
        "import sys, routeproof;"
        "print(sorted({name.split('.')[0] for name in sys.modules}))"
    )
    seen = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    for heavy in ("scipy", "numpy", "arro3", "rich", "uvloop", "altair"):
        assert f"'{heavy}'" not in seen
