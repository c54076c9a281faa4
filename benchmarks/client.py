"""How far from the truth is the load client, and what does it cost?

    python benchmarks/client.py                  # 64 and 256 streams
    python benchmarks/client.py --streams 512 --repeat 5
    python benchmarks/client.py --peers          # also clients from .bench-peers

One table: every client sends the same requests to the same mock, one after the other
in random order, several times. The mock logs when it really wrote each first chunk;
``error`` is what the client reports as time to first token minus that truth, request
by request. The floor is a bare protocol loop that only stamps: no client on this
machine can be better, so on a busy machine the ratio to it is what counts. A round in
which the mock itself was late (p99 of its first writes over 2 ms) is marked with a
star.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
OWN = ("floor-asyncio", "floor-uvloop", "routeproof-client", "routeproof-whole")
PEER_PYTHON = HERE.parent / ".bench-peers" / "bin" / "python"
"""``python -m venv .bench-peers; .bench-peers/bin/pip install aiohttp httpx``"""
PEERS = ("aiohttp", "httpx")
COLUMNS = (
    "error p50",
    "error p95",
    "us/token",
    "of floor",
    "RSS MB",
    "wall s",
    "mock p99",
)


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

    def log(self):
        """True time to first token, in ms, of what was served since the last call."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/log") as reply:
            rows = json.load(reply)["served"]
        return {name: ((first - arrived) / 1e6) for name, arrived, first, _, _ in rows}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(kind, mock, streams, rounds, *, first_ms, tokens):
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
        "RSS MB": report["rss_mb"],
        "wall s": report["wall_s"],
        "mock p99": late,
    }


def table(streams, rounds, repeat, kinds, rng):
    shape = {"first_s": 0.1, "gap_s": 0.01, "chunks": 64}
    tokens = streams * rounds * shape["chunks"]
    cells = {kind: [] for kind in kinds}
    mock = Mock(**shape)
    for _ in range(repeat):
        for kind in rng.sample(kinds, len(kinds)):
            found = measure(kind, mock, streams, rounds, first_ms=100.0, tokens=tokens)
            cells[kind].append(found)
    mock.close()
    print(f"\n{streams} streams, {rounds} rounds, 64 tokens of 10 ms, first at 100 ms")
    print(f"{'client':<20}" + "".join(f"{c:>12}" for c in COLUMNS))
    floor = statistics.median(c["us/token"] for c in cells["floor-uvloop"])
    for kind in kinds:
        middle = {
            name: statistics.median(c[name] for c in cells[kind])
            for name in cells[kind][0]
        }
        middle["of floor"] = middle["us/token"] / floor
        late = "*" if middle["mock p99"] > 2 else ""
        print(f"{kind:<20}" + "".join(f"{middle[c]:>12.2f}" for c in COLUMNS) + late)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    kinds = list(OWN) + (list(PEERS) if given.peers else [])
    for streams in given.streams:
        table(streams, given.rounds, given.repeat, kinds, random.Random(given.seed))
    if given.rate:
        open_loop(given.rate, 10)


if __name__ == "__main__":
    main()
