"""What the commands that run a proof share."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click

from routeproof.cli.listening import fresh_run, say, stages_shown
from routeproof.cli.progress import download_bar
from routeproof.cli.report_options import colour_wanted
from routeproof.jobs.qualify import Listener
from routeproof.jobs.qualifying.pairing import lock_pairing, pairing_of
from routeproof.jobs.report import report
from routeproof.reports.judgement import Judgement, encode
from routeproof.reports.requirement import exit_code
from routeproof.reports.terminal import render
from routeproof.routes.lock import FILE_NAME as LOCK_NAME
from routeproof.verdict import Decision

__all__ = ["fresh_run", "listening", "lock_pair", "show_verdict"]


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Bars and sentences on stderr."""
    with stages_shown() as requests, download_bar() as download:
        yield Listener(download=download, requests=requests, words=say)


def lock_pair(judgement: Judgement, folder: Path, beside: Path | None) -> None:
    """Write the pairing lock where it is wanted, or say how to write it.

    Args:
        judgement: Of the run.
        folder: The run.
        beside: Folder for ``routeproof.lock``; ``None`` to offer it only.
    """
    pair = pairing_of(judgement)
    if pair is None:
        if beside is not None:
            click.echo("nothing to lock: no target and draft passed together", err=True)
        return
    if beside is None:
        click.echo(
            f"this target and its draft passed together: `routeproof judge {folder} "
            f"--lock {LOCK_NAME}` writes the pair down",
            err=True,
        )
        return
    lock_pairing(judgement, beside / LOCK_NAME)
    click.echo(f"the pair is locked in {beside / LOCK_NAME}", err=True)


def show_verdict(
    judgement: Judgement, folder: Path, *, as_json: bool, require: str | None
) -> NoReturn:
    """Write the page, print the verdict, exit with its code.

    Without ``require`` a verdict of any kind is a success; where none could be given
    the exit code is 3 all the same.
    """
    (page,) = report(folder, formats=("html",))
    if as_json:
        click.echo(encode(judgement).decode())
    else:
        click.echo(render(judgement, colour=colour_wanted(), report=str(page)))
    code = exit_code(judgement.verdict.decision, Decision(require or "adopt"))
    sys.exit(0 if code == 1 and require is None else code)
