"""What the client keeps of one request while the clock runs: stamps and bytes."""

from dataclasses import dataclass, field
from typing import Literal

FailureKind = Literal[
    "timeout",
    "connection_error",
    "invalid_response",
    "cut_short",
    "cancelled",
    "not_started",
]


@dataclass(slots=True)
class Capture:
    """One request as the client saw it. Nothing in it has been interpreted.

    All stamps are ``time.monotonic_ns()``; 0 means that it did not happen.

    Attributes:
        intended_ns: When the schedule wanted it sent.
        dispatched_ns: When the client began it.
        sent_ns: When the socket had taken all bytes of the request, as far as the
            event loop tells.
        first_byte_ns: First byte of the response, status line included.
        end_ns: End of the response, or when it was given up.
        status: HTTP status; 0 before the response head came.
        headers: Names in lower case.
        stamps: When each socket read that carried some of the body came.
        pieces: What of the body it carried, still compressed if it was.
        size_bytes: Bytes received, head and framing included.
        failure: How it went wrong below HTTP, with words; ``None`` when it did not.
        new_connection: False when a kept-alive connection was used.
    """

    intended_ns: int
    dispatched_ns: int = 0
    sent_ns: int = 0
    first_byte_ns: int = 0
    end_ns: int = 0
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    failure: tuple[FailureKind, str] | None = None
    new_connection: bool = False

    def header(self, name: str) -> str | None:
        """The last header of this lower-case name."""
        for key, value in reversed(self.headers):
            if key == name:
                return value
        return None
