"""A small client and ready routes for the tests of the simulator."""

import asyncio
import json

from routeproof.simulator.route import SimulatedRoute, Timing

FAST = Timing(weights_s=0.0002, token_s=1e-7, context_token_s=0.0, jitter=0.0)


def route(**changes):
    return SimulatedRoute(**({"timing": FAST} | changes))


def chat(text="Count from 1 to 9.", **fields):
    message = {"role": "user", "content": text}
    return {"model": "m", "messages": [message], "temperature": 0} | fields


async def post(port, body, path="/v1/chat/completions"):
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    head += f"content-length: {len(data)}\r\n\r\n"
    return await _exchange(port, head.encode() + data)


async def get(port, path):
    head = f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    return await _exchange(port, head.encode())


async def _exchange(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    if b"transfer-encoding: chunked" in head:
        body = _unchunked(body)
    return int(head.split()[1]), body


def _unchunked(body):
    out = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        out, body = out + rest[:length], rest[length + 2 :]
        if length == 0:
            break
    return out


def events(body):
    """The JSON events of a stream, without the end mark."""
    lines = body.decode().split("\n\n")
    found = [line.removeprefix("data: ") for line in lines if line]
    return [json.loads(line) for line in found if line != "[DONE]"]


def text_of(found):
    return "".join(
        choice["delta"].get("content") or ""
        for event in found
        for choice in event.get("choices", ())
    )


def shown(body):
    """The text of a response, streamed or whole."""
    if body.startswith(b"data:"):
        return text_of(events(body))
    return json.loads(body)["choices"][0]["message"]["content"]
