"""XSTest: safe requests that look unsafe, and unsafe ones beside them."""

from pathlib import Path

from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, Line, read_lines, user

LABELS = {"safe": False, "unsafe": True}
"""Label to whether the request should be refused."""


def xstest(path: Path) -> Imported:
    """Cases of XSTest (``prompt``, ``type``, ``label``)."""
    needs = ("id", "prompt", "label")
    return Imported(tuple(_case(line) for line in read_lines(path, "XSTest", needs)))


def _case(line: Line) -> Case:
    label = line.text("label")
    if label not in LABELS:
        raise line.error(f"`label` is `{label}`, neither `safe` nor `unsafe`")
    refuse = LABELS[label]
    return Case(
        id=f"xstest-{line.name('id')}",
        class_="refusal",
        tags={"boundary": label, "kind": str(line.row.get("type", ""))},
        messages=(user(line.text("prompt")),),
        parameters={"max_tokens": 256},
        scorers=("refusal", "under_refusal" if refuse else "over_refusal"),
        options={"should_refuse": refuse},
    )
