"""How fast the simulated engine writes, and how late.

``python benchmarks/simulator.py [streams] [chunks/s]``: a paced server in one process,
a reader that only counts bytes in another. Prints one JSON document.
"""

import asyncio
import json
import multiprocessing
import sys
import time

import uvloop

from routeproof.simulator.route import Quality, SimulatedRoute
from routeproof.simulator.server import serve

SECONDS = 8.0


class Reader(asyncio.Protocol):
    def __init__(self, request, tally):
        self.request, self.tally = request, tally

    def connection_made(self, transport):
        transport.write(self.request)

    def data_received(self, data):
        self.tally[0] += len(data)


async def read(port, streams, tokens, seconds):
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
    tally = [0]
    loop = asyncio.get_running_loop()
    made = []
    for number in range(streams):
        transport, _ = await loop.create_connection(
            lambda: Reader(head % len(body) + body, tally), "127.0.0.1", port
        )
        made.append(transport)
        if number % 16 == 15:
            await asyncio.sleep(0.002)  # spread the streams over the pace
    await asyncio.sleep(seconds)
    for transport in made:
        transport.abort()
    return tally[0]


def serving(pipe, pace_s):
    async def go():
        route = SimulatedRoute(paced_s=pace_s, quality=Quality(filler_tokens=64))
        async with serve(route) as running:
            pipe.send(running.port)
            cpu, began, chunks = time.process_time(), time.perf_counter(), 0
            while not pipe.poll():
                await asyncio.sleep(0.2)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - began
            server = running.server
            chunks = server.chunks
            late = server.lateness
            pipe.send(
                {
                    "chunks": chunks,
                    "wall_s": wall,
                    "cpu_s": cpu,
                    "chunks_per_cpu_s": chunks / cpu,
                    "write_lateness_p50_s": late.quantile_s(0.5),
                    "write_lateness_p99_s": late.quantile_s(0.99),
                }
            )

    uvloop.run(go())


def main():
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else 50_000.0
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serving, args=(theirs, streams / rate))
    server.start()
    port = ours.recv()
    tokens = int(SECONDS * 4 * rate / streams)
    got = uvloop.run(read(port, streams, tokens, SECONDS))
    ours.send("stop")
    found = ours.recv()
    server.join()
    found |= {"streams": streams, "asked_chunks_per_s": rate, "bytes_read": got}
    found["chunks_per_s"] = found["chunks"] / SECONDS
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
