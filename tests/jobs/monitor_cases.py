"""A simulated engine looked at again and again, in its own virtual time."""

import json

from simulator import sim_client as client

from routeproof.engines.adapters import adapter
from routeproof.jobs.monitoring.watch import Look, Watcher
from routeproof.simulator.route import Speculation
from routeproof.simulator.virtual import VirtualEngine

NAMES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama.cpp",
    "tensorrt_llm": "tensorrt-llm",
}
GOOD, BAD = (0.8, 0.7, 0.6, 0.5), (0.35, 0.3, 0.25, 0.2)


class Story:
    """What happens to one engine, told to a watcher look by look."""

    def __init__(self, dialect="vllm"):
        self.dialect = dialect
        self.adapter = adapter(NAMES[dialect])
        self.watcher = Watcher(self.adapter)
        self.number = 0
        self.sent = 0
        self.ticks = []
        self.start(GOOD)

    def start(self, acceptance, **speculation):
        """Begin anew, as after a restart."""
        given = {"acceptance": acceptance, "spread": 0.1, **speculation}
        route = client.route(
            dialect=self.dialect, speculation=Speculation(**given), seed=self.number
        )
        self.venue = VirtualEngine(route)

    def traffic(self, requests=6, prompt="Tell me of {}", max_tokens=48):
        for _ in range(requests):
            self.sent += 1
            body = client.chat(prompt.format(self.sent), max_tokens=max_tokens)
            self.venue.send(
                self.venue.now_s, "/v1/chat/completions", json.dumps(body).encode()
            )
            self.venue.next_end()

    def look(self, page="", **changes):
        """One look; ``page=None`` is an engine that does not answer."""
        seen = self.venue.page(self.adapter.metrics_path) if page == "" else page
        minutes, seconds = divmod(self.number * 10, 60)
        given = {
            "at_s": 10.0 * self.number,
            "wall": f"2026-12-01T10:{minutes:02d}:{seconds:02d}+00:00",
            "page": seen,
            "why": None if seen is not None else "refused",
            **changes,
        }
        self.number += 1
        self.ticks.append(self.watcher.step(Look(**given)))
        return self.ticks[-1]

    def windows(self, count, **traffic):
        """Traffic and a look, again and again."""
        for _ in range(count):
            self.traffic(**traffic)
            self.look()
        return self.ticks[-count:]

    def alarms(self):
        return [alarm for tick in self.ticks for alarm in tick.alarms]
