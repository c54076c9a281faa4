"""``routeproof demo``: the main job on an embedded engine and model."""

import tempfile
from pathlib import Path

import click

from routeproof.cli.report_options import REQUIRE


@click.command()
@click.argument("variant", default="ngram")
@click.option("--out", type=click.Path(path_type=Path), help="The run folder.")
@click.option("--keep-going", is_flag=True, help="Measure speed though quality failed.")
@click.option("--require", type=REQUIRE, help="Exit with 1 below this verdict.")
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def command(
    variant: str,
    out: Path | None,
    keep_going: bool,
    require: str | None,
    as_json: bool,
) -> None:
    """Qualify a real route of a real engine with a 135M model on this CPU.

    VARIANT is the candidate: ngram (default), draft, kv or same. Takes a few
    minutes; the engine and the model (130 MB) are fetched once.
    """
    from routeproof.cli.run_options import fresh_run, listening, show_verdict
    from routeproof.jobs.demo import demo_proof
    from routeproof.jobs.qualify import Options, qualify

    folder = out or fresh_run(f"demo-{variant}")
    text = demo_proof(variant, folder / "proof.yaml")
    with tempfile.TemporaryDirectory(prefix="routeproof-demo-") as scratch:
        proof = Path(scratch) / "proof.yaml"
        proof.write_text(text, encoding="utf-8")
        with listening() as listener:
            judgement = qualify(
                proof,
                folder,
                # Some 400 small questions would take a third of the demo's time.
                options=Options(keep_going=keep_going, has_probes=False),
                listener=listener,
            )
    show_verdict(judgement, folder, as_json=as_json, require=require)
