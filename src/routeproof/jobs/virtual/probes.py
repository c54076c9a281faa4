"""The probes of a run, put to simulated routes in virtual time."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from routeproof.gates.probed import Answered, Probed
from routeproof.jobs.gathering.stored_probes import FILE_NAME
from routeproof.jobs.qualifying.probe_requests import Asking, Hints, ProbedArm, answered
from routeproof.jobs.virtual.venue import Venue
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder

BETWEEN_S = 0.01

Answers = dict[str, dict[str, tuple[Answered, ...]]]
"""By probe and prompt, in the order in which they were asked."""


def probe_baseline(venue: Venue) -> tuple[Hints, dict[str, Answers]]:
    """Ask a baseline, and the same one again as its control.

    Returns:
        What its answers are good for in requests to a candidate, and the answers of
        both arms.
    """
    first = ProbedArm(_asking(venue))
    asyncio.run(first.texts())
    hints = Hints.of(first)
    asyncio.run(first.parameters(hints))
    control = ProbedArm(_asking(venue))
    asyncio.run(control.texts())
    asyncio.run(control.parameters(hints, choices=False))
    return hints, {"baseline": first.answers, "control": control.answers}


def probe_candidate(venue: Venue, hints: Hints) -> Answers:
    """Ask a candidate what the baseline was asked."""
    arm = ProbedArm(_asking(venue))
    asyncio.run(arm.texts())
    asyncio.run(arm.parameters(hints))
    return arm.answers


def write_probes(
    folder: RunFolder, hints: Hints, answers: Mapping[str, Answers]
) -> None:
    """Keep the answers with the run, as a real one does.

    No token is banned: the toy tokenizer's ids mean nothing to a request.
    """
    path = folder.path / "probe" / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    found = Probed(answers=dict(answers), stop=dict(hints.stop))
    write_atomically(path, msgspec.json.encode(found, order="sorted") + b"\n")


def _asking(venue: Venue) -> Asking:
    """Requests one after the other: the virtual clock runs for one at a time."""
    engine = venue.engine

    async def ask(
        messages: tuple[dict[str, str], ...], fields: Mapping[str, Any]
    ) -> Answered:
        body = {"model": venue.target.model, "messages": messages, **fields}
        engine.idle_until(engine.now_s + BETWEEN_S)
        sent = engine.send(
            engine.now_s, "/v1/chat/completions", msgspec.json.encode(body)
        )
        while sent.end_s is None and engine.next_end() is not None:
            pass
        if sent.failure is not None:
            return Answered(words=sent.failure.replace("_", " "))
        whole = b"".join(data for _, data in sent.pieces)
        return answered(sent.status, whole, is_stream=bool(fields.get("stream")))

    return ask
