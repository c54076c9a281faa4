"""Feed the relay's two parsers damaged HTTP, for as long as is asked.

python tests/canary_fuzz.py SECONDS [SEED]
"""

import asyncio
import random
import sys
from time import monotonic

from routeproof.canary.relay.connection import Connection
from routeproof.canary.relay.inbound import Inbound, Limits

REQUESTS = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
    b"Expect: 100-continue\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
    b"GET http://h/v1/models HTTP/1.0\r\nHost: h\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"HEAD /v1/models HTTP/1.1\r\nHost: h\r\n\r\n",
)
ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
    b"HTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 101 S\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
)


class Nowhere(asyncio.Transport):
    """A transport that leads nowhere."""

    def __init__(self):
        super().__init__()
        self.gone = False

    def write(self, data):
        pass

    def writelines(self, data):
        pass

    def is_closing(self):
        return self.gone

    def close(self):
        self.gone = True

    def abort(self):
        self.gone = True

    def can_write_eof(self):
        return True

    def write_eof(self):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


class Echo:
    """Answers every request at once; keeps what it saw."""

    def __init__(self):
        self.seen = []

    def begin(self, request, client):
        self.seen.append(request)
        client.start(200, [])
        client.piece(b"x")
        client.finish()


def damaged(dice, seeds):
    """Some good messages in a row, with a few bytes changed, lost or doubled."""
    data = bytearray(b"".join(dice.choices(seeds, k=dice.randint(1, 4))))
    for _ in range(dice.choice((0, 1, 1, 2, 4, 8))):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(4):
            case 0:
                data[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                del data[at : at + dice.randint(1, 9)]
            case 2:
                data[at:at] = data[at : at + dice.randint(1, 9)]
            case _:
                data[at:at] = dice.choice((b"\r\n", b"\n", b"\0", b":", b" ", b"99"))
        if not data:
            break
    return bytes(data)


def pieces(dice, data):
    """Split anywhere."""
    while data:
        size = dice.choice((1, 2, 7, 40, 1_000))
        yield data[:size]
        data = data[size:]


async def once(dice):
    """One connection of a client and one to an upstream; neither may raise."""
    limits = Limits(body_bytes=50, header_bytes=200)
    echo = Echo()
    client, wire = Inbound(echo, limits), Nowhere()
    client.connection_made(wire)
    for piece in pieces(dice, damaged(dice, REQUESTS)):
        if wire.gone:
            break
        client.data_received(piece)
        await asyncio.sleep(0)
    client.connection_lost(None)
    for request in echo.seen:
        assert len(request.body) <= 50 and request.target.startswith(b"/")
        assert sum(len(n) + len(v) for n, v in request.headers) <= 200
    connection, wire = Connection(), Nowhere()
    connection.connection_made(wire)
    connection.begin([b"GET / HTTP/1.1\r\n\r\n"])
    for piece in pieces(dice, damaged(dice, ANSWERS)):
        if wire.gone:
            break
        connection.data_received(piece)
    if not connection.is_closed:
        connection.connection_lost(None)
    assert connection.is_complete or connection.error is not None


async def fuzz(seed, *, seconds=None, times=None):
    """Until the time is over or so many times; returns how many."""
    dice, began, done = random.Random(seed), monotonic(), 0
    while done != times and (seconds is None or monotonic() - began < seconds):
        await once(dice)
        done += 1
    return done


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    print(f"seed {seed}", flush=True)
    print(asyncio.run(fuzz(seed, seconds=float(sys.argv[1]))), "times, no crash")
