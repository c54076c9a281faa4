"""A few seconds against the mock before a run: what does this client see here?

The mock knows when it wrote each first chunk. What the client reports beyond that is
the client's own, on this machine, at the run's own concurrency, right now.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from time import monotonic_ns

import msgspec

from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import fetch
from routeproof.errors import MeasurementError
from routeproof.records.manifest import Threshold
from routeproof.runs.capture import Capture
from routeproof.runs.client import Client
from routeproof.runs.health import quantile
from routeproof.runs.mock import Served, Shape
from routeproof.runs.request import head_of, request_of

FIRST_ERROR_P95_S = 0.02
"""Most the client may add to the time to first token (95th percentile)."""

SHAPE = Shape(first_s=0.1, gap_s=0.01, chunks=32)
_BODY = b'{"model":"mock","stream":true,"messages":[{"role":"user","content":"?"}]}'
_STARTS_WITHIN_S = 20.0


class _Log(msgspec.Struct, frozen=True):
    served: list[Served]
    cpu_s: float


async def self_test(
    concurrency: int, *, seconds: float = 5.0, shape: Shape = SHAPE
) -> tuple[Threshold, ...]:
    """Send to the mock for a while and compare with its true times.

    Args:
        concurrency: Streams at once; the highest level of the run.
        seconds: No request is begun after this; 5 are enough for 99th percentiles
            from 8 streams on.
        shape: What the mock's answers look like.

    Returns:
        Checks for ``conduct(before=...)``: ``self_test_first_error_p95_s``, what the
        client adds to the time to first token, and, never failing,
        ``self_test_mock_late_p99_s``, how late the mock itself was: when that is
        more, the machine is too busy for either of them.

    Raises:
        MeasurementError: The mock did not start.
    """
    async with mock_server(shape) as endpoint:
        captures = await _send(endpoint, concurrency, seconds)
        reply = await fetch(endpoint, endpoint.at("/log"))
    log = msgspec.json.decode(reply.body, type=_Log)
    return compare(captures, log.served, shape)


def compare(
    captures: Sequence[tuple[str, Capture]], served: Sequence[Served], shape: Shape
) -> tuple[Threshold, ...]:
    """The checks of a self-test, from both sides of the same requests."""
    truth = {row.request_id: row for row in served}
    errors: list[float] = []
    for name, capture in captures:
        row = truth.get(name)
        if row is None or not capture.stamps:
            continue
        seen_ns = capture.stamps[0] - capture.dispatched_ns
        errors.append((seen_ns - (row.first_write_ns - row.arrived_ns)) / 1e9)
    error = quantile(errors, 0.95)
    late = quantile(
        [(r.first_write_ns - r.arrived_ns) / 1e9 - shape.first_s for r in served], 0.99
    )
    answered = len(errors) / len(captures) if captures else None
    return (
        Threshold(
            name="self_test_first_error_p95_s",
            value=error,
            limit=FIRST_ERROR_P95_S,
            ok=None if error is None else error <= FIRST_ERROR_P95_S,
        ),
        Threshold(
            name="self_test_answered_share",
            value=answered,
            limit=1.0,
            at_least=True,
            ok=None if answered is None else answered >= 1.0,
        ),
        Threshold(name="self_test_mock_late_p99_s", value=late, limit=0.002),
    )


@contextlib.asynccontextmanager
async def mock_server(shape: Shape) -> AsyncIterator[Endpoint]:
    """The mock in a process of its own, for as long as the block runs.

    Raises:
        MeasurementError: It did not say where it listens.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "routeproof.runs.mock", "--shape", msgspec.json.encode(shape).decode()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        async with asyncio.timeout(_STARTS_WITHIN_S):
            line = await process.stdout.readline()
        yield Endpoint(f"http://127.0.0.1:{int(line)}/v1")
    except (TimeoutError, ValueError) as error:
        raise MeasurementError(
            "the mock of the self-test did not start",
            hint="run `python -m routeproof.runs.mock` to see why",
        ) from error
    finally:
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STARTS_WITHIN_S):
                await process.wait()


async def _send(
    endpoint: Endpoint, concurrency: int, seconds: float
) -> list[tuple[str, Capture]]:
    client = Client(endpoint)
    head = head_of(endpoint, "chat/completions")
    await client.open(concurrency)
    ends_ns = monotonic_ns() + int(seconds * 1e9)
    found: list[tuple[str, Capture]] = []

    async def stream(number: int) -> None:
        turn = 0
        while turn == 0 or monotonic_ns() < ends_ns:
            name = f"{number}/{turn}"
            found.append((name, await client.send(request_of(head, _BODY, name))))
            turn += 1

    try:
        await asyncio.gather(*map(stream, range(concurrency)))
    finally:
        await client.close()
    return found
