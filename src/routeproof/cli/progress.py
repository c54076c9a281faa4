"""Progress on stderr: bars on a terminal, a line now and then elsewhere."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINE_EVERY = 20
"""Requests from one line to the next where nobody knows how many there will be."""


@contextlib.contextmanager
def download_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar per file that is fetched; the callback takes (name, bytes, of bytes)."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _download_lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def update(name: str, so_far: int, in_all: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(f"fetching {name}", total=in_all)
            bars.update(tasks[name], completed=so_far)

        yield update


def _download_lines() -> Callable[[str, int, int], None]:
    begun: set[str] = set()

    def update(name: str, so_far: int, in_all: int) -> None:
        if name not in begun:
            begun.add(name)
            print(f"fetching {name} ({in_all / 1e6:.0f} MB)", file=sys.stderr)

    return update


@contextlib.contextmanager
def request_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar per stage; the callback takes (stage, requests done, requests in all).

    A stage that lasts a time has no number in all: 0.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _request_lines()
        return
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TextColumn("{task.completed:>5}{task.fields[of]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def update(stage: str, done: int, in_all: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=in_all or None, of="")
            of = f"/{in_all}" if in_all else ""
            bars.update(tasks[stage], completed=done, total=in_all or None, of=of)

        yield update


def _request_lines() -> Callable[[str, int, int], None]:
    said: dict[str, int] = {}

    def update(stage: str, done: int, in_all: int) -> None:
        step = 10 * done // in_all if in_all else done // LINE_EVERY
        if said.get(stage) != step:
            said[stage] = step
            of = f"/{in_all}" if in_all else " requests"
            print(f"{stage}: {done}{of}", file=sys.stderr)

    return update
