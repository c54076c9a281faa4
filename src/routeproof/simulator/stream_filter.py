"""Faults of the stream itself: events in, events out, each with its time.

The same filter serves the simulated engine, in real and in virtual time, and the fault
proxy in front of a real one: it sees whole events and knows nothing of the model.
"""

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import msgspec

from routeproof.simulator.defects import StreamDefects

DONE = b"data: [DONE]\n\n"
_LATEST_TURN = 12
"""A fault in mid-stream comes at one of the first so many events."""


class Timed(NamedTuple):
    """Bytes and when they are due."""

    due_s: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A response that takes the place of the engine's."""

    status: int
    kind: str
    body: bytes


class StreamFilter:
    """What happens to one response.

    Args:
        wrong: The faults.
        rng: Decides which of them this response has.
        running: Requests in flight; below ``wrong.min_concurrency`` nothing happens.
    """

    def __init__(self, wrong: StreamDefects, rng: Random, running: int = 1) -> None:
        active = running >= wrong.min_concurrency
        self._wrong = wrong if active else StreamDefects()
        self._rng = rng
        self._lag_s = self._wrong.first_delay_s
        self._seen = 0
        self._held: list[bytes] = []
        self._calls_seen = 0
        self.ended: str | None = None
        w = self._wrong
        self._buffers = self._has(w.buffer_share)
        self._cuts_at = self._turn(w.cut_share)
        self._errs_at = self._turn(w.error_event_share)
        self._breaks_at = self._turn(w.broken_json_share)
        self._stalls_at = self._turn(w.stall_share)
        self._loses_finish = self._has(w.no_finish_share)
        self._loses_done = self._has(w.no_done_share)
        self._loses_call = self._has(w.drop_first_call_chunk_share)

    def _has(self, share: float) -> bool:
        return bool(share) and self._rng.random() < share

    def _turn(self, share: float) -> int | None:
        return self._rng.randrange(1, _LATEST_TURN) if self._has(share) else None

    def refused(self) -> Refused | None:
        """The response that takes the place of the real one, if any does."""
        w = self._wrong
        if self._has(w.error_status_share):
            return Refused(500, "application/json", _error("internal error"))
        if self._has(w.error_in_200_share):
            return Refused(200, "application/json", _error("the engine is not there"))
        if self._has(w.html_share):
            page = b"<html><head><title>Please wait</title></head></html>"
            return Refused(200, "text/html", page)
        if self._has(w.empty_share):
            return Refused(200, "text/event-stream", b"")
        return None

    def feed(self, now_s: float, events: list[bytes]) -> list[Timed]:
        """What becomes of events that come now."""
        out: list[Timed] = []
        for event in events:
            for changed in self._changed(event):
                out += self._timed(now_s, changed)
            if self.ended:
                return out + self._released(now_s)
        return out

    def end(self, now_s: float) -> list[Timed]:
        """What was held back, when the response ends."""
        if self.ended is None:
            lost = self._cuts_at is not None or self._loses_finish
            self.ended = "cut" if lost and self._cuts_at is not None else "complete"
        return self._released(now_s)

    # -- one event ----------------------------------------------------------------

    def _changed(self, event: bytes) -> list[bytes]:
        w = self._wrong
        self._seen += 1
        if self._cuts_at is not None and (
            self._seen > self._cuts_at or _is_last(event)
        ):
            self.ended = "cut"
            return []
        if self._errs_at is not None and self._seen > self._errs_at:
            self.ended = "complete"
            return [b"data: " + _error("internal error") + b"\n\n", DONE]
        if event == DONE:
            return [] if self._loses_done or self._loses_finish else [event]
        if self._breaks_at is not None and self._seen > self._breaks_at:
            self._breaks_at = None
            return [event[: len(event) // 2] + b"\n\n"]
        event = self._rewritten(event)
        if not event:
            return []
        if _is_content(event):
            if self._has(w.drop_chunk_share):
                return []
            if self._has(w.duplicate_chunk_share):
                return [event, event]
        return [event]

    def _rewritten(self, event: bytes) -> bytes:
        w = self._wrong
        if self._loses_call and b'"arguments":"' in event:
            if b'"arguments":""' not in event:
                self._loses_call = False
                return b""
        edits = w.no_usage or w.usage_factor != 1.0 or w.strip_fields
        if not (edits or self._loses_finish):
            return event
        body = _body(event)
        if body is None:
            return event
        if self._loses_finish:
            for choice in body.get("choices", ()):
                choice["finish_reason"] = None
        edited(body, w)
        return b"data: " + msgspec.json.encode(body) + b"\n\n"

    # -- time ------------------------------------------------------------------------

    def _timed(self, now_s: float, event: bytes) -> list[Timed]:
        w = self._wrong
        if self._stalls_at is not None and self._seen > self._stalls_at:
            self._lag_s += w.stall_s
            self._stalls_at = None
        self._lag_s += w.chunk_delay_s
        if w.crlf:
            event = event.replace(b"\n", b"\r\n")
        if w.keep_alive_comments:
            event = b": keep-alive\n\n" + event
        if self._buffers or w.coalesce_chunks > 1:
            self._held.append(event)
            full = len(self._held) >= w.coalesce_chunks > 1 and not self._buffers
            return self._released(now_s) if full else []
        return self._pieces(now_s, event)

    def _released(self, now_s: float) -> list[Timed]:
        if not self._held:
            return []
        data = b"".join(self._held)
        self._held.clear()
        return self._pieces(now_s, data)

    def _pieces(self, now_s: float, data: bytes) -> list[Timed]:
        due, size = now_s + self._lag_s, self._wrong.split_bytes
        if not size:
            return [Timed(due, data)]
        cuts = range(0, len(data), size)
        return [Timed(due + 1e-6 * i, data[a : a + size]) for i, a in enumerate(cuts)]

    @property
    def lag_s(self) -> float:
        """How far the client's view is behind the engine's."""
        return self._lag_s


def edited(body: dict[str, Any], wrong: StreamDefects) -> None:
    """Take out or change, in place, what the faults say of a JSON body."""
    usage = body.get("usage")
    if usage and wrong.no_usage:
        del body["usage"]
    elif usage and wrong.usage_factor != 1.0 and usage.get("completion_tokens"):
        usage["completion_tokens"] = round(
            usage["completion_tokens"] * wrong.usage_factor
        )
    for name in wrong.strip_fields:
        body.pop(name, None)


def stripped_body(body: bytes, names: tuple[str, ...]) -> bytes:
    """The request as it goes on, without the fields that get lost on the way."""
    if not names:
        return body
    try:
        plain = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body
    if not isinstance(plain, dict):
        return body
    return msgspec.json.encode({k: v for k, v in plain.items() if k not in names})


def _body(event: bytes) -> dict[str, Any] | None:
    try:
        body = msgspec.json.decode(event.removeprefix(b"data:").strip())
    except msgspec.DecodeError:
        return None
    return body if isinstance(body, dict) else None


def _is_content(event: bytes) -> bool:
    return b'"delta":{"content":"' in event and b'"delta":{"content":""' not in event


def _is_last(event: bytes) -> bool:
    return b'"finish_reason":"' in event or event == DONE


def _error(message: str) -> bytes:
    problem = {"message": message, "type": "InternalServerError", "code": 500}
    return msgspec.json.encode({"error": problem})
