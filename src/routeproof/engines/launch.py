"""Start an engine, wait until it answers, and always stop it again."""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from routeproof.engines import guardian
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import fetch
from routeproof.errors import ConfigError, EngineError
from routeproof.proof.nearest import nearest
from routeproof.proof.route import LaunchSpec

TAIL_LINES = 20
POLL_S = 0.1
PORT_FLAGS = ("--port", "-p")

_FILL = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Running:
    """An engine that is up.

    Attributes:
        endpoint_url: Base URL of its API, with ``/v1``.
        pid: Process id of the engine itself.
        log_path: Everything it wrote to standard output and error.
        ended: Done as soon as the engine ends by itself; says how, in words.
    """

    endpoint_url: str
    pid: int
    log_path: Path
    ended: "asyncio.Future[str]"

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The engine's last log lines."""
        return log_tail(self.log_path, lines)

    def died(self, name: str) -> EngineError:
        """The error to raise when a request failed since the engine is gone."""
        how = self.ended.result() if self.ended.done() else "ended"
        return EngineError(
            f"the engine of the {name} {how} in the middle of the run",
            log_tail=self.log_tail(),
            hint=f"the whole log is in {self.log_path}; the records so far are kept",
        )


@asynccontextmanager
async def launch(
    spec: LaunchSpec,
    *,
    name: str,
    log_path: Path,
    fill: Mapping[str, str] | None = None,
    host: str = "127.0.0.1",
) -> AsyncIterator[Running]:
    """Start an engine and stop it at the end of the block.

    It is stopped on every way out: the end of the block, an exception, Ctrl-C, a
    cancelled task, and the death of this process by any signal (see
    `routeproof.engines.guardian`).

    Args:
        spec: The command; ``{port}`` and the names in ``fill`` are filled in.
        name: The route's name, for messages.
        log_path: Where its output goes; the folder is made.
        fill: Values for further ``{name}`` in the command and the environment.
        host: Address it is asked at.

    Raises:
        ConfigError: The command cannot be run, names something that is not filled,
            or wants a port that is taken.
        EngineError: It died or was not ready in time; shows its last log lines.
    """
    port, command, environment = _prepare(spec, dict(fill or {}), host)
    if spec.cwd is not None and not Path(spec.cwd).is_dir():
        raise ConfigError(
            f"the folder {spec.cwd} does not exist", key=f"{name}.launch.cwd"
        )
    _open_log(log_path)
    keeper = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        guardian.__file__,
        str(log_path.resolve()),
        str(guardian.GRACE_S),
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        cwd=spec.cwd,
        start_new_session=True,
    )
    watch: asyncio.Task[str] | None = None
    try:
        pid = await _started(keeper, name, command)
        watch = asyncio.create_task(_watch(keeper))
        running = Running(f"http://{host}:{port}/v1", pid, log_path, watch)
        await _until_ready(running, spec, name)
        yield running
    finally:
        if keeper.stdin is not None:
            keeper.stdin.close()
        await _ended(keeper)
        if watch is not None:
            watch.cancel()


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def log_tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log, control characters removed, at most 400 wide."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64 * 1024))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    plain = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    kept = [line.rstrip()[:400] for line in plain.splitlines() if line.strip()]
    return "\n".join(kept[-lines:])


def _prepare(
    spec: LaunchSpec, fill: dict[str, str], host: str
) -> tuple[int, list[str], dict[str, str]]:
    """Port, filled command and environment."""
    if any("{port}" in word for word in spec.command):
        port = free_port(host)
    else:
        port = _fixed_port(spec.command)
        if _is_taken(host, port):
            raise ConfigError(
                f"port {port} is taken by another process",
                key="launch.command",
                hint="write `{port}` in the command to get a free one, or stop the "
                "process that listens there",
            )
    fill = {"port": str(port), "host": host, **fill}
    command = [_filled(word, fill, "launch.command") for word in spec.command]
    environment = {
        **os.environ,
        **{key: _filled(v, fill, f"launch.env.{key}") for key, v in spec.env.items()},
    }
    return port, command, environment


def _filled(word: str, fill: Mapping[str, str], key: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in fill:
            return fill[name]
        near = nearest(name, fill)
        known = ", ".join(f"{{{known}}}" for known in sorted(fill))
        raise ConfigError(
            f"`{match[0]}` is not filled by anything",
            key=key,
            hint=f"did you mean `{{{near}}}`?" if near else f"known: {known}",
        )

    return _FILL.sub(value, word)


def _fixed_port(command: tuple[str, ...]) -> int:
    for index, word in enumerate(command):
        flag, equals, value = word.partition("=")
        if flag in PORT_FLAGS:
            text = value if equals else "".join(command[index + 1 : index + 2])
            if text.isdigit() and 0 < int(text) < 65536:
                return int(text)
    raise ConfigError(
        "the command does not say on which port the engine will listen",
        key="launch.command",
        hint='add "--port", "{port}"; a free port is filled in',
    )


def _is_taken(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((host, port)) == 0


def _open_log(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise ConfigError(
            f"the log of the engine cannot be written ({error.strerror})",
            path=path,
            hint="choose a folder that can be written to",
        ) from None


async def _started(
    keeper: asyncio.subprocess.Process, name: str, command: list[str]
) -> int:
    assert keeper.stdout is not None
    line = (await keeper.stdout.readline()).decode(errors="replace").strip()
    word, _, rest = line.partition(" ")
    if word == "pid":
        return int(rest)
    raise ConfigError(
        f"`{command[0]}` cannot be run ({rest or 'no reason given'})",
        key=f"{name}.launch.command",
        hint="check that the program is installed and on PATH, or give its full path",
    )


async def _watch(keeper: asyncio.subprocess.Process) -> str:
    """How the engine ended, in words."""
    assert keeper.stdout is not None
    line = (await keeper.stdout.readline()).decode(errors="replace").strip()
    word, _, rest = line.partition(" ")
    if word != "exit":
        return "ended"
    status = int(rest)
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


HINTS = {
    "SIGILL": "this build uses processor instructions that this machine does not "
    "have; take a build for an older or generic processor",
    "SIGKILL": "the system may have been out of memory; look into its kernel log",
    "SIGSEGV": "the engine crashed; try another version of it",
}
"""What usually lies behind an engine that a signal ended while starting."""


async def _until_ready(running: Running, spec: LaunchSpec, name: str) -> None:
    endpoint = Endpoint(running.endpoint_url)
    try:
        async with asyncio.timeout(spec.ready_timeout_s):
            while not await _answers(endpoint):
                await asyncio.wait([running.ended], timeout=POLL_S)
                if running.ended.done():
                    raise _ended_early(running, name)
    except TimeoutError:
        raise EngineError(
            f"the engine of the {name} was not ready after {spec.ready_timeout_s:g} s",
            log_tail=running.log_tail(),
            hint="raise `launch.ready_timeout_s` if it was still loading; the whole "
            f"log is in {running.log_path}",
        ) from None


def _ended_early(running: Running, name: str) -> EngineError:
    how = running.ended.result()
    hint = next((text for word, text in HINTS.items() if how.endswith(word)), None)
    return EngineError(
        f"the engine of the {name} {how} while starting",
        log_tail=running.log_tail(),
        hint=hint or f"the whole log is in {running.log_path}",
    )


async def _answers(endpoint: Endpoint) -> bool:
    """Whether the engine lists its models, and is healthy where it can say so.

    ``/v1/models`` decides: llama.cpp answers it only when loaded, and an engine
    without ``/health`` still has it.
    """
    try:
        health = await fetch(endpoint, endpoint.at("/health"), deadline_s=5.0)
        if health.status not in (200, 404, 405):
            return False
        models = await fetch(endpoint, endpoint.api("models"), deadline_s=5.0)
    except ConfigError:
        return False
    return models.status in (200, 401, 403)


async def _ended(keeper: asyncio.subprocess.Process) -> None:
    """Wait for the guardian, also while this task is being cancelled."""
    waiting = asyncio.ensure_future(keeper.wait())
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
