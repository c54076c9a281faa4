"""The small web server of a review: loopback only, one secret in its address."""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError, RouteproofError
from routeproof.jobs.reviewing.page import PAGE
from routeproof.jobs.reviewing.session import Review
from routeproof.scorers.label_files import Label

LOOPBACK = "127.0.0.1"
MAX_BODY_BYTES = 8 << 20


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    answer: str
    note: str = ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, review: Review, port: int) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.review = review
        self.token = secrets.token_urlsafe(16)
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        place = self._place()
        review = self.server.review
        if place == "":
            nonce = secrets.token_urlsafe(12)
            policy = (
                f"default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; "
                f"style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
            )
            page = PAGE.replace("@NONCE@", nonce).encode()
            self._reply(200, page, "text/html; charset=utf-8", policy)
        elif place == "api/items":
            told = {"question": review.question, "items": review.shown()}
            self._reply(200, json.dumps(told).encode(), "application/json")
        elif place == "api/export":
            lines = [msgspec.json.encode(label) + b"\n" for label in review.labels]
            self._reply(200, b"".join(lines), "application/jsonl")
        else:
            self._reply(404, b"not found", "text/plain")

    def do_POST(self) -> None:
        place = self._place()
        size = self.headers.get("Content-Length", "")
        if place not in ("api/labels", "api/import"):
            self._reply(404, b"not found", "text/plain")
        elif not size.isdigit() or int(size) > MAX_BODY_BYTES:
            self._reply(413, b"too large", "text/plain")
        else:
            body = self.rfile.read(int(size))
            try:
                told = self._take(place, body)
            except (RouteproofError, msgspec.MsgspecError) as error:
                self._reply(400, str(error).encode(), "text/plain")
            else:
                self._reply(200, json.dumps(told).encode(), "application/json")

    def _take(self, place: str, body: bytes) -> dict[str, int]:
        review = self.server.review
        with self.server.lock:
            if place == "api/import":
                lines = [line for line in body.splitlines() if line.strip()]
                labels = [msgspec.json.decode(line, type=Label) for line in lines]
                return {"new": review.bring_in(labels)}
            said = msgspec.json.decode(body, type=_Answer)
            review.take(said.id, said.answer, said.note)
            return {"done": review.done()}

    def _place(self) -> str | None:
        """Path after the secret; ``None`` for whoever does not know it.

        A request under another host name is refused: a page elsewhere could have
        pointed its own name at this machine.
        """
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        parts = self.path.split("?", 1)[0].split("/", 2)
        is_known = len(parts) == 3 and secrets.compare_digest(
            parts[1].encode(), self.server.token.encode()
        )
        return parts[2] if is_known and host in (LOOPBACK, "localhost") else None

    def _reply(
        self, status: int, body: bytes, kind: str, policy: str = "default-src 'none'"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: the terminal belongs to the command."""


@contextmanager
def serving(review: Review, *, port: int = 0) -> Iterator[str]:
    """Serve a review on loopback while the block runs.

    Args:
        review: The session.
        port: A free one when 0.

    Yields:
        The address to open; the secret is in it.

    Raises:
        ConfigError: The port is taken.
    """
    try:
        server = _Server(review, port)
    except OSError as error:
        raise ConfigError(
            f"cannot serve on {LOOPBACK}:{port}: {error.strerror}",
            hint="leave --port away to take a free one",
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def export_labels(review: Review, path: Path) -> int:
    """Write the labels of a review to a file; how many there are."""
    lines = [msgspec.json.encode(label) + b"\n" for label in review.labels]
    path.write_bytes(b"".join(lines))
    return len(lines)
