"""The border of the command line: lazy commands, errors to words and exit codes."""

import importlib
import importlib.util
import os
import sys
import traceback
from typing import NoReturn

import click

from routeproof import __version__
from routeproof.cli.plugins import load_plugins
from routeproof.cli.table import COMMANDS
from routeproof.errors import RouteproofError

STOPPED = (
    "stopped\n\nhint: what was measured is kept; `routeproof qualify RUN/proof.yaml "
    "--resume RUN` goes on with a run"
)


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, entry in COMMANDS.items() if _is_there(entry.module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None or not _is_there(entry.module):
            return None
        module = importlib.import_module(f"routeproof.cli.{entry.module}")
        command: click.Command = module.command
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        rows = [(name, COMMANDS[name].summary) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(f"routeproof.cli.{module}") is not None


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="routeproof")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def app(debug: bool) -> None:
    """Is the faster inference route still good enough to ship?

    Exit codes: 0 the verdict is at or above --require, 1 below it, 2 wrong use or
    configuration, 3 could not measure.
    """
    if debug:
        os.environ["ROUTEPROOF_DEBUG"] = "1"
    load_plugins()


def main() -> NoReturn:
    """Run the command line; every error ends as a sentence and an exit code."""
    try:
        app.main(prog_name="routeproof", standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.Abort:
        _fail(STOPPED, 130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except RouteproofError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail(STOPPED, 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(f"{error}", 3)
    except Exception as error:
        _fail(
            f"internal error: {type(error).__name__}: {error}\n\n"
            "hint: this is a fault of routeproof; `routeproof --debug ...` shows where",
            3,
        )
    sys.exit(0)


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get("ROUTEPROOF_DEBUG"):
        traceback.print_exc()
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)
