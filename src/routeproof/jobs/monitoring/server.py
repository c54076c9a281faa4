"""A small web server beside the monitor: its Prometheus page and its dashboard."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from routeproof.errors import ConfigError
from routeproof.reports.monitor_page import Shown, dashboard, metrics_page

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, place: tuple[str, int], shown: Callable[[], Shown]) -> None:
        super().__init__(place, _Handler)
        self.shown = shown


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        path = self.path.split("?", 1)[0]
        if path == "/metrics":
            self._reply(200, metrics_page(self.server.shown()).encode(), TEXT)
        elif path == "/dashboard.json":
            body = json.dumps(dashboard(), indent=2).encode()
            self._reply(200, body, "application/json")
        else:
            self._reply(404, b"/metrics or /dashboard.json\n", "text/plain")

    def _reply(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: the terminal belongs to the command."""


@contextmanager
def exposing(shown: Callable[[], Shown], host: str, port: int) -> Iterator[str]:
    """Serve the page while the block runs.

    Args:
        shown: What it shows, asked at every scrape.
        host: Address to listen on.
        port: A free one when 0.

    Yields:
        Its URL.

    Raises:
        ConfigError: The address cannot be listened on.
    """
    try:
        server = _Server((host, port), shown)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            key="--listen",
            hint="choose another port, or 0 for a free one",
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
