"""State changes that race with requests: no candidate byte after the bound.

The bound of a rollback is its return: from then on no request is given to the
candidate. The bound of everything else (a store that is gone, a controller that hangs)
is the lease.
"""

import asyncio
import json
import threading
import time

import pytest
from canary_cases import a_gateway, ask, run, until
from fakes.openai_server import event, json_reply, stream_end, stream_head

from routeproof.canary.deciding.lease import Lease
from routeproof.canary.deciding.state import State
from routeproof.errors import StoredRunError

pytestmark = pytest.mark.slow

MORE = "  steps: [0.5]\n  traffic: {drain: cut}\n"
CALLERS = 8


def a_state(revision, weight_ppm):
    return State(
        name="c", candidate_digest="d", revision=revision, weight_ppm=weight_ppm
    )


def test_a_reading_older_than_the_one_held_does_not_renew_the_lease():
    now = [0.0]
    lease = Lease(lease_s=10.0, clock=lambda: now[0])
    lease.renew(a_state(5, 500_000))
    lease.renew(a_state(6, 0))
    lease.renew(a_state(5, 500_000))
    assert lease.weight_ppm() == 0
    lease.renew(a_state(7, 500_000))
    now[0] = 9.0
    lease.renew(a_state(6, 0))
    now[0] = 10.5
    assert lease.weight_ppm() == 0, "an older reading made the newer one fresh"


def test_a_reading_counts_from_when_it_began():
    now = [0.0]
    lease = Lease(lease_s=10.0, clock=lambda: now[0])
    now[0] = 30.0
    lease.renew(a_state(1, 500_000), read_at_s=15.0)
    assert lease.weight_ppm() == 0
    lease.renew(a_state(1, 500_000), read_at_s=25.0)
    lease.renew(a_state(1, 500_000), read_at_s=15.0)
    assert lease.weight_ppm() == 500_000


def test_a_rollback_between_the_reading_of_a_tick_and_its_end_holds(tmp_path):
    """The tick has read a share when the operator asks for none."""

    async def go():
        async with a_gateway(tmp_path, trusted=[], fast=[], more=MORE) as stand:
            gateway = stand.gateway
            await asyncio.to_thread(gateway.command, "start", actor="test")
            assert gateway.lease.weight_ppm() == 500_000
            look = gateway.controller.look
            operator = threading.Thread(
                target=gateway.command,
                args=("rollback",),
                kwargs={"actor": "operator"},
            )

            def look_while_somebody_rolls_back():
                operator.start()
                operator.join(0.05)
                return look()

            gateway.controller.look = look_while_somebody_rolls_back
            await asyncio.to_thread(gateway.tick)
            gateway.controller.look = look
            await asyncio.to_thread(operator.join)
            return gateway.lease.weight_ppm()

    assert run(go()) == 0


class Watched:
    """A router that notes every decision for the candidate."""

    def __init__(self, router):
        self.router, self.given = router, []

    def route(self, request):
        decision = self.router.route(request)
        if decision.arm == "canary":
            self.given.append(time.monotonic())
        return decision

    def ended(self, *told):
        self.router.ended(*told)


async def hammer(url, number, stop):
    """Requests of ever new users, one after the other, until told to stop."""
    i = 0
    while not stop.is_set():
        user = f"{number}-{i}"
        body = json.dumps({"messages": [], "user": user, "stream": i % 2 == 0})
        await ask(url, body.encode())
        i += 1
    return i


def broken(*_, **__):
    raise StoredRunError("the store is gone")


class Race:
    """A gateway under load whose state changes; when nothing may reach the candidate.

    Attributes:
        skew: Seconds the gateway's clock is ahead.
        closed: Spans of time in which no request may be given to the candidate.
    """

    def __init__(self, stand, skew):
        self.stand, self.gateway, self.skew = stand, stand.gateway, skew
        self.watched = Watched(self.gateway.router)
        self.gateway.relay.router = self.watched
        self.read, self.look = self.gateway.store.read, self.gateway.controller.look
        self.gateway.controller.look = self.look_long
        self.looking, self.closed = threading.Event(), []

    def look_long(self):
        """Long enough for an operator to come between reading and renewing."""
        self.looking.set()
        for _ in range(60):
            seen = self.look()
        return seen

    async def command(self, name):
        await asyncio.to_thread(self.gateway.command, name, actor="test")

    async def given_more(self, n):
        before = len(self.watched.given)
        while len(self.watched.given) < before + n:
            await asyncio.sleep(0)

    async def served_more(self, n):
        before = len(self.stand.trusted.seen)
        while len(self.stand.trusted.seen) < before + n:
            await asyncio.sleep(0)

    async def lapse(self):
        """The store dies, and the lease runs out."""
        self.gateway.store.read = broken
        await asyncio.to_thread(self.gateway.tick)
        self.skew[0] += self.gateway.config.lease_s + 0.01
        begun = time.monotonic()
        await self.served_more(40)
        self.closed.append((begun, time.monotonic()))
        self.gateway.store.read = self.read

    async def go_back(self):
        """An operator asks for it while a tick looks."""
        self.looking.clear()
        ticking = asyncio.ensure_future(asyncio.to_thread(self.gateway.tick))
        await asyncio.to_thread(self.looking.wait, 10)
        await asyncio.gather(ticking, self.command("rollback"))
        begun = time.monotonic()
        await self.served_more(40)
        self.skew[0] += 2.0
        while self.read("fast").phase != "rolled_back":
            await asyncio.to_thread(self.gateway.tick)
        self.closed.append((begun, time.monotonic()))


def test_rollbacks_and_dead_stores_race_with_requests_and_none_slips_through(tmp_path):
    skew, served = [0.0], json_reply({"id": "c", "choices": []})
    clock = lambda: time.monotonic() + skew[0]  # noqa: E731

    async def go():
        async with a_gateway(
            tmp_path, trusted=served, fast=served, more=MORE, clock=clock
        ) as stand:
            race, stop = Race(stand, skew), asyncio.Event()
            callers = [
                asyncio.create_task(hammer(stand.url, n, stop)) for n in range(CALLERS)
            ]
            for round_ in range(8):
                await race.command("start")
                await race.given_more(5)
                if round_ % 2:
                    await race.lapse()
                await race.go_back()
                await race.command("retry")
            stop.set()
            return race, sum(await asyncio.gather(*callers)), len(stand.fast.seen)

    race, sent, reached = run(go())
    given = race.watched.given
    assert len(race.closed) == 12 and sent > 400 and 0 < reached <= len(given)
    late = [t for t in given for begun, ended in race.closed if begun < t < ended]
    assert late == []


def test_no_byte_of_a_running_answer_comes_after_the_bound(tmp_path):
    """Streams that would run for ever are cut; their last byte is within 2 s."""
    endless = [*stream_head()]
    for i in range(4_000):
        endless += [event({"arm": "canary", "i": i}), 0.005]
    short = [*stream_head(), event({"arm": "baseline"}), *stream_end()]

    async def go():
        async with a_gateway(tmp_path, trusted=short, fast=endless, more=MORE) as stand:
            gateway = stand.gateway
            await asyncio.to_thread(gateway.command, "start", actor="test")
            last, running = [0.0], [0]

            async def one(i):
                host, port = stand.url.removeprefix("http://").split(":")
                reader, writer = await asyncio.open_connection(host, int(port))
                body = json.dumps({"messages": [], "user": f"u{i}"}).encode()
                top = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n"
                top += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(top.encode() + body)
                seen = b""
                while data := await reader.read(65_536):
                    if b'"canary"' in data:
                        last[0] = time.monotonic()
                        running[0] += b'"canary"' not in seen
                    seen = seen[-10:] + data if seen else data
                writer.close()

            asked = [asyncio.create_task(one(i)) for i in range(30)]
            while running[0] < 5:
                await asyncio.sleep(0)
            began = time.monotonic()
            await asyncio.to_thread(gateway.command, "rollback", actor="test")
            await asyncio.gather(*asked)
            await until(lambda: gateway.store.read("fast").phase == "rolled_back")
            await until(lambda: gateway.rollback_s is not None)
            return last[0] - began, gateway.rollback_s, gateway.share_zero_s

    after_s, measured_s, share_zero_s = run(go())
    assert after_s < 2.0
    assert 0 <= measured_s <= share_zero_s < 2.0
