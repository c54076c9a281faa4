"""How judging grows: generated runs of 10^4, 10^5 and 10^6 requests, 200 chunks each.

    python benchmarks/judge.py                 # all sizes, one table
    python benchmarks/judge.py --sizes 10000   # one size

A folder is generated column by column (1,000 cases, three arms, a quality phase and a
sweep of three levels), then judged twice in processes of their own: once with scores to
make, once with scores there; each time the HTML report is written too. Printed are
seconds (of the clock, and of both processors together), the peak memory of all
processes together, and the size of the page.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

CASES = 1_000
CHUNKS = 200
PART = 20_000
LEVELS = (("sweep", "c16", 16), ("sweep", "c64", 64), ("sweep", "c256", 256))


def main() -> None:
    """Generate, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--keep", type=Path, help="folder to leave the runs in")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(msgspec.json.encode(judged(given.child)).decode())
        return
    print(
        f"{'requests':>10} {'chunks':>13} {'with scoring':>13} {'again':>9} {'CPU':>9} "
        f"{'report':>8} {'memory':>9} {'page':>8}"
    )
    with tempfile.TemporaryDirectory() as scratch:
        home = given.keep or Path(scratch)
        for size in given.sizes:
            path = home / f"run-{size}"
            if not path.exists():
                generate(path, size)
            first, again = in_process(path), in_process(path)
            print(
                f"{size:>10,} {size * CHUNKS:>13,} {first['seconds']:>11.1f} s "
                f"{again['seconds']:>7.1f} s {again['cpu_seconds']:>7.1f} s "
                f"{again['report_seconds']:>6.1f} s "
                f"{max(first['peak_mb'], again['peak_mb']):>6.0f} MB "
                f"{again['page_mb']:>5.1f} MB  {again['verdict']}",
                flush=True,
            )


def in_process(path: Path) -> dict[str, float]:
    """Judge a folder in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = msgspec.json.decode(done.stdout)
    return found


def judged(path: Path) -> dict[str, object]:
    """Seconds and peak memory of judging a folder and reporting it in this process."""
    from routeproof.jobs.judge import judge
    from routeproof.jobs.report import report

    started = time.perf_counter()
    found = judge(path)
    judged_s = time.perf_counter() - started
    (page,) = report(path, formats=("html",))
    usage = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return {
        "seconds": judged_s,
        "report_seconds": time.perf_counter() - started - judged_s,
        "cpu_seconds": sum(each.ru_utime + each.ru_stime for each in usage),
        "peak_mb": sum(each.ru_maxrss for each in usage) / 1024,
        "page_mb": page.stat().st_size / 1e6,
        "verdict": found.verdict.decision.value,
    }


def generate(path: Path, size: int) -> None:
    """Write a run folder of ``size`` requests, column by column."""
    from routeproof.proof.policy import QualityGateSpec
    from routeproof.proof.proof import Proof
    from routeproof.proof.route import RouteSpec
    from routeproof.records.manifest import Manifest, Versions
    from routeproof.records.store import RunFolder
    from routeproof.workloads.case import Case
    from routeproof.workloads.cases import write_cases

    folder = RunFolder.create(path)
    cases = [
        Case(
            id=f"case-{i:04d}",
            class_=("factual_qa", "arithmetic", "tool_use", "long_form")[i % 4],
            messages=({"role": "user", "content": f"Which number follows {i}?"},),
            reference=str(i),
            scorers=("contains",),
        )
        for i in range(CASES)
    ]
    write_cases(cases, folder.cases_path)
    rng = np.random.default_rng(1)
    keys = _keys(size)
    for number, begin in enumerate(range(0, size, PART)):
        chosen = {name: values[begin : begin + PART] for name, values in keys.items()}
        _write_part(folder, number + 1, chosen, rng)
    proof = Proof(
        baseline=RouteSpec(model="m"),
        candidate=RouteSpec(model="m"),
        quality=(QualityGateSpec(metric="contains", tolerance=0.02),),
    )
    folder.write_manifest(
        Manifest(
            run_id=f"run-{size}",
            created_wall="2026-11-30T12:00:00+00:00",
            versions=Versions(routeproof="0", python="3", platform="linux"),
            proof=msgspec.to_builtins(proof),
            finished=True,
        )
    )


def _keys(size: int) -> dict[str, np.ndarray]:
    """Which request is which: a quality phase, then three levels, arms in turns."""
    arms = np.array(["baseline", "candidate", "control"], dtype=object)
    stages = [("quality", "c1", 1), *LEVELS]
    quality = min(3 * CASES, size // 4)
    rest = (size - quality) // len(LEVELS)
    sizes = [quality, rest, rest, size - quality - 2 * rest]
    columns: dict[str, list[np.ndarray]] = {}
    block = 0
    for (phase, level, streams), count in zip(stages, sizes, strict=True):
        place = np.arange(count)
        width = max(8, streams * 4)
        group = place // (3 * width)
        arm = place // width % 3
        within = group * width + place % width
        found = {
            "arm": arms[arm],
            "phase": np.full(count, phase, dtype=object),
            "level": np.full(count, level, dtype=object),
            "case": within % CASES,
            "trial": within // CASES,
            "block": block + place // width,
            "streams": np.full(count, streams),
            "slot": place % width,
        }
        block += int(count // width) + 1
        for name, values in found.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _write_part(
    folder, number: int, keys: dict[str, np.ndarray], rng: np.random.Generator
) -> None:
    from routeproof.records.columns import Column, Ragged
    from routeproof.records.parquet import write_table
    from routeproof.records.record import SCHEMA

    n = keys["case"].size
    every = np.ones(n, dtype=np.bool_)

    def told(values: np.ndarray) -> Column:
        return Column(np.asarray(values, dtype=np.float64), every)

    speed = np.where(keys["arm"] == "candidate", 1.3, 1.0)
    due_us = np.rint(
        (keys["block"] * 10.0 + keys["slot"] // keys["streams"] * 2.0) * 1e6
    )
    gaps = rng.exponential(8_000.0, (n, CHUNKS)) / speed[:, None]
    gaps[:, 0] += 100_000 / speed
    chunks = np.rint(np.cumsum(gaps, axis=1))
    texts = [f"The answer is {case}." for case in keys["case"].tolist()]
    ids = [
        f"{a}/{p}/{q}/{b}/{s}"
        for a, p, q, b, s in zip(
            *(keys[k].tolist() for k in ("arm", "phase", "level", "block", "slot")),
            strict=True,
        )
    ]
    columns = {
        "request_id": np.array(ids, dtype=object),
        "arm": keys["arm"],
        "phase": keys["phase"],
        "level": keys["level"],
        "case_id": np.array([f"case-{c:04d}" for c in keys["case"]], dtype=object),
        "outcome": np.full(n, "completed", dtype=object),
        "finish_reason": np.full(n, "stop", dtype=object),
        "text": np.array(texts, dtype=object),
        "trial": told(keys["trial"]),
        "block": told(keys["block"]),
        "intended_s": told(due_us),
        "dispatched_s": told(due_us),
        "end_s": told(due_us + chunks[:, -1]),
        "first_visible_s": told(due_us + chunks[:, 0]),
        "prompt_tokens": told(np.full(n, 40)),
        "output_tokens": told(np.full(n, CHUNKS)),
        "chunk_s": Ragged(
            np.arange(n + 1, dtype=np.int64) * CHUNKS, chunks.ravel(), every
        ),
    }
    storage = {name: "int64" for name, c in columns.items() if isinstance(c, Column)}
    write_table(
        folder.path / "records" / f"part-000-{number:06d}.parquet",
        columns,
        storage={**storage, "chunk_s": "int32"},
        metadata={"kind": "routeproof records", "schema": str(SCHEMA)},
    )


if __name__ == "__main__":
    main()
