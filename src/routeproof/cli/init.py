"""``routeproof init``: a first proof file from two endpoints."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from routeproof.errors import ConfigError

if TYPE_CHECKING:
    from routeproof.jobs.init import Choices
    from routeproof.routes.read_back import ReadBack


@click.command()
@click.option("--baseline", metavar="URL", help="Endpoint of the trusted route.")
@click.option("--candidate", metavar="URL", help="Endpoint of the faster route.")
@click.option(
    "--changes",
    metavar="A,B",
    help="Route fields under test. [default: what the endpoints report differently]",
)
@click.option("--cases", multiple=True, help="Case files. [default: the golden set]")
@click.option(
    "--tolerance", metavar="LOSS", help="As a share or in points. [default: 0.02]"
)
@click.option("--temperature", metavar="T", help="[default: 0]")
@click.option("--trials", type=int, help="Answers per case. [default: 1, or 4 above 0]")
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the key.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default="proof.yaml")
@click.option("--yes", is_flag=True, help="Ask nothing; fail where something lacks.")
def command(
    baseline: str | None,
    candidate: str | None,
    changes: str | None,
    output: Path,
    yes: bool,
    api_key_env: str | None,
    **given: object,
) -> None:
    """Probe two endpoints, ask what is being tested, write a proof file.

    Every question has an option; at a terminal what is not given is asked, with the
    reason why it matters.
    """
    from routeproof.cli.init_questions import explain
    from routeproof.jobs.init import init_proof

    if output.exists():
        raise ConfigError(f"{output} exists", hint="choose another name with -o")
    asking = not yes and sys.stdin.isatty()
    if asking and baseline is None:
        explain("The baseline is the route you trust today; the candidate is faster.")
    baseline = baseline or _ask(asking, "Endpoint of the baseline", "--baseline")
    here = _probed(baseline, api_key_env)
    candidate = candidate or _ask(asking, "Endpoint of the candidate", "--candidate")
    there = _probed(candidate, api_key_env)
    names = _changes(changes, here, there, asking=asking)
    text = init_proof(
        here,
        there,
        baseline_url=baseline,
        candidate_url=candidate,
        choices=_choices(names, given, asking=asking),
    )
    output.write_text(text, encoding="utf-8")
    click.echo(f"wrote {output}")
    click.echo(f"next: routeproof diff {output}; routeproof plan {output}")


def _probed(url: str, api_key_env: str | None) -> ReadBack:
    from routeproof.jobs.probe import probe

    found = probe(url, api_key_env=api_key_env)
    click.echo(f"  {found.engine}, serves {', '.join(found.models)}", err=True)
    return found


def _changes(
    given: str | None, here: ReadBack, there: ReadBack, *, asking: bool
) -> tuple[str, ...]:
    from routeproof.cli.init_questions import choose, names
    from routeproof.jobs.init import CHANGES, differing

    seen = differing(here, there)
    if given is None and asking:
        given = choose(CHANGES, seen)
    elif given is None and seen:
        click.echo(f"  under test, as they differ: {', '.join(seen)}", err=True)
        given = ",".join(seen)
    elif given is None:
        raise ConfigError(
            "the endpoints report no difference, so what is tested must be said",
            hint=f"pass --changes with some of {', '.join(CHANGES)}",
        )
    wanted = names(given)
    unknown = [name for name in wanted if name not in CHANGES]
    if unknown:
        raise ConfigError(
            f"`{unknown[0]}` is not a route field",
            hint=f"choose among {', '.join(CHANGES)}",
        )
    return wanted


def _choices(
    names: tuple[str, ...], given: Mapping[str, object], *, asking: bool
) -> Choices:
    from routeproof.cli import init_questions as ask
    from routeproof.jobs.init import Choices

    cases = ask.answer(ask.CASES, given["cases"], asking=asking)
    tolerance = ask.answer(ask.TOLERANCE, given["tolerance"], asking=asking)
    temperature = ask.answer(ask.TEMPERATURE, given["temperature"], asking=asking)
    trials = given["trials"] or (4 if temperature > 0 else 1)
    if temperature > 0:
        trials = ask.answer(ask.TRIALS, given["trials"], asking=asking)
    return Choices(
        changes=names,
        cases=cases,
        tolerance_share=tolerance,
        temperature=temperature,
        trials=int(str(trials)),
    )


def _ask(asking: bool, question: str, option: str) -> str:
    if not asking:
        raise ConfigError(f"{question} is not given", hint=f"pass {option}")
    answer: str = click.prompt(question, err=True)
    return answer
