"""Options that every command with a verdict shares."""

import os
import sys
from typing import NoReturn, cast

import click

from routeproof.reports.formats import Choices
from routeproof.reports.judgement import Judgement
from routeproof.reports.junit import Inconclusive
from routeproof.reports.requirement import exit_code
from routeproof.verdict import Decision

REQUIRE = click.Choice(["adopt", "pilot", "wait"])


def choices_of(*, inconclusive: str, require: str | None, link: str | None) -> Choices:
    """The choices about a report, from the words of the command line."""
    return Choices(
        inconclusive=cast(Inconclusive, inconclusive),
        require=Decision(require or "adopt"),
        address=link,
    )


def colour_wanted() -> bool:
    """Whether to paint: a terminal, and nobody said ``NO_COLOR``."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def finish(judgement: Judgement, require: str) -> NoReturn:
    """Exit with the code that says whether the verdict is good enough."""
    sys.exit(exit_code(judgement.verdict.decision, Decision(require)))
