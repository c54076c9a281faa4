"""What a command shows while requests are sent, and where it puts them.

Apart from ``run_options``, which knows verdicts and pages and takes half a second and
50 MB to import.
"""

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import click

from routeproof.cli.progress import request_bar
from routeproof.runs.progress import Progress

RUNS = Path("runs")


def fresh_run(stem: str, *, runs: Path = RUNS) -> Path:
    """A folder name that is not taken: ``runs/<stem>-<date>-<time>``."""
    name = f"{stem}-{datetime.now():%Y%m%d-%H%M%S}"
    taken = [runs / name, *(runs / f"{name}-{n}" for n in range(2, 100))]
    return next(path for path in taken if not path.exists())


@contextlib.contextmanager
def stages_shown() -> Iterator[Callable[[Progress], None]]:
    """A bar, or lines, on stderr for each stage; the callback takes how far it is."""
    with request_bar() as requests:

        def report(seen: Progress) -> None:
            requests(f"{seen.phase} {seen.level}", seen.done, seen.planned or 0)

        yield report


def say(text: str) -> None:
    """A sentence on stderr."""
    click.echo(text, err=True)
