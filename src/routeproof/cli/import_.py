"""``routeproof import``: data sets, traces and other tools' results."""

from pathlib import Path

import click


@click.command()
@click.argument("kind", required=False)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="JSONL to write.")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="Compare FILE with this baseline of the same tool instead.",
)
@click.option(
    "--change", "changes", multiple=True, help="With --against: what is being tested."
)
@click.option("--tolerance", default=0.02, show_default=True, help="With --against.")
@click.option(
    "--synthesize",
    type=click.IntRange(1),
    metavar="N",
    help="Traces: write cases in the shape of the first N requests.",
)
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(
    kind: str | None,
    file: Path | None,
    out: Path | None,
    against: Path | None,
    changes: tuple[str, ...],
    tolerance: float,
    synthesize: int | None,
    as_json: bool,
) -> None:
    """Turn FILE of a KIND into JSONL; without arguments, list the kinds.

    Data sets become cases for `workload.cases`.

    Traces keep arrivals, lengths, shared beginnings, and no text.

    Results of other tools keep those tools' definitions; with --against two of them
    are compared, or refused with every difference named.
    """
    from routeproof.cli import import_show
    from routeproof.jobs import import_results as job

    if kind is None:
        import_show.show_kinds(job.kinds(), as_json)
        return
    job.check_kind(kind)
    if file is None:
        raise click.UsageError("FILE is missing")
    if against is not None:
        found = job.compare_files(
            kind, against, file, changes=changes, tolerance_share=tolerance
        )
        import_show.show_comparison(found, as_json)
        return
    if out is None:
        raise click.UsageError("say where to write with -o OUT")
    written = job.import_file(kind, file, out, synthesize_requests=synthesize)
    import_show.show_import(written, as_json)
