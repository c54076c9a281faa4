"""A scriptable HTTP server for questions to an engine: one page a path."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Page:
    """What a path answers.

    ``body`` is sent as given; ``length`` may promise another length, ``chunked`` sends
    it in two chunks, ``hangs`` never answers, ``raw`` replaces the whole answer.
    """

    body: str = "{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    chunked: bool = False
    hangs: bool = False
    raw: bytes | None = None


@dataclass
class Served:
    """A running server: its URL and the requests it got."""

    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [line.split()[1] for line, _, _ in self.requests]


@asynccontextmanager
async def serving(
    pages: Mapping[str, "Page | Callable[[dict[str, Any]], Page]"],
    *,
    unix: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Served]:
    """Serve pages on a free port of the loopback until the block ends.

    A page may be a function of the posted JSON. A page for ``*`` is sent as soon as
    somebody connects.
    """
    served = Served("")
    open_ones = set()
    release = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        open_ones.add(writer)
        try:
            if "*" in pages:
                writer.write(_bytes(pages["*"]))
                await writer.drain()
                return
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            served.requests.append((head[0], headers, body))
            page = pages.get(head[0].split()[1], Page("not found", status=404))
            if callable(page):
                page = page(json.loads(body))
            if page.hangs:
                await release.wait()
            else:
                writer.write(_bytes(page))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    if unix is not None:
        server = await asyncio.start_unix_server(answer, unix)
        served.url = "http://localhost"
    else:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        served.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield served
    finally:
        release.set()
        server.close()
        # A connection that was just accepted becomes a task in the next turns, and one
        # that is aborted closes its socket in the next turns.
        for _ in range(5):
            await asyncio.sleep(0)
        for writer in open_ones:
            writer.transport.abort()
        await server.wait_closed()
        for _ in range(3):
            await asyncio.sleep(0)


def _bytes(page: Page) -> bytes:
    if page.raw is not None:
        return page.raw
    body = page.body.encode()
    headers = {"Content-Type": "application/json", **page.headers}
    if page.chunked:
        headers["Transfer-Encoding"] = "chunked"
        half = len(body) // 2
        parts = (body[:half], body[half:], b"")
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    else:
        length = len(body) if page.length is None else page.length
        headers["Content-Length"] = str(length)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {page.status} X\r\n{head}\r\n".encode() + body
