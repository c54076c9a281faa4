"""The readme's first screen is the report of a real run, not a drawing."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_block_is_what_the_kept_judgement_renders():
    block = runpy.run_path(str(ROOT / "docs" / "readme_block.py"))["block"]()
    for page in ("README.md", "docs/index.md"):
        assert block in (ROOT / page).read_text(), "run `python docs/readme_block.py`"


def test_the_kept_judgement_names_no_path_of_a_machine():
    kept = (ROOT / "docs" / "demo" / "judgement.json").read_text()
    assert "/root" not in kept and "/home" not in kept and "/tmp" not in kept


def test_every_make_target_that_a_page_names_is_there():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
    for page in pages:
        named = re.findall(
            r"(?:`|^)make ([a-z-]+)", page.read_text(), flags=re.MULTILINE
        )
        assert set(named) <= targets, page.name
    phony = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)
    assert phony is not None
    assert targets == set(phony[1].split())
