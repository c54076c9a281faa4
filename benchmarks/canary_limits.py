"""The relay alone: very many streams, a very long one, and the way back under load."""

import asyncio
import json
import urllib.request
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil
from canary_streams import Caller, Callers, request

AT_ONCE, EVENTS = 2_000, 1_000_000


async def many(port: int, process: psutil.Process, streams: int = AT_ONCE) -> str:
    """Streams all at once, an event every half second each."""
    callers = Callers(port)
    loop = asyncio.get_running_loop()
    found: list[float] = []
    before, files = process.memory_info().rss, process.num_fds()
    start_s = loop.time() + 0.1
    asked = [
        callers.one(
            request(i, 1_000, x_chunks=16, x_pace_us=500_000),
            start_s + 3.0 * i / streams,
            found.append,
        )
        for i in range(streams)
    ]
    most = asyncio.ensure_future(_most_files(process))
    await asyncio.gather(*asked)
    most.cancel()
    try:
        await most
    except asyncio.CancelledError:
        pass
    callers.close()
    p50, p99 = np.quantile(found, [0.5, 0.99]) * 1e3
    grown = (process.memory_info().rss - before) / 2**20
    return (
        f"{len(found)} of {streams} streams came whole; first event after {p50:.1f} ms "
        f"(p50), {p99:.1f} ms (p99); at most {PEAK[0] - files} more files open; memory "
        f"grew by {grown:.0f} MiB"
    )


PEAK = [0]


async def _most_files(process: psutil.Process) -> None:
    while True:
        PEAK[0] = max(PEAK[0], process.num_fds())
        await asyncio.sleep(0.5)


async def long(port: int, process: psutil.Process, events: int = EVENTS) -> str:
    """One stream of very many events; memory after each tenth."""
    loop = asyncio.get_running_loop()
    _, caller = await loop.create_connection(Caller, "127.0.0.1", port)
    done = caller.ask(request(0, 1_000, x_chunks=events, x_pace_us=0))
    began, size, seen = perf_counter(), events * 190, [_mib(process)]
    while not done.done():
        await asyncio.wait([done], timeout=0.05)
        if caller.bytes >= size * len(seen) / 10 or done.done():
            seen.append(_mib(process))
    took = perf_counter() - began
    caller.transport.close()
    shown = " ".join(f"{each:.1f}" for each in seen)
    return (
        f"{events} events, {caller.bytes / 1e6:.0f} MB in {took:.1f} s; memory in MiB "
        f"before, on the way and after: {shown}"
    )


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 2**20)


async def back(port: int, admin: str, state: Path, rate_per_s: float) -> str:
    """An operator's rollback while half of the streams go to the candidate.

    Two times are shown: what the gateway measured and stored, and from the sending of
    the command to the first status that shows a share of 0, as an operator sees it.
    """
    loop = asyncio.get_running_loop()
    callers, found = Callers(port), list[float]()
    start_s, count = loop.time(), round(rate_per_s * 6)
    load = asyncio.gather(
        *(
            callers.one(
                request(10_000 + i, 1_000), start_s + i / rate_per_s, found.append
            )
            for i in range(count)
        )
    )
    await asyncio.sleep(2.0)
    before = await asyncio.to_thread(_status, admin)
    began = perf_counter()
    await asyncio.to_thread(_post, f"http://{admin}/v1/rollback")
    while (now := await asyncio.to_thread(_status, admin))["observed_share"] != 0:
        if perf_counter() - began > 30:
            raise TimeoutError(f"the share stays at {now['observed_share']}")
        await asyncio.sleep(0.02)
    seen_s = perf_counter() - began
    await load
    callers.close()
    while not (stored_at := state / "last_rollback.json").exists():
        if perf_counter() - began > 30:
            raise TimeoutError("the rollback does not end")
        await asyncio.sleep(0.1)
    stored = json.loads(stored_at.read_text())
    return (
        f"rollback under load: observed share {before['observed_share']:.2f} before; 0 "
        f"seen {seen_s:.2f} s after the command; stored: last candidate byte after "
        f"{stored['trigger_to_last_candidate_byte_s']:.2f} s, share 0 after "
        f"{stored['trigger_to_observed_share_zero_s']:.2f} s; {len(found)} of {count} "
        "streams came whole"
    )


def _status(admin: str) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{admin}/v1/status", timeout=10) as answer:
        return json.load(answer)  # type: ignore[no-any-return]


def _post(url: str) -> None:
    asked = urllib.request.Request(url, data=b"{}", method="POST")
    urllib.request.urlopen(asked, timeout=10).close()
