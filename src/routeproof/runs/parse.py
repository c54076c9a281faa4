"""Captured bytes and stamps to a record; runs off the clock.

An outcome is decided once, here. A stream is complete when the engine said so with a
finish reason, whatever the socket said; it is a failure when it did not, however much
text came. Nothing that is missing becomes a zero.
"""

import json
import zlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import msgspec

from routeproof.engines.adapter import Adapter
from routeproof.records.outcome import Outcome
from routeproof.records.record import (
    Answer,
    Clock,
    EngineDetails,
    Key,
    Record,
    Stream,
    Usage,
)
from routeproof.runs.capture import Capture
from routeproof.runs.chunk import read_events, read_usual
from routeproof.runs.outcomes import decide
from routeproof.runs.said import Choice, Said
from routeproof.runs.sse import Event, events
from routeproof.runs.words import clean, error_words, first_words

_EVENTS_PER_STEP = 64
_USUAL_NAMES = (b"", b"message")
_MAX_UNPACKED_BYTES = 64 << 20
_ZLIB_ANY_HEADER = 47
"""zlib's window bits 15 plus 32: gzip or zlib, told apart by the header."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Zero of the run's clock on both clocks of this machine."""

    monotonic_ns: int
    wall_s: float

    def seconds(self, stamp_ns: int) -> float:
        """Seconds since the start of the run."""
        return (stamp_ns - self.monotonic_ns) / 1e9

    def maybe(self, stamp_ns: int) -> float | None:
        """The same; ``None`` for a stamp that was never taken."""
        return self.seconds(stamp_ns) if stamp_ns else None


def parse(capture: Capture, key: Key, adapter: Adapter, origin: Origin) -> Record:
    """The record of one request, in one go (see ``parse_steps``)."""
    steps = parse_steps(capture, key, adapter, origin)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return cast(Record, stop.value)


def parse_steps(
    capture: Capture, key: Key, adapter: Adapter, origin: Origin
) -> Generator[None, None, Record]:
    """Parse a response in steps of some 64 events each.

    A long answer takes tens of milliseconds to parse; the steps let the caller go
    back to its running streams in between.

    Args:
        capture: What the client kept.
        key: Which request it was.
        adapter: Reads the per-request details of its engine.
        origin: Zero of the run's clock.

    Yields:
        Nothing; it pauses.

    Returns:
        The record.
    """
    said, words = Said(), ""
    if capture.status:
        pieces = unpacked(capture, said)
        if capture.status >= 300:
            words = _server_words(b"".join(pieces))
        elif said.broken is None:
            yield from _read(pieces, said)
    outcome, why = decide(capture, said, words)
    first = said.choices.get(min(said.choices, default=0), Choice())
    return Record(
        key=key,
        clock=_clock(capture, origin),
        answer=_answer(capture, said, first, (outcome, why)),
        stream=_stream(said, capture.stamps, origin),
        usage=_usage(said.usage),
        engine=_details(adapter, said),
    )


def unpacked(capture: Capture, said: Said) -> list[bytes]:
    """The body's pieces without their compression, one per socket read still."""
    coding = (capture.header("content-encoding") or "identity").strip().lower()
    if coding == "identity":
        return capture.pieces
    if coding not in ("gzip", "x-gzip", "deflate"):
        said.broken = f"the body is packed with `{coding}`, which was not asked for"
        return []
    unpack, pieces, total = zlib.decompressobj(_ZLIB_ANY_HEADER), [], 0
    for packed in capture.pieces:
        try:
            piece = unpack.decompress(packed, _MAX_UNPACKED_BYTES - total + 1)
        except zlib.error as error:
            said.broken = f"the {coding} body is damaged: {error}"
            break
        total += len(piece)
        if total > _MAX_UNPACKED_BYTES:
            said.broken = f"the {coding} body unpacks to over {_MAX_UNPACKED_BYTES} B"
            break
        pieces.append(piece)
    return pieces


def _read(pieces: list[bytes], said: Said) -> Generator[None, None, None]:
    start = next((p.lstrip()[:1] for p in pieces if p.strip()), b"")
    if start in (b"{", b"[", b"<"):
        _read_whole(b"".join(pieces), said)
        return
    usual = read_usual(pieces, said, lambda data, read: _take(said, data, read))
    if usual is not None:
        yield from usual
        return
    rest = events(pieces)
    while some := list(islice(rest, _EVENTS_PER_STEP)):
        if _take_all(said, some):
            return
        yield


def _take_all(said: Said, some: list[Event]) -> bool:
    """Take a few events; true when the last of the stream was among them."""
    if any(event.name not in _USUAL_NAMES or b"\n" in event.data for event in some):
        return any(_take(said, e.data, e.read, e.name) for e in some)
    payloads, _, reads = zip(*some, strict=True)
    return read_events(
        payloads, reads, said, lambda data, read: _take(said, data, read)
    )


def _take(said: Said, data: bytes, read: int, name: bytes = b"") -> bool:
    """Take one event; true when it was the last by its own word."""
    if said.broken is not None:
        said.broken_inside = True
    if data.strip() == b"[DONE]":
        return True
    try:
        body = _decode(data)
    except ValueError:
        if name == b"error":
            said.error = first_words(data) or "an error event without words"
        elif data.strip():
            said.broken = f"an event is not JSON: {first_words(data)}"
        return False
    if name == b"error":
        said.error = error_words(body)
    elif not isinstance(body, dict):
        said.broken = f"an event is not an object: {first_words(data)}"
    else:
        _add(said, body, lambda: said.add_chunk(body, read))
    return False


def _read_whole(data: bytes, said: Said) -> None:
    try:
        body = _decode(data)
    except ValueError:
        said.broken = f"the body is not JSON: {first_words(data)}"
        return
    if isinstance(body, dict):
        _add(said, body, lambda: said.add_whole(body))
        if not said.choices and said.error is None:
            said.broken = f"the body has no choices: {first_words(data)}"
    else:
        said.broken = f"the body is not an object: {first_words(data)}"


def _add(said: Said, body: dict[str, Any], add: Callable[[], None]) -> None:
    try:
        add()
    except (TypeError, AttributeError, KeyError, ValueError):
        shape = first_words(msgspec.json.encode(body))
        said.broken = f"not the shape of an OpenAI response: {shape}"


def _decode(data: bytes) -> Any:
    """JSON, also with the slips engines make: NaN, half surrogates, bad UTF-8."""
    try:
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError:
            return json.loads(data.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _server_words(body: bytes) -> str:
    try:
        found = _decode(body)
    except ValueError:
        return first_words(body)
    return error_words(found)


def _details(adapter: Adapter, said: Said) -> EngineDetails:
    fields = said.last_fields()
    return adapter.details(fields) if fields else EngineDetails()


def _clock(capture: Capture, origin: Origin) -> Clock:
    intended_s = origin.seconds(capture.intended_ns)
    return Clock(
        wall_s=origin.wall_s + intended_s,
        intended_s=intended_s,
        dispatched_s=origin.maybe(capture.dispatched_ns),
        sent_s=origin.maybe(capture.sent_ns),
        first_byte_s=origin.maybe(capture.first_byte_ns),
        end_s=origin.maybe(capture.end_ns),
    )


def _stream(said: Said, stamps: list[int], origin: Origin) -> Stream:
    counts, reads, zero_ns = said.chunk_tokens, said.chunk_reads, origin.monotonic_ns
    told = [c for c in counts if c is not None]
    first = said.first_visible_read
    return Stream(
        chunk_s=tuple([(stamps[r] - zero_ns) / 1e9 for r in reads]),
        chunk_tokens=tuple(told) if told and len(told) == len(counts) else None,
        first_visible_s=None if first is None else origin.seconds(stamps[first]),
        coalesced_reads=len(reads) - len(set(reads)),
    )


def _answer(
    capture: Capture, said: Said, first: Choice, ended: tuple[Outcome, str | None]
) -> Answer:
    outcome, why = ended
    several = [clean("".join(said.choices[i].text)) for i in sorted(said.choices)]
    return Answer(
        outcome=outcome,
        http_status=capture.status or None,
        finish_reason=first.finish,
        error=None if why is None else clean(why),
        text=clean("".join(first.text)) if first.text else None,
        reasoning=clean("".join(first.reasoning)) if first.reasoning else None,
        tool_calls=_calls(first),
        choices=_json(several) if len(several) > 1 else None,
        logprobs=_json(first.logprobs) if first.logprobs else None,
        token_ids=tuple(first.token_ids) or None,
    )


def _calls(choice: Choice) -> str | None:
    if not choice.calls:
        return None
    ordered = [choice.calls[i] for i in sorted(choice.calls)]
    return _json([{"name": c.name, "arguments": "".join(c.arguments)} for c in ordered])


def _json(value: Any) -> str:
    return clean(json.dumps(value, ensure_ascii=False))


def _usage(usage: dict[str, Any]) -> Usage:
    prompt = usage.get("prompt_tokens_details")
    output = usage.get("completion_tokens_details")
    prompt = prompt if isinstance(prompt, dict) else {}
    output = output if isinstance(output, dict) else {}
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(prompt.get("cached_tokens")),
        reasoning_tokens=_count(
            output.get("reasoning_tokens", usage.get("reasoning_tokens"))
        ),
    )


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count else None
