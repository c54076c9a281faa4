"""How far from the truth is the load client, and what does it cost?

    python benchmarks/client.py                  # 256 and 512 streams
    python benchmarks/client.py --streams 64 --repeat 5
    python benchmarks/client.py --peers          # also what `make bench-peers` installs

One table: every client sends the same requests to the same mock, one after the other
in random order, several times. The mock logs when it really wrote each first chunk;
``error`` is what the client reports as time to first token minus that truth, request
by request. Tools that run by their own command line (~) report percentiles only: there
it is the difference of percentiles, and their CPU time and memory are those of all
their processes, start included. The floor is a bare protocol loop that only stamps: no
client on this machine can be better, so on a busy machine the ratio to it is what
counts. ``parse us`` is what it costs per chunk to make records of the bytes: part of
``routeproof-whole``, not of ``routeproof-client``. All figures are medians of the
repetitions. A line for which the mock itself was late (p99 of its first writes over
2 ms) is marked with a star.
"""

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import client_tools

HERE = Path(__file__).parent
OWN = ("floor-asyncio", "floor-uvloop", "routeproof-client", "routeproof-whole")
PEER_PYTHON = HERE.parent / ".bench-peers" / "plain" / "bin" / "python"
PEERS = ("aiohttp-reads", "aiohttp-lines", "httpx")
COLUMNS = (
    "error p50",
    "error p95",
    "us/token",
    "of floor",
    "parse us",
    "RSS MB",
    "wall s",
    "start s",
    "mock p99",
)
BARS = {256: (3.0, 10.0), 512: (None, 40.0)}
"""Streams to the most that p50 and p95 of routeproof's error may be, in ms."""

MOST_US_PER_TOKEN, MOST_RSS_MB, MOST_MOCK_LATE_MS = 10.0, 150.0, 2.0


class Mock:
    """The mock in its own process, with one shape of answers."""

    def __init__(self, **shape):
        command = [sys.executable, "-m", "routeproof.runs.mock"]
        self.process = subprocess.Popen(
            [*command, "--shape", json.dumps(shape)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = int(self.process.stdout.readline())

    def rows(self):
        """(Request id, true time to first token in ms) served since the last call."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/log") as reply:
            rows = json.load(reply)["served"]
        return [(name, (first - arrived) / 1e6) for name, arrived, first, _, _ in rows]

    def log(self):
        """The same by request id."""
        return dict(self.rows())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(kind, mock, streams, rounds, *, first_ms, tokens):
    if kind.startswith("~"):
        return measure_tool(kind[1:], mock, streams, rounds, first_ms, tokens)
    python = str(PEER_PYTHON) if kind in PEERS else sys.executable
    script = "client_peers.py" if kind in PEERS else "client_runs.py"
    command = [
        python,
        str(HERE / script),
        kind,
        str(mock.port),
        str(streams),
        str(rounds),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    truth = mock.log()
    errors = [report["found_ms"][name] - truth[name] for name in truth]
    late = quantile([t - first_ms for t in truth.values()], 0.99)
    return {
        "error p50": quantile(errors, 0.5),
        "error p95": quantile(errors, 0.95),
        "us/token": report["cpu_s"] / tokens * 1e6,
        "parse us": report.get("parse_us") or float("nan"),
        "RSS MB": report["rss_mb"],
        "wall s": report["wall_s"],
        "start s": report["start_s"],
        "mock p99": late,
    }


def measure_tool(name, mock, streams, rounds, first_ms, tokens):
    with tempfile.TemporaryDirectory() as folder:
        found = client_tools.measure(name, mock.port, streams, streams * rounds, folder)
    truth = [first for _, first in mock.rows()]
    return {
        "error p50": found["p50"] - quantile(truth, 0.5),
        "error p95": found["p95"] - quantile(truth, 0.95),
        "us/token": found["cpu_s"] / tokens * 1e6,
        "parse us": float("nan"),
        "RSS MB": found["rss_mb"],
        "wall s": found["wall_s"],
        "start s": float("nan"),
        "mock p99": quantile([t - first_ms for t in truth], 0.99),
    }


def table(streams, rounds, repeat, kinds, rng):
    shape = {"first_s": 0.1, "gap_s": 0.01, "chunks": 64}
    tokens = streams * rounds * shape["chunks"]
    cells = {kind: [] for kind in kinds}
    mock = Mock(**shape)
    failed = {}
    for _ in range(repeat):
        for kind in rng.sample(kinds, len(kinds)):
            try:
                found = measure(
                    kind, mock, streams, rounds, first_ms=100.0, tokens=tokens
                )
            except (RuntimeError, subprocess.CalledProcessError, KeyError) as error:
                failed[kind] = str(error).splitlines()[-1][:90]
                mock.log()
                continue
            cells[kind].append(found)
    mock.close()
    print(f"\n{streams} streams, {rounds} rounds, 64 tokens of 10 ms, first at 100 ms")
    print(f"{'client':<20}" + "".join(f"{c:>11}" for c in COLUMNS))
    floor = statistics.median(c["us/token"] for c in cells["floor-uvloop"])
    middles = {}
    for kind in kinds:
        if not cells[kind]:
            print(f"{kind:<20} did not run: {failed.get(kind)}")
            continue
        middle = {
            name: statistics.median(c[name] for c in cells[kind])
            for name in cells[kind][0]
        }
        middle["of floor"] = middle["us/token"] / floor
        late = "*" if middle["mock p99"] > MOST_MOCK_LATE_MS else ""
        print(f"{kind:<20}" + "".join(map(_cell, map(middle.get, COLUMNS))) + late)
        middles[kind] = middle
    compare_with_bars(streams, middles)


def _cell(value):
    return f"{'-' if math.isnan(value) else f'{value:.2f}':>11}"


def compare_with_bars(streams, middles):
    """What the client must reach, against the medians."""
    p50, p95 = BARS.get(streams, (None, None))
    for kind in ("routeproof-client", "routeproof-whole"):
        found = middles[kind]
        told = [
            _against("error p50", found["error p50"], p50, "ms"),
            _against("p95", found["error p95"], p95, "ms"),
            _against("CPU", found["us/token"], MOST_US_PER_TOKEN, "us/token"),
            _against("RSS", found["RSS MB"], MOST_RSS_MB, "MB"),
            _against("mock late p99", found["mock p99"], MOST_MOCK_LATE_MS, "ms"),
        ]
        print(f"  {kind}: " + "; ".join(told))


def _against(name, value, bar, unit):
    if bar is None:
        return f"{name} {value:.1f} {unit}"
    word = "reached" if value <= bar else "MISSED"
    return f"{name} {value:.1f} {unit} ({word}: {bar:g})"


def open_loop(rate_per_s, seconds):
    """Short requests at a high rate: is what was asked for really sent, and when?"""
    mock = Mock(first_s=0.005, gap_s=0.001, chunks=2)
    command = [sys.executable, str(HERE / "client_runs.py"), "routeproof-open"]
    command += [str(mock.port), str(rate_per_s), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    mock.close()
    delays, sent = list(report["found_ms"].values()), report["rate_per_s"]
    middle, late = quantile(delays, 0.5), quantile(delays, 0.99)
    share = report["cpu_s"] / report["wall_s"]
    print(
        f"\nopen loop: asked {rate_per_s}/s for {seconds} s, sent {sent:.1f}/s "
        f"({sent / rate_per_s - 1:+.2%}), dispatch delay p50 {middle:.2f} "
        f"p99 {late:.2f} ms, CPU share {share:.0%}, RSS {report['rss_mb']:.0f} MB"
    )


def start_up():
    """Seconds of CPU and of wall time from the shell to a client that could send."""
    code = "import routeproof.jobs.load, resource as r; u = r.getrusage(r.RUSAGE_SELF)"
    code += "; import time; print(u.ru_utime + u.ru_stime)"
    walls, cpus = [], []
    for _ in range(5):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        walls.append(time.perf_counter() - began)
        cpus.append(float(done.stdout))
    wall, cpu = min(walls), min(cpus)
    print(f"\nstart of `routeproof load`: {wall:.2f} s, of which {cpu:.2f} s CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", nargs="+", help="Leave the other clients out.")
    given = parser.parse_args()
    kinds = list(OWN)
    if given.peers:
        print("\n".join(client_tools.versions()))
        kinds += [*PEERS, *(f"~{name}" for name in client_tools.tools())]
    if given.only:
        kinds = [k for k in kinds if k in (*OWN[1:], *given.only)]
    start_up()
    for streams in given.streams:
        table(streams, given.rounds, given.repeat, kinds, random.Random(given.seed))
    if given.rate:
        open_loop(given.rate, 10)


if __name__ == "__main__":
    main()
