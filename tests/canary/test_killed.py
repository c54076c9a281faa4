"""The real process: killed in the middle, and on a disk that takes no more."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from canary_cases import SHORT
from fakes.openai_server import (
    event,
    json_reply,
    serving_in_thread,
    stream_end,
    stream_head,
)

pytestmark = pytest.mark.slow

CHOICE = {"index": 0, "message": {"content": "sea " * 400}, "finish_reason": "stop"}
WHOLE = json_reply({"id": "c", "choices": [CHOICE]})
LEASE_S = 1.0
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def slowly(seen):
    """A stream that takes half a minute, for those who ask for one."""
    if not seen.json.get("stream"):
        return WHOLE
    piece = event({"choices": [{"index": 0, "delta": {"content": "sea "}}]})
    return [*stream_head(), *[piece, 0.05] * 600, *stream_end()]


@contextlib.contextmanager
def a_process(file):
    """``routeproof canary serve`` and the addresses it says."""
    process = subprocess.Popen(
        [sys.executable, "-m", "routeproof", "canary", "serve", str(file)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        addresses = [process.stderr.readline().split()[-1] for _ in range(2)]
        yield process, *addresses
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def asked(url, method="GET", **body):
    data = json.dumps(body).encode() if method == "POST" else None
    request = urllib.request.Request(url, data, method=method)
    try:
        with OPENER.open(request, timeout=10) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        return {"status": error.code}


def chat(data_url, first, n):
    for i in range(first, first + n):
        answer = asked(
            f"{data_url}/v1/chat/completions", "POST", messages=[], user=f"u{i}"
        )
        assert answer["choices"], answer


def until(seen, limit_s=10.0):
    """Wait for what another process does; returns how long it took."""
    began = time.monotonic()
    while not seen():
        assert time.monotonic() - began < limit_s, "it never came"
        time.sleep(0.02)
    return time.monotonic() - began


def write_file(folder, trusted, fast):
    file = folder / "canary.yaml"
    text = SHORT.replace("lease_s: 5", f"lease_s: {LEASE_S}")
    more = "  steps: [0.5]\n"
    file.write_text(
        text.format(sample="100%", fast=fast.url, trusted=trusted.url, more=more)
    )
    return file


def test_on_a_full_disk_the_candidate_gets_nothing_past_the_lease(tmp_path):
    """The process may make no file longer, as on a disk without a free block."""
    with serving_in_thread(WHOLE) as trusted, serving_in_thread(WHOLE) as fast:
        file = write_file(tmp_path, trusted, fast)
        with a_process(file) as (process, data, admin):
            asked(f"{admin}/v1/start", "POST", actor="test")
            chat(data, 0, 20)
            assert fast.seen
            _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1024, most))
            chat(data, 100, 20)
            weight = lambda: asked(f"{admin}/v1/status")["weight"]  # noqa: E731
            took_s = until(lambda: weight() == 0)
            found, before = asked(f"{admin}/v1/status"), len(fast.seen)
            chat(data, 200, 30)
            assert len(fast.seen) == before and found["state"]["phase"] == "stepping"
            assert took_s < LEASE_S + 1.5
            assert found["blind"] or found["store_error"]
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
            until(lambda: weight() == 0.5)
            chat(data, 300, 20)
            assert len(fast.seen) > before


def test_a_killed_process_leaves_no_candidate_stream_and_its_next_life_goes_on(
    tmp_path,
):
    with serving_in_thread(WHOLE) as trusted, serving_in_thread(slowly) as fast:
        file = write_file(tmp_path, trusted, fast)
        with a_process(file) as (process, data, admin):
            asked(f"{admin}/v1/start", "POST", actor="test")
            chat(data, 0, 30)
            status = lambda: asked(f"{admin}/v1/status")  # noqa: E731
            seen = lambda: sum(s["canary_seen"] for s in status()["signals"])  # noqa: E731
            until(seen)
            written = tmp_path / "canary-fast" / "evidence.json"
            first = written.stat().st_mtime_ns
            until(lambda: written.stat().st_mtime_ns > first)
            streams = []
            for i in range(40):
                body = json.dumps({"messages": [], "user": f"s{i}", "stream": True})
                url = f"{data}/v1/chat/completions"
                request = urllib.request.Request(url, body.encode(), method="POST")
                streams.append(OPENER.open(request, timeout=10))
            assert fast.in_flight > 0
            os.kill(process.pid, signal.SIGKILL)
            until(lambda: fast.in_flight == 0, limit_s=2.0)
            for stream in streams:
                stream.close()
        with a_process(file) as (process, data, admin):
            found = asked(f"{admin}/v1/status")
            assert found["state"]["phase"] == "stepping" and found["weight"] == 0.5
            assert sum(s["canary_seen"] for s in found["signals"]) > 0
            chat(data, 0, 30)
            asked(f"{admin}/v1/rollback", "POST", actor="test")
            before = len(fast.seen)
            os.kill(process.pid, signal.SIGKILL)
        with a_process(file) as (process, data, admin):
            chat(data, 0, 30)
            phase = lambda: asked(f"{admin}/v1/status")["state"]["phase"]  # noqa: E731
            until(lambda: phase() == "rolled_back")
            assert len(fast.seen) == before
            kept = json.loads((tmp_path / "canary-fast/last_rollback.json").read_text())
            assert kept["trigger_to_last_candidate_byte_s"] is None, "nobody saw it"
            assert kept["trigger_to_observed_share_zero_s"] > 0
