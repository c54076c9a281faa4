"""Start an engine, wait until it answers, and always stop it again."""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from routeproof.engines import guardian
from routeproof.engines.running import Running, log_tail, wait_until_ready
from routeproof.errors import ConfigError
from routeproof.proof.nearest import nearest
from routeproof.proof.route import LaunchSpec

__all__ = ["Running", "free_port", "launch", "log_tail"]

PORT_FLAGS = ("--port", "-p")

_FILL = re.compile(r"\{([a-z_]+)\}")


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
        await wait_until_ready(running, spec, name)
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
