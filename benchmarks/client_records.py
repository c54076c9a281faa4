"""What does it cost to parse, store and read many requests, and does memory stay flat?

    python benchmarks/client_records.py                 # 15,625 requests x 64 chunks
    python benchmarks/client_records.py --requests 100000 --chunks 8

No network: captured responses of one shape go through the parser into a run folder,
flushed every 2,000 requests, are read back part by part without their texts, and
summed up as ``routeproof load`` does it.
"""

import argparse
import gc
import resource
import tempfile
import time
from pathlib import Path

import psutil

from routeproof.engines.adapters import adapter
from routeproof.records.manifest import Manifest, Versions
from routeproof.records.record import Key
from routeproof.records.schema import NUMERIC_COLUMNS
from routeproof.records.store import RunFolder
from routeproof.runs.backlog import Backlog
from routeproof.runs.capture import Capture
from routeproof.runs.parse import Origin

FLUSH_EVERY = 2_000
EVENT = (
    b'data: {"id":"chatcmpl-7a3f2c","object":"chat.completion.chunk",'
    b'"created":1796072400,"model":"m","choices":[{"index":0,'
    b'"delta":{"content":" word"},"logprobs":null,'
    b'"finish_reason":null}]}\n\n'
)
END = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":64}}\n\n'
    b"data: [DONE]\n\n"
)


def capture(chunks, start_ns):
    """A response as the client keeps it; every piece its own bytes, as in life."""
    pieces = [bytes(bytearray(EVENT)) for _ in range(chunks)]
    stamps = [start_ns + 100_000_000 + 10_000_000 * i for i in range(chunks)]
    return Capture(
        intended_ns=start_ns,
        dispatched_ns=start_ns + 1_000,
        sent_ns=start_ns + 2_000,
        first_byte_ns=stamps[0],
        end_ns=stamps[-1],
        status=200,
        stamps=[*stamps, stamps[-1]],
        pieces=[*pieces, END],
        size_bytes=chunks * len(EVENT),
    )


def rss_mb():
    return psutil.Process().memory_info().rss / 1e6


def summed_up(folder, n_requests):
    """What `load` prints and shows at the end, and what that takes."""
    from routeproof.jobs.loading.page import write_page
    from routeproof.jobs.loading.summary import measured, summary

    folder.write_manifest(
        Manifest(
            run_id="r",
            created_wall="2026-12-01T00:00:00+00:00",
            versions=Versions(routeproof="0", python="3", platform="linux"),
        )
    )
    before_mb, began_s = rss_mb(), time.process_time()
    found = summary(measured(folder))
    assert found["outcomes"] == {"completed": n_requests}
    told_s = time.process_time() - began_s
    write_page(folder)
    print(
        f"judged: {n_requests} requests in {told_s:.2f} s CPU, with the page "
        f"{time.process_time() - began_s:.2f} s; {before_mb:.0f} MB before, "
        f"{rss_mb():.0f} MB after"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=15_625)
    parser.add_argument("--chunks", type=int, default=64)
    given = parser.parse_args()
    gc.collect()
    gc.freeze()
    gc.disable()
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder.create(Path(place) / "run")
        backlog = Backlog(Origin(0, 0.0), lambda record, _: folder.append((record,)))
        plain = adapter("openai")
        made_s, began_s = 0.0, time.process_time()
        for number in range(given.requests):
            before_s = time.process_time()
            one = capture(given.chunks, number * 1_000_000)
            made_s += time.process_time() - before_s
            key = Key(
                request_id=f"baseline/sweep/c64/1/{number}",
                arm="baseline",
                phase="sweep",
                level="c64",
                block=1,
                case_id=f"case-{number % 512}",
                trial=number // 512,
            )
            backlog.add(one, key, plain)
            if number % 64 == 63:
                backlog.drain()
            if number % FLUSH_EVERY == FLUSH_EVERY - 1:
                folder.flush()
                if number % (5 * FLUSH_EVERY) == 5 * FLUSH_EVERY - 1:
                    done = number + 1
                    chunks = done * given.chunks
                    print(f"{done:>8} requests, {chunks:>9} chunks: {rss_mb():.0f} MB")
        backlog.drain()
        folder.flush()
        cpu_s = time.process_time() - began_s - made_s
        chunks = given.requests * given.chunks
        size = sum(p.stat().st_size for p in folder.part_paths())
        print(
            f"parsed and stored: {cpu_s / chunks * 1e6:.2f} us CPU per chunk, "
            f"{cpu_s / given.requests * 1e6:.0f} us per request, "
            f"{size / given.requests:.0f} bytes per request on disk"
        )
        began_s = time.process_time()
        seen = 0
        for part in folder.parts(only=NUMERIC_COLUMNS):
            seen += len(part.ragged("chunk_s").values)
        read_s = time.process_time() - began_s
        print(
            f"read without texts: {seen} chunks in {read_s:.2f} s CPU, "
            f"{rss_mb():.0f} MB"
        )
        summed_up(folder, given.requests)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
