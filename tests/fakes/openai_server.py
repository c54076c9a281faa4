"""A scriptable OpenAI-compatible server that speaks bytes.

Each request is answered by the steps of a script, so that every way in which a real
engine, proxy or network misbehaves can be played exactly::

    def script(seen):
        return [*stream_head(), *map(event, chat_chunks(["Hel", "lo"])), *stream_end()]

    async with serving(script) as server:
        ... server.url ...

Steps: ``bytes`` are written as they are, in one write; a number waits that many
seconds after the previous step; an ``asyncio.Event`` is waited for; ``ABORT`` resets
the connection; ``CLOSE`` ends it properly. A plain list serves every request alike.
``serving_in_thread`` is for tests without an event loop of their own.
"""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from time import monotonic_ns

ABORT = object()
CLOSE = object()


@dataclass
class Seen:
    """One request as the server saw it, and the true times of its writes."""

    method: str
    path: str
    headers: dict
    body: bytes
    number: int
    arrived_ns: int
    write_ns: list = field(default_factory=list)

    @property
    def json(self):
        """The body, parsed."""
        return json.loads(self.body)

    @property
    def request_id(self):
        return self.headers.get("x-request-id")


@dataclass
class Server:
    """A running fake: its address and what it has seen."""

    url: str
    seen: list = field(default_factory=list)
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1].split("/")[0])

    @property
    def arrivals_ns(self):
        return [s.arrived_ns for s in self.seen]


@contextlib.asynccontextmanager
async def serving(script, *, ssl=None, unix_socket=None):
    """Serve the script on a free port of 127.0.0.1, or on a Unix socket."""
    server = Server("")
    tasks = set()
    writers = set()

    async def connected(reader, writer):
        writers.add(writer)
        task = asyncio.current_task()
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        server.connections += 1
        with contextlib.suppress(
            ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
        ):
            await _serve(reader, writer, script, server)
        writer.close()

    if unix_socket:
        listener = await asyncio.start_unix_server(connected, unix_socket, ssl=ssl)
        server.url = "http://localhost/v1"
    else:
        listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=ssl)
        port = listener.sockets[0].getsockname()[1]
        server.url = f"http{'s' if ssl else ''}://127.0.0.1:{port}/v1"
    try:
        yield server
    finally:
        listener.close()
        # A connection that was just accepted becomes a task in the next turns.
        for _ in range(5):
            await asyncio.sleep(0)
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        # The transports close their sockets in the next turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)


@contextlib.contextmanager
def serving_in_thread(script):
    """The same, on a loop in a thread of its own."""
    ready, stop = threading.Event(), None
    holder = {}

    async def main():
        nonlocal stop
        stop = asyncio.Event()
        async with serving(script) as server:
            holder["server"], holder["loop"] = server, asyncio.get_running_loop()
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield holder["server"]
    finally:
        holder["loop"].call_soon_threadsafe(stop.set)
        thread.join()


async def _serve(reader, writer, script, server):
    transport = writer.transport
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        seen = await _read_request(reader, len(server.seen))
        if seen is None:
            return
        seen.number = len(server.seen)  # others may have come while this one was due
        server.seen.append(seen)
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            steps = script(seen) if callable(script) else script
            for step in steps:
                if await _play(step, writer, seen):
                    return
        finally:
            server.in_flight -= 1


async def _play(step, writer, seen):
    """Play one step; true when the connection is over."""
    if isinstance(step, bytes):
        writer.write(step)
        seen.write_ns.append(monotonic_ns())
        await writer.drain()
        # One turn of the loop, so that the next write is a segment of its own.
        await asyncio.sleep(0)
    elif step is ABORT:
        sock = writer.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return True
    elif step is CLOSE:
        writer.close()
        return True
    elif isinstance(step, asyncio.Event):
        await step.wait()
    elif callable(step):
        step()
    else:
        turn = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(step, turn.set_result, None)
        await turn
    return False


async def _read_request(reader, number):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    arrived_ns = monotonic_ns()
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {}
    for line in filter(None, lines):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, path, headers, body, number, arrived_ns)


# -- building blocks of scripts -------------------------------------------------------


def head(status=200, *, reason="OK", **headers):
    """A response head; underscores in names become hyphens."""
    lines = [f"HTTP/1.1 {status} {reason}"]
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def stream_head(**headers):
    """The head of a chunked event stream."""
    given = {"content_type": "text/event-stream", "transfer_encoding": "chunked"}
    return [head(200, **{**given, **headers})]


def stream_end():
    """``[DONE]`` and the last chunk."""
    return [chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"]


def chunk(data):
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(body, *, end="\n\n"):
    """One event in one HTTP chunk; dicts become JSON."""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return chunk(f"data: {text}{end}".encode())


def delta(content=None, *, finish=None, index=0, **fields):
    """One streamed chunk of chat."""
    inner = dict(fields)
    if content is not None:
        inner["content"] = content
    choice = {"index": index, "delta": inner, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}


def usage(prompt=5, output=2, **details):
    """The chunk that carries only the counts."""
    counts = {"prompt_tokens": prompt, "completion_tokens": output, **details}
    return {
        "id": "x",
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": counts,
    }


def chat_chunks(texts, *, finish="stop", role=True, with_usage=True):
    """The chunks of a usual answer: role, texts, finish reason, usage."""
    chunks = [delta(role="assistant", content="")] if role else []
    chunks += [delta(t) for t in texts]
    chunks.append(delta(finish=finish))
    return [*chunks, usage(output=len(texts))] if with_usage else chunks


def chat_stream(texts=("Hel", "lo"), *, wait_s=0, **options):
    """All steps of a usual streamed answer, ``wait_s`` before each text."""
    steps = stream_head()
    for body in chat_chunks(list(texts), **options):
        steps += [wait_s, event(body)] if wait_s else [event(body)]
    return [*steps, *stream_end()]


def json_reply(body, status=200, **headers):
    """A whole JSON response."""
    data = json.dumps(body).encode()
    given = {"content_type": "application/json", "content_length": len(data)}
    return [head(status, **{**given, **headers}) + data]
