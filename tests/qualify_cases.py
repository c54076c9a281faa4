"""Two small servers that answer numbered questions, and proofs of them."""

import contextlib
import json
import re
from dataclasses import dataclass

from fakes.openai_server import chat_stream, json_reply, serving_in_thread

from routeproof.workloads.case import Case
from routeproof.workloads.cases import write_cases

MODELS = json_reply({"object": "list", "data": [{"id": "toy"}]})


@dataclass
class Answering:
    """A script: echoes the number of a question unless it is in ``wrong``.

    ``dies_after``: chat requests after which every further one is refused. ``asked``
    counts them, ``asked_by_the_first`` those of a first run.
    """

    wrong: frozenset = frozenset()
    dies_after: int | None = None
    asked: int = 0
    asked_by_the_first: int = 0

    def __call__(self, seen):
        if seen.method == "GET":
            return MODELS if seen.path.endswith("/models") else json_reply({}, 404)
        self.asked += 1
        if self.dies_after is not None and self.asked > self.dies_after:
            return json_reply({"error": {"message": "engine is dead"}}, 503)
        words = seen.json["messages"][-1]["content"]
        found = re.search(r"crate (\d+)", str(words))
        number = int(found[1]) if found else -1
        told = "none" if number in self.wrong else str(number)
        if not seen.json.get("stream"):
            return json_reply(whole_answer(f"It holds {told} lamps."))
        return chat_stream(["It ", "holds ", f"{told} ", "lamps."])


def whole_answer(text):
    """The body of an answer that is not streamed."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 4},
    }


def crates(n, **changes):
    """Cases whose right answer is their own number."""
    return tuple(
        Case(
            id=f"c{i}",
            class_="odd" if i % 2 else "even",
            messages=({"role": "user", "content": f"How many are in crate {i}?"},),
            reference=str(i),
            scorers=("numeric",),
            **changes,
        )
        for i in range(n)
    )


@contextlib.contextmanager
def two_routes(baseline=None, candidate=None):
    """Both servers, running."""
    with (
        serving_in_thread(baseline or Answering()) as first,
        serving_in_thread(candidate or Answering()) as second,
    ):
        yield first, second


def write_proof(folder, servers, *, cases, tolerance=0.05, **further):
    """``proof.yaml`` and ``cases.jsonl`` in a folder; returns the proof's path."""
    write_cases(cases, folder / "cases.jsonl")
    load = {"latency": None, "warmup_requests": 0, **further.pop("load", {})}
    workload = {"cases": ["cases.jsonl"], "load": load, **further.pop("workload", {})}
    proof = {
        "baseline": {"endpoint": servers[0].url, "model": "toy", "revision": "r1"},
        "candidate": {
            "like": "baseline",
            "endpoint": servers[1].url,
            "kv_cache": "fp8_e4m3",
            "changes": ["kv_cache"],
        },
        "workload": workload,
        "quality": [{"metric": "headline", "tolerance": tolerance}],
        **further,
    }
    path = folder / "proof.yaml"
    path.write_text(json.dumps(proof))
    return path


def cases_sent(folder, arm="candidate", phase="quality"):
    """Ids of the cases of which an arm has a record, in the order they were sent."""
    found = []
    for part in folder.parts(only=("arm", "phase", "case_id", "intended_s")):
        keep = part.is_in("arm", arm) & part.is_in("phase", phase)
        found += part.where(keep).text("case_id").tolist()
    return found
