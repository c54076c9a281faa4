"""How fast the paced server writes, and how late.

``python benchmarks/simulator.py``: for 64, 256 and 512 streams, the paced server in one
process on one core and a reader that only drains its sockets in another process on
another core. Every figure is the server's own: a chunk is late by the time between the
moment it was meant for and the moment the system had taken it. The server asks for
priority (``--priority``); what it got and the machine's load are in the output,
one JSON document for each number of streams.

``--busy-reader`` reads whatever arrives at once, as a load client would: the server
then pays for waking it up.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import selectors
import socket
import time

import uvloop

from routeproof.simulator.route import Quality, SimulatedRoute
from routeproof.simulator.server import serve

WARM_S = 1.0
READ_EVERY_S = 0.05
"""The quiet reader's pause: each look at a socket costs the writer cache lines."""


def settle(core):
    """Take a core, priority and a still heap as far as the system lets us."""
    gc.collect()
    gc.freeze()
    gc.disable()
    if len(os.sched_getaffinity(0)) > core:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})
    return {"core": sorted(os.sched_getaffinity(0))}


def hurry(wanted):
    """Take the priority as far as the system grants it; its name.

    Real time is no better than ``nice``: the kernel takes the core away from a process
    of that class that never sleeps, for 50 ms in each second.
    """
    try:
        if wanted == "nice":
            return f"nice {os.nice(-20)}"
        if wanted == "real-time":
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            return "SCHED_RR 1"
    except PermissionError:
        pass
    return "usual"


def request(tokens):
    body = json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "x"}],
            "stream": True,
            "max_tokens": tokens,
        }
    ).encode()
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
    )
    return head % len(body) + body


def read(port, streams, seconds, busy):
    """Open the streams all at once and drain them; bytes read."""
    settle(1)
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(streams)]
    asked = request(1_000_000)
    for one in sockets:
        one.setblocking(False)
        one.sendall(asked)
    space, got, until = bytearray(1 << 18), 0, time.perf_counter() + seconds
    with selectors.EpollSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ)
        while time.perf_counter() < until:
            for key, _ in selector.select(0.1):
                got += key.fileobj.recv_into(space)
            if not busy:
                time.sleep(READ_EVERY_S)
    for one in sockets:
        one.close()
    return got


async def serving(pipe, streams, rate, priority):
    route = SimulatedRoute(paced_s=streams / rate, quality=Quality(filler_tokens=64))
    settled = settle(0) | {"priority": hurry(priority)}
    async with serve(route) as running:
        server = running.server
        pipe.send(running.port)
        while not server.chunks:
            await asyncio.sleep(0.01)
        await asyncio.sleep(WARM_S)
        server.lateness.clear()
        before, began = server.report(), time.perf_counter()
        while not pipe.poll():
            await asyncio.sleep(0.1)
        after, wall_s = server.report(), time.perf_counter() - began
        chunks = after["chunks"] - before["chunks"]
        writing_s = after["writing_s"] - before["writing_s"]
        late = {name: after[name] for name in after if "late" in name}
        figures = {
            "chunks": chunks,
            "chunks_per_s": chunks / wall_s,
            "writing_share": writing_s / wall_s,
            "us_per_chunk": writing_s / chunks * 1e6,
            "deferred_chunks": after["deferred_chunks"] - before["deferred_chunks"],
        }
        pipe.send(settled | figures | late)


def serve_until_told(*arguments):
    uvloop.run(serving(*arguments))


def measured(streams, given):
    rate, seconds, busy = given.rate, given.seconds, given.busy_reader
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(
        target=serve_until_told, args=(theirs, streams, rate, given.priority)
    )
    server.start()
    port = ours.recv()
    reader = context.Process(target=read, args=(port, streams, seconds + 4, busy))
    reader.start()
    ours.poll(WARM_S + 1.0 + seconds)
    ours.send("stop")
    found = ours.recv()
    server.join()
    reader.kill()
    reader.join()
    load = os.getloadavg()[0]
    asked = {"streams": streams, "asked_chunks_per_s": rate, "load_average": load}
    return asked | found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[64, 256, 512])
    parser.add_argument("--rate", type=float, default=50_000.0, help="chunks/s in all")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--busy-reader", action="store_true")
    parser.add_argument(
        "--priority", choices=["nice", "real-time", "usual"], default="nice"
    )
    given = parser.parse_args()
    for streams in given.streams:
        print(json.dumps(measured(streams, given), indent=1), flush=True)


if __name__ == "__main__":
    main()
