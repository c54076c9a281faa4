"""Walk the way back: a shadow canary is made to fail, and its share must become 0.

The shadow has its own name (and so its own split), its own store in a folder of its
own and its own port; real callers never meet it. Its upstreams are the real routes.
"""

import asyncio
import contextlib
import itertools
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import time

import msgspec
import uvloop

from routeproof.canary.config import CanaryConfig, load_canary
from routeproof.canary.config_checks import check_pairing
from routeproof.canary.deciding.state import State, Steps
from routeproof.canary.deciding.store import AuditEntry, StaleRevisionError
from routeproof.canary.deciding.stores import open_store
from routeproof.canary.gateway import Gateway
from routeproof.canary.relay.headers import request_head
from routeproof.canary.relay.upstream import Pool, UpstreamError
from routeproof.canary.serve import Serving, serving
from routeproof.canary.splitting.split import PPM
from routeproof.canary.weighing.evidence import SignalPolicy
from routeproof.errors import ConfigError
from routeproof.jobs.gathering.drill_evidence import Drilled, How
from routeproof.proof.canary import GradersSpec
from routeproof.simulator.defects import Defects, StreamDefects
from routeproof.simulator.proxy import serve_proxy

EVIDENCE_NAME = "drill.json"
WORKERS = 4
WARM_REQUESTS = 20
AFTER_REQUESTS = 40
BROKEN = Defects(stream=StreamDefects(error_status_share=1.0))


@dataclass(frozen=True, slots=True)
class DrillOptions:
    """How a drill is done.

    Attributes:
        model: Name of the model the drill's own requests ask for.
        limit_s: The canary must have gone back within this time.
    """

    how: How = "fault"
    model: str = "default"
    limit_s: float = 120.0


def drill(path: Path, options: DrillOptions | None = None) -> tuple[Drilled, Path]:
    """Drill the canary of a file; returns the evidence and where it is stored.

    Raises:
        ConfigError: The file is wrong, or the baseline does not answer.
        StoredRunError: The evidence cannot be noted in the canary's audit.
    """
    config = load_canary(path)
    check_pairing(path)
    chosen = options or DrillOptions()
    with tempfile.TemporaryDirectory(prefix="routeproof-drill-") as folder:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(_drill(config, chosen, Path(folder)))
    config.folder.mkdir(parents=True, exist_ok=True)
    kept = config.folder / EVIDENCE_NAME
    kept.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
    _note(config, found)
    return found, kept


async def _drill(config: CanaryConfig, options: DrillOptions, folder: Path) -> Drilled:
    async with _broken_candidate(config, options.how) as url:
        shadow = _shadow(config, url, folder)
        gateway = Gateway(shadow, environ=os.environ)
        async with serving(gateway) as running:
            return await _walk(running, options)


@contextlib.asynccontextmanager
async def _broken_candidate(config: CanaryConfig, how: How) -> AsyncIterator[str]:
    url = config.upstreams["canary"]
    if how == "trigger":
        yield url
        return
    async with serve_proxy(url, BROKEN) as proxy:
        yield proxy.url


def _shadow(config: CanaryConfig, candidate_url: str, folder: Path) -> CanaryConfig:
    traffic = msgspec.structs.replace(
        config.spec.traffic, sticky_by="user", fallback=(), hosts=()
    )
    return replace(
        config,
        name=f"{config.name}-drill",
        spec=msgspec.structs.replace(
            config.spec,
            traffic=traffic,
            graders=GradersSpec(),
            privacy=msgspec.structs.replace(config.spec.privacy, replay=False),
        ),
        upstreams={**config.upstreams, "canary": candidate_url},
        steps=Steps(weights_ppm=(PPM // 2,)),
        policies={"error": SignalPolicy()},
        sample_ppm=PPM,
        folder=folder,
        listen="127.0.0.1:0",
        admin="127.0.0.1:0",
        tls=None,
        access_log=None,
    )


@dataclass(slots=True)
class _Callers:
    """The drill's own callers, each another user."""

    url: str
    model: str
    sent: int = 0
    failed: int = 0
    _users: Iterator[int] = field(default_factory=itertools.count)
    _pool: Pool = field(init=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self.url)

    async def one(self) -> None:
        """One short question."""
        asked = {
            "model": self.model,
            "messages": [{"role": "user", "content": "Say one word."}],
            "max_tokens": 8,
            "user": f"drill-{next(self._users)}",
        }
        body = msgspec.json.encode(asked)
        headers = [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        self.sent += 1
        head = request_head("POST", b"/v1/chat/completions", headers)
        try:
            exchange = await self._pool.send(head, body)
        except UpstreamError:
            self.failed += 1
            return
        try:
            while await exchange.read():
                pass
            self.failed += exchange.status != 200
        except UpstreamError:
            self.failed += 1
        finally:
            exchange.close()

    async def many(self, n: int) -> None:
        """``n`` questions, a few at a time."""
        for first in range(0, n, WORKERS):
            size = min(WORKERS, n - first)
            await asyncio.gather(*(self.one() for _ in range(size)))

    def close(self) -> None:
        """Drop the connections."""
        self._pool.close()


async def _walk(running: Serving, options: DrillOptions) -> Drilled:
    gateway = running.gateway
    assert running.data_url is not None
    callers = _Callers(running.data_url, options.model)
    try:
        await callers.one()
        if callers.failed:
            raise ConfigError(
                "the baseline does not answer the drill's question properly",
                hint="start both routes, name the model by --model",
            )
        await asyncio.to_thread(gateway.command, "start", actor="drill")
        await callers.many(WARM_REQUESTS)
        if options.how == "trigger":
            await asyncio.to_thread(
                gateway.command, "rollback", actor="drill", reason="drill"
            )
        state = await _until_back(gateway, callers, options.limit_s)
        before, reached = callers.sent, _reached(gateway)
        callers.failed = 0
        await callers.many(AFTER_REQUESTS)
    finally:
        callers.close()
    return Drilled(
        canary=gateway.config.name.removesuffix("-drill"),
        how=options.how,
        at_s=time(),
        candidate_digest=gateway.config.candidate_digest,
        reason=state.reason,
        requests_before=before,
        candidate_before=reached,
        requests_after=AFTER_REQUESTS,
        candidate_after=_reached(gateway) - reached,
        failed_after=callers.failed,
        to_last_byte_s=gateway.rollback_s,
        to_share_zero_s=gateway.share_zero_s,
        audit=tuple(f"{e.action}: {e.reason}" for e in gateway.store.since(0)),
    )


def _reached(gateway: Gateway) -> int:
    """Requests that went to the candidate, ended or not."""
    counts = gateway.router.counts.requests
    ended = sum(n for (arm, _), n in counts.items() if arm == "canary")
    return ended + gateway.meter.in_flight["canary"]


async def _until_back(gateway: Gateway, callers: _Callers, limit_s: float) -> State:
    """Ask on until the canary has gone back, or the time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + limit_s
    while True:
        state = await asyncio.to_thread(gateway.store.read, gateway.config.name)
        assert state is not None
        is_back = state.phase == "rolled_back" and gateway.rollback_s is not None
        if is_back or loop.time() > until:
            return state
        await callers.many(WORKERS)


def _note(config: CanaryConfig, found: Drilled) -> None:
    """Write the drill into the audit of the real canary; its state stays."""
    store = open_store(config.spec.store, config.folder)
    for _ in range(20):
        state = store.read(config.name)
        expected = 0 if state is None else state.revision
        kept = state or State(
            name=config.name, candidate_digest=config.candidate_digest
        )
        entry = AuditEntry(
            name=config.name,
            actor="drill",
            action="drill",
            reason=found.in_words(),
            at_s=found.at_s,
            revision=expected + 1,
            numbers={
                "to_last_byte_s": found.to_last_byte_s,
                "to_share_zero_s": found.to_share_zero_s,
                "candidate_before": found.candidate_before,
                "candidate_after": found.candidate_after,
            },
        )
        fresh = msgspec.structs.replace(kept, revision=expected + 1)
        try:
            store.write(fresh, expected=expected, entry=entry)
            return
        except StaleRevisionError:
            continue
    raise ConfigError("the canary's state is written too often to note the drill")
