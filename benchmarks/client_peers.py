"""Other ways to write the client, in an environment of their own (.bench-peers).

Called like ``client_runs.py``. ``aiohttp`` is the loop that the request functions of
the usual serving benchmarks have: iterate over the body, stamp when a chunk is there,
parse at once. ``httpx`` is the same with ``aiter_lines``.
"""

import asyncio
import json
import resource
import sys
import time

START = time.perf_counter()
BODY = {
    "model": "mock",
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
}


async def with_aiohttp(port, streams, rounds):
    import aiohttp

    found = {}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def stream(number):
            for turn in range(rounds):
                name, first = f"{number}/{turn}", None
                began = time.perf_counter()
                url = f"http://127.0.0.1:{port}/v1/chat/completions"
                headers = {"X-Request-ID": name}
                async with session.post(url, json=BODY, headers=headers) as response:
                    async for line in response.content:
                        if first is None and _has_content(line):
                            first = time.perf_counter()
                found[name] = (first - began) * 1e3

        await asyncio.gather(*map(stream, range(streams)))
    return found


async def with_httpx(port, streams, rounds):
    import httpx

    found = {}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=600) as session:

        async def stream(number):
            for turn in range(rounds):
                name, first = f"{number}/{turn}", None
                began = time.perf_counter()
                url = f"http://127.0.0.1:{port}/v1/chat/completions"
                sent = {"json": BODY, "headers": {"X-Request-ID": name}}
                async with session.stream("POST", url, **sent) as response:
                    async for line in response.aiter_lines():
                        if first is None and _has_content(line.encode()):
                            first = time.perf_counter()
                found[name] = (first - began) * 1e3

        await asyncio.gather(*map(stream, range(streams)))
    return found


def _has_content(line):
    line = line.strip()
    if not line.startswith(b"data: ") or line == b"data: [DONE]":
        return False
    choices = json.loads(line[6:])["choices"]
    return bool(choices and choices[0]["delta"].get("content"))


KINDS = {"aiohttp": with_aiohttp, "httpx": with_httpx}


def main(kind, port, streams, rounds):
    __import__(kind)
    before, began = _cpu_s(), time.perf_counter()
    found = asyncio.run(KINDS[kind](int(port), int(streams), int(rounds)))
    report = {
        "found_ms": found,
        "cpu_s": _cpu_s() - before,
        "wall_s": time.perf_counter() - began,
        "start_s": began - START,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(report))


def _cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
