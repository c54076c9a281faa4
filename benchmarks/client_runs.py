"""One client under test, in a process of its own; prints one JSON line.

Called by ``client.py``: ``python client_runs.py KIND PORT STREAMS ROUNDS CHUNKS``.
Every kind sends the same requests to the same mock and reports, per request, the time
to first token as this client would print it.
"""

import asyncio
import gc
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from time import monotonic_ns

START = time.perf_counter()
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `routeproof load` does
BODY = b'{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}]}'


class Floor(asyncio.Protocol):
    """The least a client can do: stamp, keep the bytes, look for the end."""

    def connection_made(self, transport):
        self.transport = transport

    def begin(self, request):
        self.done = asyncio.get_running_loop().create_future()
        self.stamps, self.pieces = [], []
        self.sent_ns = monotonic_ns()
        self.transport.write(request)
        return self.done

    def data_received(self, data):
        self.stamps.append(monotonic_ns())
        self.pieces.append(data)
        if data.endswith(b"0\r\n\r\n"):
            self.done.set_result(None)


async def floor(port, streams, rounds):
    found = {}
    loop = asyncio.get_running_loop()

    async def stream(number):
        _, client = await loop.create_connection(Floor, "127.0.0.1", port)
        for turn in range(rounds):
            name = f"{number}/{turn}"
            await client.begin(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"X-Request-ID: %b\r\nContent-Length: %d\r\n\r\n%b"
                % (name.encode(), len(BODY), BODY)
            )
            found[name] = (client.stamps[0] - client.sent_ns) / 1e6

    await asyncio.gather(*map(stream, range(streams)))
    return found


async def client(port, streams, rounds):
    """The streaming client alone; what parsing would add is measured at the end."""
    from routeproof.engines.endpoint import Endpoint
    from routeproof.runs.client import Client
    from routeproof.runs.request import head_of, request_of

    found, kept = {}, []
    one = Client(Endpoint(f"http://127.0.0.1:{port}/v1"))
    head = head_of(one.endpoint, "chat/completions")
    await one.open(streams)
    gc.freeze()
    gc.disable()

    async def stream(number):
        for turn in range(rounds):
            name = f"{number}/{turn}"
            capture = await one.send(request_of(head, BODY, name))
            found[name] = (capture.stamps[0] - capture.dispatched_ns) / 1e6
            if turn == 0:
                kept.append((name, capture))

    await asyncio.gather(*map(stream, range(streams)))
    await one.close()
    USED.append(_cpu_s())
    PARSED.append(_parsed(kept))
    return found


def _parsed(captures):
    """Microseconds of CPU per chunk from bytes to a record."""
    from routeproof.engines.adapters import adapter
    from routeproof.records.record import Key
    from routeproof.runs.parse import Origin, parse

    plain, origin = adapter("openai"), Origin(captures[0][1].intended_ns, 0.0)
    at = {"arm": "baseline", "phase": "sweep", "level": "c", "block": 0, "trial": 0}
    began, chunks = time.process_time(), 0
    for name, capture in captures:
        key = Key(request_id=name, case_id=name, **at)
        chunks += len(parse(capture, key, plain, origin).stream.chunk_s)
    return (time.process_time() - began) / chunks * 1e6


async def whole(port, streams, rounds):
    """Everything: plan, client, parsing, Parquet parts on disk."""
    return await _conducted(port, streams * rounds, {"concurrency": (streams,)})


async def open_loop(port, rate_per_s, seconds):
    """Short requests at a rate, by an absolute schedule; delays in place of TTFT."""
    stage = {
        "request_rate": (float(rate_per_s),),
        "arrivals": "constant",
        "requests": rate_per_s * seconds,
    }
    return await _conducted(port, rate_per_s * seconds, stage, delays=True)


async def _conducted(port, n_cases, stage, *, delays=False):
    from routeproof.engines.adapters import adapter
    from routeproof.engines.endpoint import Endpoint
    from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
    from routeproof.records.store import RunFolder
    from routeproof.runs.conduct import conduct
    from routeproof.runs.plan import build_plan
    from routeproof.runs.request import Target
    from routeproof.workloads.case import Case

    messages = ({"role": "user", "content": "hi"},)
    cases = [
        Case(id=str(i), class_="load", messages=messages)
        for i in range(min(n_cases, 512))
    ]
    arrivals = ArrivalSpec(**{"requests": n_cases, **stage})
    load = LoadSpec(latency=None, sweep=arrivals, warmup_requests=0, block_size=n_cases)
    plan = build_plan(
        cases, WorkloadSpec(load=load), arms=("baseline",), phases=("sweep",)
    )
    target = Target(Endpoint(f"http://127.0.0.1:{port}/v1"), "mock", adapter("openai"))
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder.create(Path(folder) / "run")
        USED[:] = [_cpu_s()]
        await conduct(plan, {"baseline": target}, run)
        USED.append(_cpu_s())
        found = {}
        for part in run.parts(only=COLUMNS):
            chunks = part.ragged("chunk_s")
            sent = part.number("dispatched_s").values
            first = part.number("intended_s").values if delays else sent
            last = sent if delays else chunks.values[chunks.offsets[:-1]]
            names = part.text("request_id")
            found.update(
                zip(names.tolist(), ((last - first) * 1e3).tolist(), strict=True)
            )
            if delays:
                SENT.extend(zip(part.number("block").values, sent, strict=True))
        return found


COLUMNS = ("request_id", "block", "intended_s", "dispatched_s", "chunk_s")
SENT: list[tuple[float, float]] = []
USED: list[float] = []
"""CPU seconds at the start and at the end of what is measured."""

PARSED: list[float] = []
KINDS = {
    "floor-asyncio": floor,
    "floor-uvloop": floor,
    "routeproof-client": client,
    "routeproof-whole": whole,
    "routeproof-open": open_loop,
}


def main(kind, port, streams, rounds):
    if kind == "floor-asyncio":
        new_loop = asyncio.new_event_loop
    else:
        import uvloop

        new_loop = uvloop.new_event_loop
    if kind.startswith("routeproof"):
        # Imports are start-up, not cost per token.
        import routeproof.engines.adapters
        import routeproof.runs.conduct
        import routeproof.runs.plan  # noqa: F401
    began = time.perf_counter()
    USED.append(_cpu_s())
    with asyncio.Runner(loop_factory=new_loop) as runner:
        found = runner.run(KINDS[kind](int(port), int(streams), int(rounds)))
    report = {
        "found_ms": found,
        "cpu_s": (USED[1] if len(USED) > 1 else _cpu_s()) - USED[0],
        "parse_us": PARSED[0] if PARSED else None,
        "wall_s": time.perf_counter() - began,
        "start_s": began - START,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "rate_per_s": _rate_per_s() if SENT else None,
    }
    # Under PYTHONUNBUFFERED a pipe may take a part of a long line, and print loses the
    # rest; a writer of one's own does not.
    with open(1, "w", closefd=False) as out:
        json.dump(report, out)


def _rate_per_s():
    """Sent per second inside the blocks; between them nothing is due."""
    blocks = {}
    for block, at_s in SENT:
        blocks.setdefault(block, []).append(at_s)
    gaps = sum(len(times) - 1 for times in blocks.values())
    return gaps / sum(max(times) - min(times) for times in blocks.values())


def _cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
