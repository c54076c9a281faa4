"""Serve a canary: data listener, admin listener, controller, until told to stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from routeproof.canary.gateway import Gateway
from routeproof.canary.server import server
from routeproof.errors import ConfigError


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
    config, traffic = gateway.config, gateway.config.spec.traffic
    listeners = [
        server(
            gateway.relay,
            config.listen,
            head_deadline_s=traffic.receive_deadline_s,
        )
    ]
    if admin is not None:
        listeners.append(server(admin, config.admin, grace_s=1))
    gateway.taster.start()
    control = asyncio.create_task(gateway.control())
    running = [asyncio.create_task(_serve(each)) for each in listeners]
    try:
        for each, task in zip(listeners, running, strict=True):
            await _until_started(each, task)
        yield Serving(
            gateway, _url(listeners[0]), _url(listeners[1]) if admin else None
        )
    finally:
        for each in listeners:
            each.should_exit = True
        await asyncio.gather(*running, return_exceptions=True)
        control.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await control
        for pool in gateway.router.pools.values():
            pool.close()
        await asyncio.to_thread(gateway.taster.stop)


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
