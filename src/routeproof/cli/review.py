"""``routeproof review``: let people judge sampled answers, blind."""

import contextlib
import threading
import webbrowser
from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--question",
    type=click.Choice(["preference", "correct"]),
    default="preference",
    show_default=True,
    help="Show pairs, or single answers.",
)
@click.option("--items", default=50, show_default=True, help="Items at most.")
@click.option("--reviewer", default="", help="A name stored with each label.")
@click.option("--port", default=0, help="A free one, and a browser, when left away.")
@click.option(
    "--import",
    "bring",
    type=click.Path(exists=True, path_type=Path),
    help="Take labels from a file and stop.",
)
@click.option(
    "--export",
    "out",
    type=click.Path(path_type=Path),
    help="Write the labels to a file and stop.",
)
@click.option("--summary", is_flag=True, help="Print what the labels say and stop.")
def command(
    run: Path,
    question: str,
    items: int,
    reviewer: str,
    port: int,
    bring: Path | None,
    out: Path | None,
    summary: bool,
) -> None:
    """Judge answers of RUN in a local web page, without knowing whose they are.

    Keys: 1 left, 2 neither, 3 right, s cannot say, u back. Labels are kept in
    RUN/review/labels.jsonl.
    """
    from routeproof.jobs.gathering.gathered import judged_scores
    from routeproof.jobs.reviewing.server import export_labels, serving
    from routeproof.jobs.reviewing.session import Question, Review
    from routeproof.jobs.reviewing.summary import summarise
    from routeproof.scorers.label_files import read_labels

    kind: Question = "correct" if question == "correct" else "preference"
    review = Review(run, question=kind, most=items, reviewer=reviewer)
    if bring is not None:
        click.echo(f"{review.bring_in(read_labels(bring))} new labels")
    if out is not None:
        click.echo(f"{export_labels(review, out)} labels to {out}")
    if summary:
        click.echo("\n".join(summarise(review, judged_scores(run)).lines()))
    if bring or out or summary:
        return
    with serving(review, port=port) as url:
        click.echo(
            f"{len(review.items)} items at {url}\nCtrl-C ends the review", err=True
        )
        if not port:
            webbrowser.open(url)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    click.echo(f"{review.done()} of {len(review.items)} items answered")
