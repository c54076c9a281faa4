"""Failures that only numbers show: two thousand streams, long ones, many of them."""

import asyncio
import gc
import json
from pathlib import Path

import pytest
from canary_cases import a_gateway, run, until
from fakes.openai_server import chat_stream, event, stream_end, stream_head

pytestmark = pytest.mark.slow

PAGE_BYTES = 4_096


def resident_bytes():
    """Memory of this process that is in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


async def drained(url, body, *, looked=None):
    """One request whose answer is read and thrown away; its length and last bytes."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    top = "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
    writer.write(f"{top}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    n, last = 0, b""
    while data := await reader.read(1 << 18):
        n, last = n + len(data), (last + data)[-32:]
        if looked is not None:
            looked()
    writer.close()
    return n, last


def a_body(i):
    return json.dumps({"messages": [], "user": f"u{i}", "stream": True}).encode()


def test_two_thousand_streams_at_a_time_end_whole(tmp_path):
    """All have begun before the first may end."""

    async def go():
        go_on = asyncio.Event()
        script = [*stream_head(), go_on, *chat_stream()[1:]]
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            asked = [
                asyncio.create_task(drained(stand.url, a_body(i))) for i in range(2_000)
            ]
            await until(lambda: stand.trusted.in_flight == 2_000, limit_s=60.0)
            go_on.set()
            ends = [last for _, last in await asyncio.gather(*asked)]
            return stand.trusted.most_in_flight, ends

    most, ends = run(go())
    assert most == 2_000
    assert all(b"[DONE]" in last for last in ends)


def test_memory_is_flat_over_long_and_over_many_streams(tmp_path):
    """A million events in one stream, a tenth of them in as many streams as it takes.

    ``benchmarks/canary_relay.py --only long`` measures it from outside the process.
    """
    batch = b"".join(
        [event({"choices": [{"index": 0, "delta": {"content": "word "}}]})] * 500
    )

    async def go():
        long = [*stream_head(), *[batch] * 2_000, *stream_end()]
        script = lambda seen: long if seen.number == 0 else chat_stream()  # noqa: E731
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            held = []
            await drained(
                stand.url, a_body(0), looked=lambda: held.append(resident_bytes())
            )
            quarter = len(held) // 4
            grown_long = max(held[-quarter:]) - max(held[:quarter])
            for _ in range(2):
                await asyncio.gather(
                    *(drained(stand.url, a_body(i)) for i in range(100))
                )
            stand.trusted.seen.clear()
            gc.collect()
            before = resident_bytes()
            for _ in range(20):
                await asyncio.gather(
                    *(drained(stand.url, a_body(i)) for i in range(100))
                )
                stand.trusted.seen[:-1] = []
            gc.collect()
            return len(held), grown_long, resident_bytes() - before

    reads, grown_long, grown_many = run(go())
    assert reads > 100
    assert grown_long < 8 << 20 and grown_many < 8 << 20
