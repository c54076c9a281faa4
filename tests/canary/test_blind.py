"""A dead scorer, a dead store, a full disk: no candidate traffic past the lease.

The gateway's clock is a hand on a dial; ``serving`` ticks by itself meanwhile.
"""

import asyncio
import json
import sqlite3
import threading
import time

import pytest
from canary_cases import a_gateway, ask, run, split, until
from fakes.openai_server import json_reply

from routeproof.canary.samples.signals import SIGNALS, Signal
from routeproof.canary.tasting.blindness import blindness, try_disk
from routeproof.errors import StoredRunError

pytestmark = pytest.mark.slow

MORE = "  steps: [0.5]\n"
CHOICE = {"index": 0, "message": {"content": "sea"}, "finish_reason": "stop"}
GOOD = json_reply({"id": "c", "choices": [CHOICE]})


class Dial:
    """Monotonic seconds that may be moved on."""

    def __init__(self):
        self.more_s = 0.0

    def __call__(self):
        return time.monotonic() + self.more_s


async def some(stand, first, n):
    """``n`` requests of as many users, answered properly whatever is broken behind."""
    bodies = [json.dumps({"messages": [], "user": f"u{first + i}"}) for i in range(n)]
    answers = [split(await ask(stand.url, body.encode())) for body in bodies]
    assert {status for status, _, _ in answers} == {200}


async def lapsed(tmp_path, breaks, *, mends=None, is_felt=lambda gateway: True):
    """Candidate requests before, past the lease, and after the mending.

    The time begins to run once the gateway has come upon what is broken.
    """
    dial = Dial()
    async with a_gateway(
        tmp_path, trusted=GOOD, fast=GOOD, more=MORE, clock=dial
    ) as stand:
        gateway = stand.gateway
        await asyncio.to_thread(gateway.command, "start", actor="test")
        await some(stand, 0, 20)
        before = len(stand.fast.seen)
        breaks(gateway)
        await some(stand, 100, 4)
        await until(lambda: is_felt(gateway))
        ticking = asyncio.ensure_future(asyncio.to_thread(gateway.tick))
        await asyncio.wait([ticking], timeout=0.3)
        dial.more_s += gateway.config.lease_s + 0.1
        if gateway.blind is None and ticking.done():
            await asyncio.to_thread(gateway.tick)
        reached = len(stand.fast.seen)
        await some(stand, 200, 30)
        past = len(stand.fast.seen) - reached
        why = gateway.blind or gateway.controller.last_error
        back = None
        if mends is not None:
            mends(gateway)
            await ticking
            for _ in range(2):  # the first may still find what the last one left
                await asyncio.to_thread(gateway.tick)
            while gateway.blind is not None:
                await asyncio.to_thread(gateway.tick)
            await some(stand, 300, 20)
            back = len(stand.fast.seen) - reached
        return before, past, why, back


def test_a_store_that_hangs(tmp_path):
    hold = threading.Event()

    def hang(gateway):
        read = gateway.store.read
        gateway.store.read = lambda name: hold.wait(30) and read(name)

    before, past, _, back = run(lapsed(tmp_path, hang, mends=lambda _: hold.set()))
    assert before > 0 and past == 0 and back > 0


def test_a_state_that_cannot_be_read(tmp_path):
    def garble(gateway):
        with sqlite3.connect(gateway.store.path) as db:
            db.execute("UPDATE state SET body = x'00'")
        db.close()

    before, past, why, _ = run(lapsed(tmp_path, garble))
    assert before > 0 and past == 0 and "cannot be read" in why


def test_a_controller_that_breaks(tmp_path):
    def fail():
        raise ZeroDivisionError

    async def go():
        dial = Dial()
        async with a_gateway(
            tmp_path, trusted=GOOD, fast=GOOD, more=MORE, clock=dial
        ) as stand:
            gateway = stand.gateway
            await asyncio.to_thread(gateway.command, "start", actor="test")
            look = gateway.controller.look
            gateway.controller.look = fail
            await asyncio.to_thread(gateway._tick_safely)
            dial.more_s += gateway.config.lease_s + 0.1
            await some(stand, 0, 20)
            past, why = len(stand.fast.seen), gateway.controller.last_error
            gateway.controller.look = look
            await until(lambda: gateway.controller.last_error is None)
            await some(stand, 0, 20)
            return past, why, len(stand.fast.seen)

    past, why, after = run(go())
    assert past == 0 and "ZeroDivisionError" in why and after > 0


def test_a_scorer_that_never_comes_back(tmp_path):
    hold = threading.Event()

    def hang(gateway):
        wait = Signal("hangs", lambda seen: hold.wait(30) and None)
        gateway.taster.signals = {**SIGNALS, "own": wait}
        gateway.taster.now_ns = lambda: int(gateway.clock() * 1e9)

    found = lapsed(
        tmp_path,
        hang,
        mends=lambda _: hold.set(),
        is_felt=lambda gateway: gateway.taster._oldest_ns is not None,
    )
    before, past, why, back = run(found)
    assert before > 0 and past == 0 and "at one answer for" in why and back > 0


def test_a_scorer_whose_thread_is_gone(tmp_path):
    def end(gateway):
        gateway.taster._waiting.end()
        gateway.taster._thread.join()

    before, past, why, _ = run(lapsed(tmp_path, end))
    assert before > 0 and past == 0 and why == "the scorer is not running"


def test_a_disk_that_takes_no_samples_and_one_that_takes_them_again(tmp_path):
    def full(*_, **__):
        raise StoredRunError("database or disk is full")

    def fill(gateway):
        monkey.setattr(type(gateway.taster.spool), "_open", full)

    def empty(gateway):
        monkey.undo()

    with pytest.MonkeyPatch.context() as monkey:
        found = lapsed(
            tmp_path,
            fill,
            mends=empty,
            is_felt=lambda gateway: gateway.taster.disk_error is not None,
        )
        before, past, why, back = run(found)
    assert before > 0 and past == 0 and "disk is full" in why and back > 0


def test_evidence_that_cannot_be_kept(tmp_path):
    def block(gateway):
        (gateway.config.folder / "evidence.tmp").mkdir()

    def free(gateway):
        (gateway.config.folder / "evidence.tmp").rmdir()

    found = lapsed(
        tmp_path,
        block,
        mends=free,
        is_felt=lambda gateway: gateway.taster.memory_error is not None,
    )
    before, past, why, back = run(found)
    assert before > 0 and past == 0 and "cannot keep the evidence" in why and back > 0


def test_blindness_stops_nothing_that_was_promoted(tmp_path):
    async def go():
        dial = Dial()
        more = "  steps: [0.5, 1.0]\n"
        async with a_gateway(
            tmp_path, trusted=GOOD, fast=GOOD, more=more, clock=dial
        ) as stand:
            for command in ("start", "promote"):
                await asyncio.to_thread(stand.gateway.command, command, actor="test")
            stand.gateway.taster._thread = threading.Thread()
            dial.more_s += 60.0
            await asyncio.to_thread(stand.gateway.tick)
            await some(stand, 0, 5)
            blind, stand.gateway.taster._thread = stand.gateway.blind, None
            return blind, len(stand.fast.seen)

    assert run(go()) == ("the scorer is not running", 5)


def test_a_long_queue_is_no_blindness_and_a_healthy_disk_is_not_tried(tmp_path):
    async def go():
        async with a_gateway(tmp_path, trusted=GOOD, fast=GOOD, more=MORE) as stand:
            taster = stand.gateway.taster
            taster.last_error = "TypeError while tasting"
            try_disk(taster)
            return blindness(taster, 5.0), taster.last_error

    assert run(go()) == (None, "TypeError while tasting")
