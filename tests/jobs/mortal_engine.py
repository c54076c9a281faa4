"""An engine of a few words, as a program of its own, that some requests end.

    python mortal_engine.py PORT FEATURE...

A request that carries a feature's field ends the process before it is answered, as a
worker that fails takes its server along.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from toy_engine import Toy

port, deadly = int(sys.argv[1]), set(sys.argv[2:])
pages = Toy().pages()


class Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(pages.get(self.path))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if deadly & body.keys():
            print("ended by", *sorted(deadly & body.keys()), flush=True)
            os._exit(3)
        self.answer(pages[self.path](body) if self.path in pages else None)

    def answer(self, page):
        text = b"{}" if page is None else page.body.encode()
        self.send_response(404 if page is None else page.status)
        kind = "text/event-stream" if text[:5] == b"data:" else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


print("listening", port, flush=True)
ThreadingHTTPServer(("127.0.0.1", port), Engine).serve_forever()
