"""Write the generated parts of the reference pages: `python docs/reference.py`.

A generated part stands between two comments, ``<!-- begin NAME -->`` and
``<!-- end NAME -->``; everything else on a page is written by hand.
"""

import re
from collections.abc import Callable
from pathlib import Path

from routeproof.gates.catalogue import checks_page
from routeproof.metrics.reference import metrics_page

HOME = Path(__file__).parent
PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "checks": ("gates.md", checks_page),
    "metrics": ("metrics.md", metrics_page),
}


def rewritten(text: str, name: str, part: str) -> str:
    """A page with one generated part replaced."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    body = f"{begin}\n\n{part.strip()}\n\n{end}"
    return re.sub(pattern, lambda _: body, text, flags=re.DOTALL)


def main() -> None:
    """Rewrite every page."""
    for name, (page, part) in PARTS.items():
        path = HOME / page
        path.write_text(rewritten(path.read_text(), name, part()))


if __name__ == "__main__":
    main()
