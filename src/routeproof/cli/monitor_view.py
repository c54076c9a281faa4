"""How the monitor is shown: lines of JSON, lines of text, or a live table."""

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Table

from routeproof.cli.report_options import colour_wanted
from routeproof.errors import ConfigError
from routeproof.jobs.monitor import Monitor, MonitorOptions, monitor, shown
from routeproof.jobs.monitoring.server import exposing
from routeproof.jobs.monitoring.ticks import Alarm, Tick
from routeproof.jobs.probe import endpoint_at
from routeproof.metrics.live import LIVE
from routeproof.reports.monitor_text import (
    cause_lines,
    number,
    shift_line,
    sparkline,
    tick_line,
)

COLUMNS = 40
"""Looks that a curve of the live table goes back."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for."""

    url: str
    interval_s: float
    looks: int | None
    engine: str | None
    listen: tuple[str, int] | None
    log: Path | None
    api_key_env: str | None
    verify_tls: bool
    as_json: bool


def watch(wanted: Wanted) -> None:
    """Watch until it is over; exit code 3 when the engine never answered.

    Raises:
        ConfigError: The URL, the address to listen on or the log is wrong.
    """
    endpoint = endpoint_at(wanted.url, wanted.api_key_env, wanted.verify_tls)
    options = MonitorOptions(
        interval_s=wanted.interval_s, looks=wanted.looks, engine=wanted.engine
    )
    watched = Monitor(endpoint, options)
    answered = False
    with contextlib.ExitStack() as stack:
        if wanted.listen is not None:
            page = stack.enter_context(
                exposing(lambda: shown(watched, wanted.url), *wanted.listen)
            )
            click.echo(f"exposed at {page}", err=True)
        sinks = [stack.enter_context(_view(wanted))]
        if wanted.log is not None:
            sinks.append(stack.enter_context(_log(wanted.log)))

        def take(tick: Tick) -> None:
            nonlocal answered
            answered = answered or tick.up
            for sink in sinks:
                sink(tick)

        # Being stopped is the usual end of a watch, not an error.
        with contextlib.suppress(KeyboardInterrupt):
            monitor(watched, take)
    if not answered:
        sys.exit(3)


Sink = Callable[[Tick], None]


@contextlib.contextmanager
def _view(wanted: Wanted) -> Iterator[Sink]:
    if wanted.as_json:
        yield lambda tick: click.echo(msgspec.json.encode(tick).decode())
    elif colour_wanted() and wanted.looks != 2:
        with Live(console=Console(), auto_refresh=False) as live:
            yield _table_of(live, wanted.url)
    elif wanted.looks == 2:
        yield _whole_window
    else:
        yield lambda tick: click.echo("\n".join(lines(tick)))


@contextlib.contextmanager
def _log(path: Path) -> Iterator[Sink]:
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"cannot be written ({error.strerror})", path=path, key="--log"
        ) from None
    with file:

        def write(tick: Tick) -> None:
            file.write("".join(f"{tick.at[:10]} {line}\n" for line in lines(tick)))
            file.flush()

        yield write


def lines(tick: Tick) -> list[str]:
    """A look as text: its line, then events and alarms."""
    found = [tick_line(tick.at, tick.up, tick.why, tick.numbers)]
    for event in tick.events:
        # An outage stands on the line already.
        if event.kind != "outage":
            found.append(f"  {event.kind.upper():<8} {event.words}")
    for place, alarm in enumerate(tick.alarms):
        levels = (alarm.before, alarm.after)
        found.append(shift_line(LIVE[alarm.number].words, levels, alarm.since))
        following = tick.alarms[place + 1 : place + 2]
        # Several numbers often shift together; what is behind them is said once.
        if not following or _behind(following[0]) != _behind(alarm):
            found += cause_lines(alarm.causes, alarm.cannot_tell)
    return found


def _behind(alarm: Alarm) -> tuple[object, ...]:
    return alarm.since, alarm.causes, alarm.cannot_tell


def _whole_window(tick: Tick) -> None:
    """For ``--once``: every number of the window, one a line."""
    if tick.window_s is None:
        if not tick.up:
            click.echo("\n".join(lines(tick)))
        return
    click.echo(f"{tick.engine}, {tick.window_s:.0f} s, trust: {tick.trust}")
    for name, entry in LIVE.items():
        shown_value = number(tick.numbers.get(name), entry.unit)
        why = tick.unavailable.get(name)
        beside = f"  {why}" if why else ""
        click.echo(f"  {entry.words:<28} {shown_value:>10}{beside}")
    for reason in tick.reasons:
        click.echo(f"  note: {reason}")
    for name in tick.unknown_names:
        click.echo(f"  unknown series: {name}")


def _table_of(live: Live, url: str) -> Sink:
    ticks: deque[Tick] = deque(maxlen=COLUMNS)
    said: deque[str] = deque(maxlen=12)

    def draw(tick: Tick) -> None:
        ticks.append(tick)
        said.extend(lines(tick)[1:])
        state = "up" if tick.up else f"no answer: {tick.why}"
        table = Table(title=f"{url}  {tick.engine}  {state}", title_justify="left")
        for head in ("", "now", "course"):
            table.add_column(head)
        for name, entry in LIVE.items():
            course = [each.numbers.get(name) for each in ticks]
            if any(value is not None for value in course):
                value = number(tick.numbers.get(name), entry.unit)
                table.add_row(entry.words, value, sparkline(course))
        table.caption = "\n".join(said)
        live.update(table, refresh=True)

    return draw
