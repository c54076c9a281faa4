"""``routeproof simulate``: a simulated engine or a fault proxy, until it is stopped."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import uvloop

from routeproof.errors import ConfigError
from routeproof.jobs.virtual.simulated_answers import book_of
from routeproof.proof.workload import WorkloadSpec
from routeproof.simulator.book import EMPTY, Book
from routeproof.simulator.defects import Defects
from routeproof.simulator.faults import FAULTS, Fault, defects_of, parse_fault
from routeproof.simulator.proxy import Proxying, serve_proxy
from routeproof.simulator.route import SimulatedRoute, Speculation
from routeproof.simulator.server import Serving, serve
from routeproof.workloads.cases import load_cases

DIALECTS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama.cpp": "llamacpp",
    "tensorrt-llm": "tensorrt_llm",
    "openai": "openai",
}
"""Names of engines as people write them, to the simulator's own."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What to serve, and where.

    Attributes:
        in_front_of: URL of a real engine; the fault proxy is served then.
        cases: Case files (or ``golden``) that a scripted engine knows the answers to.
        faults: ``NAME`` or ``NAME:STRENGTH``.
        config: A JSON or YAML file of a ``SimulatedRoute``, changed by the rest.
    """

    engine: str | None = None
    in_front_of: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    faults: tuple[str, ...] = ()
    cases: tuple[str, ...] = ("golden",)
    draft_tokens: int | None = None
    answers: str | None = None
    speed: float | None = None
    config: Path | None = None


def simulate(wanted: Simulation, listener: Callable[[str], None]) -> None:
    """Serve until interrupted.

    Args:
        wanted: What to serve.
        listener: Called once with the URL when it answers.

    Raises:
        ConfigError: An unknown engine or fault, or a fault that a proxy cannot make.
    """
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_until_stopped(_server(wanted), listener))


def faults() -> tuple[Fault, ...]:
    """Every fault, by family."""
    return tuple(f for f in FAULTS.values() if not f.name.startswith("~"))


def route_of(wanted: Simulation) -> SimulatedRoute:
    """The simulated route that is asked for.

    Raises:
        ConfigError: An unknown engine or fault, or a wrong config file.
    """
    route = SimulatedRoute() if wanted.config is None else _read(wanted.config)
    changes: dict[str, object] = {}
    if wanted.engine is not None:
        dialect = DIALECTS.get(wanted.engine)
        if dialect is None:
            known = ", ".join(DIALECTS)
            raise ConfigError(
                f"no such engine to simulate: `{wanted.engine}`",
                key="--engine",
                hint=f"known: {known}",
            )
        changes["dialect"] = dialect
    if wanted.draft_tokens is not None:
        spec = route.speculation or Speculation()
        changes["speculation"] = (
            msgspec.structs.replace(spec, draft_tokens=wanted.draft_tokens)
            if wanted.draft_tokens
            else None
        )
    if wanted.answers is not None:
        changes["answers"] = wanted.answers
    if wanted.speed is not None:
        changes["speed"] = wanted.speed
    if wanted.faults:
        changes["faults"] = dict(parse_fault(text) for text in wanted.faults)
    return msgspec.structs.replace(route, **changes)


def _read(path: Path) -> SimulatedRoute:
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=SimulatedRoute)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(str(error), path=path) from None


def _server(
    wanted: Simulation,
) -> AbstractAsyncContextManager[Serving] | AbstractAsyncContextManager[Proxying]:
    if wanted.in_front_of is None:
        route = route_of(wanted)
        defects_of(route)
        book = _book(wanted.cases) if route.answers == "script" else EMPTY
        return serve(route, book=book, host=wanted.host, port=wanted.port)
    return serve_proxy(
        wanted.in_front_of,
        _proxy_defects(wanted.faults),
        host=wanted.host,
        port=wanted.port,
    )


def _proxy_defects(texts: Iterable[str]) -> Defects:
    chosen = dict(parse_fault(text) for text in texts)
    impossible = [name for name in chosen if not FAULTS[name].at_proxy]
    if impossible:
        possible = ", ".join(n for n, f in FAULTS.items() if f.at_proxy)
        raise ConfigError(
            f"a proxy cannot make the fault `{impossible[0]}`: it is the engine's own",
            key="--fault",
            hint=f"in front of an engine these can be made: {possible}",
        )
    return defects_of(SimulatedRoute(faults=chosen))


def _book(names: tuple[str, ...]) -> Book:
    return book_of(load_cases(WorkloadSpec(cases=names), Path.cwd()))


async def _until_stopped(
    server: AbstractAsyncContextManager[Serving]
    | AbstractAsyncContextManager[Proxying],
    listener: Callable[[str], None],
) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, stopped.set)
    async with server as running:
        listener(running.url)
        await stopped.wait()
