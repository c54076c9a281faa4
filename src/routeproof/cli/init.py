"""``routeproof init``: a first proof file from two endpoints."""

import sys
from pathlib import Path

import click

from routeproof.errors import ConfigError


@click.command()
@click.option("--baseline", metavar="URL", help="Endpoint of the trusted route.")
@click.option("--candidate", metavar="URL", help="Endpoint of the faster route.")
@click.option("--changes", metavar="A,B", help="Route fields under test.")
@click.option("--cases", multiple=True, help="Case files; default: the golden set.")
@click.option("--tolerance", type=float, default=0.02, show_default=True)
@click.option("--temperature", type=float, default=0.0, show_default=True)
@click.option("--trials", type=int, default=1, show_default=True)
@click.option("--api-key-env", metavar="NAME", help="Variable that holds the key.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default="proof.yaml")
@click.option("--yes", is_flag=True, help="Ask nothing; fail where something lacks.")
def command(
    baseline: str | None,
    candidate: str | None,
    changes: str | None,
    cases: tuple[str, ...],
    output: Path,
    yes: bool,
    api_key_env: str | None,
    **numbers: float,
) -> None:
    """Probe two endpoints, ask what is being tested, write a proof file."""
    from routeproof.jobs.init import CHANGES, Choices, init_proof
    from routeproof.jobs.probe import probe

    if output.exists():
        raise ConfigError(f"{output} exists", hint="choose another name with -o")
    asking = not yes and sys.stdin.isatty()
    baseline = baseline or _ask(asking, "Endpoint of the baseline", "--baseline")
    here = probe(baseline, api_key_env=api_key_env)
    click.echo(f"  {here.engine}, serves {', '.join(here.models)}", err=True)
    candidate = candidate or _ask(asking, "Endpoint of the candidate", "--candidate")
    there = probe(candidate, api_key_env=api_key_env)
    click.echo(f"  {there.engine}, serves {', '.join(there.models)}", err=True)
    if changes is None:
        click.echo(f"What is being tested? Any of: {', '.join(CHANGES)}", err=True)
        changes = _ask(asking, "Changes, with commas", "--changes")
    names = tuple(c.strip() for c in changes.split(",") if c.strip())
    unknown = [name for name in names if name not in CHANGES]
    if unknown:
        raise ConfigError(
            f"`{unknown[0]}` is not a route field",
            hint=f"choose among {', '.join(CHANGES)}",
        )
    choices = Choices(
        changes=names,
        cases=cases or ("golden",),
        tolerance_share=numbers["tolerance"],
        temperature=numbers["temperature"],
        trials=int(numbers["trials"]),
    )
    text = init_proof(
        here, there, baseline_url=baseline, candidate_url=candidate, choices=choices
    )
    output.write_text(text, encoding="utf-8")
    click.echo(f"wrote {output}; next: routeproof diff {output}")


def _ask(asking: bool, question: str, option: str) -> str:
    if not asking:
        raise ConfigError(f"{question} is not given", hint=f"pass {option}")
    answer: str = click.prompt(question, err=True)
    return answer
