"""``routeproof simulate``: the simulated engine, or faults in front of a real one."""

from pathlib import Path

import click


@click.command()
@click.option("--engine", metavar="NAME", help="vllm, sglang, llama.cpp, tensorrt-llm.")
@click.option("--in-front-of", metavar="URL", help="Be a fault proxy for this engine.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:STRENGTH]",
    help="May be repeated.",
)
@click.option("--list-faults", is_flag=True, help="Print every fault and stop.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, help="0 takes a free one.")
@click.option(
    "--cases",
    multiple=True,
    metavar="FILE",
    help="Cases whose answers it knows; `golden` by default.",
)
@click.option("--draft-tokens", type=int, help="Speculate with so many; 0: do not.")
@click.option(
    "--answers", type=click.Choice(["script", "toy"]), help="Where text is from."
)
@click.option("--speed", type=float, help="Divide every duration by this.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML file of the whole simulated route.",
)
@click.option("--json", "as_json", is_flag=True, help="With --list-faults.")
def command(
    faults: tuple[str, ...],
    list_faults: bool,
    cases: tuple[str, ...],
    as_json: bool,
    **options: object,
) -> None:
    """Serve a simulated engine, or put faults in front of a real one."""
    from routeproof.jobs.simulate import Simulation, simulate

    if list_faults:
        _print_faults(as_json)
        return
    wanted = Simulation(faults=faults, cases=cases or ("golden",), **options)  # type: ignore[arg-type]
    simulate(wanted, lambda url: click.echo(f"serving at {url}/v1", err=False))


def _print_faults(as_json: bool) -> None:
    import json

    from routeproof.jobs.simulate import faults

    rows = faults()
    if as_json:
        names = ("name", "family", "reference", "what", "strength", "usual", "gate")
        click.echo(json.dumps([{n: getattr(row, n) for n in names} for row in rows]))
        return
    family = ""
    for row in rows:
        if row.family != family:
            family = row.family
            click.echo(f"\n{family}")
        measure = "" if row.strength == "none" else f" [{row.strength}: {row.usual:g}]"
        click.echo(f"  {row.name:<32} {row.what}{measure} ({row.reference})")
