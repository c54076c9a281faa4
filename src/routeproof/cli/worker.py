"""``routeproof worker``: one of several load processes that share a plan."""

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--shard", default="0/1", show_default=True, help="This one: i/n, from 0."
)
@click.option("--seed", type=int, help="Must be the plan's, if given.")
@click.option(
    "--start-at", type=float, metavar="UNIX", help="Send nothing before this time."
)
@click.option(
    "--collect",
    type=click.IntRange(1),
    metavar="N",
    help="Put together what N shards have sent, and show it.",
)
@click.option("--json", "as_json", is_flag=True, help="With --collect: one document.")
def command(
    folder: Path,
    shard: str,
    seed: int | None,
    start_at: float | None,
    collect: int | None,
    as_json: bool,
) -> None:
    """Send one shard of the plan that lies in the run FOLDER.

    `routeproof load --prepare` writes such a plan. All shards build it from the same
    seed, wait for each other before each block, and write parts of their own.
    """
    if collect is not None:
        from routeproof.cli.load import show
        from routeproof.jobs import load

        show(load.collect(folder, collect), as_json=as_json)
        return
    from routeproof.cli.load import use_one_thread_for_algebra

    use_one_thread_for_algebra()
    from routeproof.cli.listening import stages_shown
    from routeproof.runs.worker import carry_out

    with stages_shown() as progress:
        done = carry_out(folder, shard, seed=seed, start_at=start_at, progress=progress)
    click.echo(f"sent {done.sent} requests, {done.failed} failed", err=True)
