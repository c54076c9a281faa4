"""Serve a canary: data listener, admin listener, controller, until told to stop."""

import asyncio
import gc
import os
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from routeproof.canary.admin.metric_families import measured
from routeproof.canary.admin.server import server
from routeproof.canary.gateway import Gateway
from routeproof.canary.relay.access_log import AccessLog
from routeproof.canary.relay.listener import Address, Listener
from routeproof.errors import ConfigError

LOG_EVERY_S = 1.0
"""How often the access log is written."""

SWITCH_S = 0.0005
FILES = 65_536

SOCKET_MODE = 0o660
"""Of the admin listener's Unix socket: who may open it may command the canary."""

GRACE_S = 30.0
"""How long running answers may take to end when the gateway stops."""


def settle() -> None:
    """Make the whole process prompt, and able to hold thousands of streams.

    What was loaded so far is left out of garbage collection, whose pauses grow with
    it; a thread that scores hands the interpreter back after half a millisecond
    instead of five; as many files may be open as the system allows.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_S)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


@dataclass(frozen=True, slots=True)
class Serving:
    """A gateway that answers.

    Attributes:
        data_url, admin_url: Base URLs; ``None`` for Unix sockets.
    """

    gateway: Gateway
    data_url: str | None
    admin_url: str | None


@asynccontextmanager
async def serving(
    gateway: Gateway, admin: Callable[..., Any] | None = None
) -> AsyncIterator[Serving]:
    """Run a gateway for the length of a block.

    Raises:
        ConfigError: An address is taken or makes no sense.
    """
    config = gateway.config
    for address in (config.listen, config.admin):
        _check_free(Address.of(address))
    data = Listener(
        gateway.relay, Address.of(config.listen), gateway.limits, gateway.tls_context()
    )
    people = server(admin, config.admin, tls=config.tls, grace_s=1) if admin else None
    gateway.taster.start()
    gateway.side.start(lambda: measured(gateway))
    tasks = [asyncio.create_task(gateway.control())]
    log = None
    if config.access_log is not None:
        log = AccessLog(config.access_log, gateway.wall)
        gateway.relay.ended = log.note
        tasks.append(asyncio.create_task(_write_on(log)))
    task = None if people is None else asyncio.create_task(_serve(people))
    try:
        if people is not None and task is not None:
            await _until_started(people, task)
            if people.config.uds:
                os.chmod(people.config.uds, SOCKET_MODE)
        await data.start()
        yield Serving(gateway, data.url, _url(people) if people else None)
    finally:
        await data.stop(GRACE_S)
        if people is not None and task is not None:
            people.should_exit = True
            await asyncio.gather(task, return_exceptions=True)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if log is not None:
            log.write()
        for pool in gateway.router.pools.values():
            pool.close()
        await asyncio.to_thread(gateway.side.stop)


def _check_free(address: Address) -> None:
    """A Unix socket can be taken from a gateway that runs; a port cannot.

    Raises:
        ConfigError: Somebody answers there.
    """
    if address.unix is None:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.settimeout(1.0)
        try:
            asked.connect(address.unix)
        except OSError:
            return
    raise ConfigError(
        f"somebody listens on unix:{address.unix} already",
        hint="stop the gateway that runs there first",
    )


async def _write_on(log: AccessLog) -> None:
    while True:
        await asyncio.sleep(LOG_EVERY_S)
        await asyncio.to_thread(log.write)


async def _serve(listener: uvicorn.Server) -> None:
    try:
        await listener.serve()
    except SystemExit:
        raise ConfigError(
            f"cannot listen on {listener.config.host}:{listener.config.port}",
            hint="the port is taken, or the address is not of this machine",
        ) from None


async def _until_started(listener: uvicorn.Server, task: "asyncio.Task[None]") -> None:
    while not listener.started:
        if task.done():
            task.result()
            raise ConfigError("a listener ended while starting")
        await asyncio.sleep(0.01)


def _url(listener: uvicorn.Server) -> str | None:
    if listener.config.uds:
        return None
    scheme = "https" if listener.config.ssl_certfile else "http"
    port = listener.servers[0].sockets[0].getsockname()[1]
    return f"{scheme}://{listener.config.host}:{port}"
