"""How a request can end. Decided once, before anything is scored."""

from typing import Literal, get_args

Outcome = Literal[
    "completed",
    "truncated",
    "empty",
    "refused",
    "http_error",
    "stream_error",
    "cut_short",
    "invalid_response",
    "timeout",
    "connection_error",
    "cancelled",
    "not_started",
]
"""Closed set of ends.

completed
    A finish reason other than ``length`` came, with text, reasoning or a tool call.
truncated
    The engine stopped at ``max_tokens`` (finish reason ``length``).
empty
    It ended properly and said nothing at all.
refused
    The server's own content filter ended it (finish reason ``content_filter``). A
    refusal in words is a matter for a scorer, not for this class.
http_error
    A status of 400 or more.
stream_error
    HTTP 200, then an error event or body.
cut_short
    The stream ended without a finish reason, whatever the socket said.
invalid_response
    Not the protocol: HTML, broken JSON, a wrong shape.
timeout
    The request's own deadline passed.
connection_error
    Refused, reset, DNS, TLS.
cancelled
    Stopped by us (Ctrl-C, end of stage).
not_started
    Due by the schedule, never sent.
"""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

SERVED: frozenset[str] = frozenset({"completed", "truncated"})
"""Outcomes whose times are those of an answer. All others count as failures: they
stay in every denominator and are +inf in the tails of latencies."""
