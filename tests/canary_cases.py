"""A gateway before two scripted upstreams, for the tests of the canary."""

import asyncio
import contextlib
from dataclasses import dataclass

import uvloop
from fakes.openai_server import serving as upstream

from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.canary.serve import serving

SHORT = """\
canary:
  candidate: fast
  baseline: trusted
  online_sample: {sample}
  routes: {{fast: "{fast}", trusted: "{trusted}"}}
  listen: 127.0.0.1:0
  admin: 127.0.0.1:0
  lease_s: 5
{more}"""


@dataclass
class Standing:
    """A running gateway and what stands behind it."""

    gateway: Gateway
    url: str
    trusted: object
    fast: object
    serving: object


@contextlib.asynccontextmanager
async def a_gateway(folder, *, trusted, fast, sample="100%", more="", **given):
    """Serve a canary before two scripted upstreams; ``more`` is further YAML."""
    async with upstream(trusted) as one, upstream(fast) as two:
        file = folder / "canary.yaml"
        text = SHORT.format(sample=sample, fast=two.url, trusted=one.url, more=more)
        file.write_text(text)
        gateway = Gateway(load_canary(file), **given)
        async with serving(gateway) as running:
            yield Standing(gateway, running.data_url, one, two, running)


async def until(seen, limit_s=20.0):
    """Look again and again at what a thread or another process does.

    Fails when it has not come in time; a test that waits for ever hides its fault.
    """
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + limit_s
    while not seen():
        assert loop.time() < ends_s, f"it did not come within {limit_s} s"
        await asyncio.sleep(0.01)


async def ask(url, body=b"{}", *, path="/v1/chat/completions", headers=()):
    """One raw request; returns everything that came back until the close."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close"]
    lines += [f"Content-Length: {len(body)}", *headers]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    answer = await reader.read()
    writer.close()
    return answer


def split(answer):
    """(status, headers, body) of a raw answer; chunked framing is undone."""
    top, _, body = answer.partition(b"\r\n\r\n")
    lines = top.decode("latin-1").split("\r\n")
    status = int(lines[0].split()[1])
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    if headers.get("transfer-encoding") == "chunked":
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            n = int(size, 16)
            if n == 0:
                return status, headers, whole
            whole, body = whole + body[:n], body[n + 2 :]
        raise ConnectionError("the answer broke off")
    return status, headers, body


def run(coroutine):
    """On the loop that serves in earnest."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(coroutine, 60))
