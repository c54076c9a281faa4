"""The copy of a sampled exchange: taken on the side, parsed off the event loop.

Taking it costs one append per piece. A copy that grows too large is given up and
counted; the client's own bytes are never held back or changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Any

from routeproof.canary.relay.upstream import Headers
from routeproof.canary.samples.signals import text_of_prompt
from routeproof.canary.splitting.features import parse_body
from routeproof.canary.splitting.split import LiveArm
from routeproof.canary.tasting.responses import PATH as RESPONSES
from routeproof.canary.tasting.responses import as_chat, as_chat_request
from routeproof.engines.adapter import Adapter
from routeproof.records.record import Arm, Key, Record
from routeproof.runs.capture import Capture, FailureKind
from routeproof.runs.parse import Origin, parse

MAX_COPY_BYTES = 8 * 1024 * 1024

RECORD_ARM: dict[LiveArm, Arm] = {
    "canary": "candidate",
    "control": "control",
    "baseline": "baseline",
}

_FAILURES: dict[str, FailureKind] = {
    "cut_short": "cut_short",
    "cancelled": "cancelled",
}


@dataclass(slots=True)
class Copy:
    """One exchange as it passed.

    Attributes:
        raw: The request body as it came; the prompt in it never leaves the process
            unless prompts are kept.
        done: Called once, on the event loop, when the exchange is over.
        unit: Digest of what keeps its caller on the arm; never kept.
        path: Of the request.
        no_replay: Why the prompt may not be asked of the other arm too; ``None`` when
            it may.
        trace: The caller's ``traceparent``.
        caller_key: The caller's own key, to be taken out of what is kept.
    """

    request_id: str
    arm: LiveArm
    stratum: str
    raw: bytes = field(repr=False)
    owner: str | None
    done: Callable[["Copy"], None]
    unit: str | None = None
    path: str = "/v1/chat/completions"
    no_replay: str | None = "not offered"
    trace: str | None = None
    caller_key: str | None = field(default=None, repr=False)
    began_ns: int = field(default_factory=monotonic_ns)
    capture: Capture = field(init=False, repr=False)
    is_too_large: bool = field(default=False, init=False)
    _body: Mapping[str, Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.capture = Capture(self.began_ns, self.began_ns)

    @property
    def body(self) -> Mapping[str, Any]:
        """The request body, parsed when first asked for: not for the event loop.

        ``_prompt`` is the text of its prompt. Requests of ``/v1/responses`` are in the
        shape of chat.
        """
        if self._body is None:
            fields = parse_body(self.raw) or {}
            if self.path == RESPONSES:
                fields = as_chat_request(fields)
            self._body = {**fields, "_prompt": text_of_prompt(fields)}
        return self._body

    def head(self, status: int, headers: Headers) -> None:
        """The answer's head came."""
        self.capture.status = status
        self.capture.first_byte_ns = monotonic_ns()
        self.capture.headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in headers
        ]

    def piece(self, data: bytes, at_s: float) -> None:
        """A piece of the answer's body came."""
        if self.is_too_large:
            return
        self.capture.size_bytes += len(data)
        if self.capture.size_bytes > MAX_COPY_BYTES:
            self.is_too_large = True
            self.capture.pieces.clear()
            self.capture.stamps.clear()
            return
        self.capture.stamps.append(monotonic_ns())
        self.capture.pieces.append(data)

    def end(self, outcome: str) -> None:
        """The exchange is over."""
        self.capture.end_ns = monotonic_ns()
        kind = _FAILURES.get(outcome)
        if kind is not None:
            self.capture.failure = (kind, f"seen by the relay as {outcome}")
        self.done(self)

    def record(self, adapter: Adapter, wall_s: float) -> Record:
        """The exchange as any run would record it. Not for the event loop."""
        key = Key(
            request_id=self.request_id,
            arm=RECORD_ARM[self.arm],
            phase="soak",
            level="live",
            block=0,
            case_id=self.request_id,
            trial=0,
        )
        origin = Origin(monotonic_ns=self.began_ns, wall_s=wall_s)
        is_chat = self.path != RESPONSES
        capture = self.capture if is_chat else as_chat(self.capture)
        return parse(capture, key, adapter, origin)

    def response_id(self) -> str | None:
        """The ``id`` the engine gave its answer, from the first bytes of the body."""
        start = b"".join(self.capture.pieces[:4])[:4096]
        at = start.find(b'"id"')
        if at < 0:
            return None
        value = start[at + 4 :].lstrip(b" \t:")
        if not value.startswith(b'"'):
            return None
        end = value.find(b'"', 1)
        return value[1:end].decode("utf-8", "replace") if end > 0 else None
