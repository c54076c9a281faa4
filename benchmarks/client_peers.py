"""Other ways to write the client, in an environment of their own (.bench-peers).

Called like ``client_runs.py``. ``aiohttp-reads`` iterates over socket reads, cuts them
at blank lines and parses each event at once, as the request function of vLLM's serving
benchmark does; ``aiohttp-lines`` iterates over lines, as SGLang's does; ``httpx`` is
the loop most people write first.
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


class Taken:
    """What a benchmark keeps of a stream: text, first token, gaps."""

    def __init__(self):
        self.began = self.last = time.perf_counter()
        self.first = None
        self.gaps = []
        self.text = ""
        self.tokens = None

    def event(self, payload):
        if payload == "[DONE]":
            return
        body = json.loads(payload)
        choices = body["choices"]
        if choices and choices[0]["delta"].get("content"):
            now = time.perf_counter()
            if self.first is None:
                self.first = now
            else:
                self.gaps.append(now - self.last)
            self.last = now
            self.text += choices[0]["delta"]["content"]
        elif body.get("usage"):
            self.tokens = body["usage"]["completion_tokens"]

    @property
    def first_ms(self):
        return (self.first - self.began) * 1e3


async def by_reads(response, taken):
    rest = ""
    async for data in response.content.iter_any():
        rest += data.decode()
        *events, rest = rest.split("\n\n")
        for event in events:
            taken.event(event.removeprefix("data: ").strip())


async def by_lines(response, taken):
    async for line in response.content:
        line = line.strip()
        if line:
            taken.event(line.decode().removeprefix("data: "))


def with_aiohttp(read):
    async def run(port, streams, rounds):
        import aiohttp

        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=600)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout
        ) as session:

            async def send(name):
                taken = Taken()
                url = f"http://127.0.0.1:{port}/v1/chat/completions"
                headers = {"X-Request-ID": name}
                async with session.post(url, json=BODY, headers=headers) as response:
                    await read(response, taken)
                return taken.first_ms

            return await _all(send, streams, rounds)

    return run


async def with_httpx(port, streams, rounds):
    import httpx

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=600) as session:

        async def send(name):
            taken = Taken()
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            sent = {"json": BODY, "headers": {"X-Request-ID": name}}
            async with session.stream("POST", url, **sent) as response:
                async for line in response.aiter_lines():
                    if line:
                        taken.event(line.removeprefix("data: "))
            return taken.first_ms

        return await _all(send, streams, rounds)


async def _all(send, streams, rounds):
    found = {}

    async def stream(number):
        for turn in range(rounds):
            name = f"{number}/{turn}"
            found[name] = await send(name)

    await asyncio.gather(*map(stream, range(streams)))
    return found


KINDS = {
    "aiohttp-reads": with_aiohttp(by_reads),
    "aiohttp-lines": with_aiohttp(by_lines),
    "httpx": with_httpx,
}


def main(kind, port, streams, rounds):
    __import__(kind.partition("-")[0])
    before, began = _cpu_s(), time.perf_counter()
    found = asyncio.run(KINDS[kind](int(port), int(streams), int(rounds)))
    report = {
        "found_ms": found,
        "cpu_s": _cpu_s() - before,
        "wall_s": time.perf_counter() - began,
        "start_s": began - START,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    # Under PYTHONUNBUFFERED a pipe may take a part of a long line, and print loses the
    # rest; a writer of one's own does not.
    with open(1, "w", closefd=False) as out:
        json.dump(report, out)


def _cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
