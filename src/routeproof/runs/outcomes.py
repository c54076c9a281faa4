"""How a request ended: one decision, in one order."""

from routeproof.records.outcome import Outcome
from routeproof.runs.capture import Capture
from routeproof.runs.said import ABORTED, Said
from routeproof.runs.words import short

_BELOW_HTTP: dict[str, Outcome] = {
    "timeout": "timeout",
    "connection_error": "connection_error",
    "invalid_response": "invalid_response",
    "cut_short": "connection_error",
    "cancelled": "cancelled",
    "not_started": "not_started",
}


def decide(
    capture: Capture, said: Said, server_words: str
) -> tuple[Outcome, str | None]:
    """The outcome and the words that go with it.

    An error event wins over everything after it; then an event that cannot be read;
    then the finish reasons, because an answer that the engine has declared finished
    is whole even if the socket dies afterwards; then what went wrong with the socket.

    Args:
        capture: Stamps, status and failure of the transport.
        said: What the body said.
        server_words: Start of the body, for a status that is no success.
    """
    kind, words = capture.failure or (None, None)
    if not capture.status:
        return _BELOW_HTTP[kind or "connection_error"], words
    if capture.status >= 400:
        return "http_error", _status_words(capture, server_words)
    if capture.status >= 300:
        where = capture.header("location") or "somewhere else"
        return "invalid_response", (
            f"status {capture.status}: redirected to {short(where)}; redirects are "
            "not followed, give the final address"
        )
    if said.error is not None:
        return "stream_error", said.error
    if said.broken is not None and (said.broken_inside or kind is None):
        return "invalid_response", said.broken
    finishes = said.finish_reasons()
    if finishes and None not in finishes:
        return _finished(said, finishes, words)
    if kind in ("timeout", "cancelled", "invalid_response"):
        return _BELOW_HTTP[kind], words
    if kind is None and not said.choices:
        return "empty", "the response ended without a single chunk"
    return "cut_short", words or "the stream ended without a finish reason"


def _finished(
    said: Said, finishes: list[str | None], words: str | None
) -> tuple[Outcome, str | None]:
    aborted = [f for f in finishes if f in ABORTED]
    if aborted:
        return "stream_error", f"the engine's finish reason is `{aborted[0]}`"
    if "content_filter" in finishes:
        return "refused", words
    if not said.said_something() and not said.usage.get("completion_tokens"):
        return "empty", words
    if "length" in finishes:
        return "truncated", words
    return ("completed" if said.said_something() else "empty"), words


def _status_words(capture: Capture, server_words: str) -> str:
    retry = capture.header("retry-after")
    after = f" (Retry-After: {short(retry)})" if retry else ""
    return f"status {capture.status}{after}: {server_words or 'no words'}"
