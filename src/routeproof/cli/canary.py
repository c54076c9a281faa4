"""``routeproof canary``: serve a canary, promote it or roll it back."""

import json
import time
from pathlib import Path
from typing import Literal

import click

FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group()
def command() -> None:
    """Serve a canary, watch it, promote it or roll it back."""


@command.command()
@FILE
def check(file: Path) -> None:
    """Say in words what the gateway will do; nothing is started."""
    from routeproof.jobs import canary

    for line in canary.check(file):
        click.echo(line)


@command.command()
@FILE
@click.option("--engine", default="openai", show_default=True, help="Upstream engine.")
def serve(file: Path, engine: str) -> None:
    """Serve clients and the dashboard until Ctrl-C."""
    from routeproof.jobs import canary

    canary.serve(file, say=lambda text: click.echo(text, err=True), engine=engine)


@command.command()
@FILE
@click.option(
    "--how",
    type=click.Choice(["fault", "trigger"]),
    default="fault",
    show_default=True,
    help="Put errors before the candidate, or roll back by command.",
)
@click.option("--model", default="default", help="Model the drill's requests name.")
def drill(file: Path, how: Literal["fault", "trigger"], model: str) -> None:
    """Walk the way back on a shadow canary and keep the evidence."""
    from routeproof.jobs.drill import DrillOptions
    from routeproof.jobs.drill import drill as walk

    found, kept = walk(file, DrillOptions(how=how, model=model))
    click.echo(found.in_words())
    click.echo(f"evidence: {kept}; write `rollback: {{drilled: {kept}}}` in the proof")
    if found.problem() is not None:
        raise SystemExit(1)


@command.command()
@FILE
@click.option("--json", "as_json", is_flag=True, help="One document on stdout.")
def status(file: Path, as_json: bool) -> None:
    """Say where the canary stands."""
    from routeproof.jobs import canary

    found = canary.ask(file, "GET", "/v1/status")
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    state = found["state"]
    click.echo(f"{state['phase']}: {state['reason']}")
    if state["phase"] in ("stepping", "held", "paused"):
        required = [s["step_seen"] for s in found["signals"] if s["is_required"]]
        click.echo(
            f"step {state['step'] + 1} of {len(found['steps'])}, "
            f"{min(required, default=0)} of {found['minimum_scored']} answers scored "
            "in the smaller arm"
        )
    share = found["observed_share"]
    seen = "no traffic" if share is None else f"{share:.2%} observed"
    click.echo(f"weight {found['weight']:.2%}, {seen}")
    if state["weight_ppm"] and not found["weight"]:
        why = found["blind"] or found["store_error"] or "the state was not read in time"
        click.echo(f"the lease has run out, all go to the baseline: {why}")
    for signal in found["signals"]:
        need = "shown" if signal["is_advisory"] else ""
        need = "required" if signal["is_required"] else need
        stands = f"{signal['name']:<24} {signal['outcome']:<13} {need:<9}"
        click.echo(f"  {stands} {signal['reason']}")


@command.command()
@FILE
@click.option("--since", help="First day (UTC), 2026-01-31; seven days back without.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write weekly.md and weekly.html into this folder.",
)
def weekly(file: Path, since: str | None, out: Path | None) -> None:
    """Report rejections, lengths, latency, structure and complaints day by day."""
    from routeproof.jobs import canary

    markdown, page = canary.weekly(file, since=since, now_s=time.time())
    if out is None:
        click.echo(markdown)
        return
    out.mkdir(parents=True, exist_ok=True)
    (out / "weekly.md").write_text(markdown, encoding="utf-8")
    (out / "weekly.html").write_text(page, encoding="utf-8")
    click.echo(f"{out / 'weekly.md'}\n{out / 'weekly.html'}")


def _steering(name: str, summary: str) -> None:
    @command.command(name=name, help=summary)
    @FILE
    @click.option("--reason", default="", help="Goes into the audit.")
    @click.option("--actor", default="command line", help="Who asks, for the audit.")
    def steer(file: Path, reason: str, actor: str) -> None:
        from routeproof.jobs import canary

        body = {"reason": reason, "actor": actor}
        state = canary.ask(file, "POST", f"/v1/{name}", body)
        click.echo(f"{state['phase']}: {state['reason']}")


_steering("start", "Give the candidate its first share.")
_steering("promote", "Enter the next step without waiting for evidence.")
_steering("rollback", "Take the candidate back now.")
_steering("pause", "Keep the weight and decide nothing but a rollback.")
_steering("resume", "Go on after a pause.")
_steering("retry", "Let a candidate that was taken back try again, from no evidence.")
