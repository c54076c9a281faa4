"""Put the probes of `gates.probed` to two standing routes; keep what they say.

Short requests, none of them timed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from routeproof.engines.capabilities import Revive
from routeproof.engines.culprits import Mortal, culprits
from routeproof.engines.http import fetch
from routeproof.engines.tokenize import tokenize
from routeproof.errors import ConfigError
from routeproof.gates.probed import Answered, Probed
from routeproof.jobs.gathering.stored_probes import FILE_NAME
from routeproof.jobs.qualifying.probe_requests import (
    AT_ONCE,
    PROMPTS,
    Asking,
    Hints,
    ProbedArm,
    answered,
)
from routeproof.jobs.qualifying.route_checks import RouteChecks
from routeproof.jobs.qualifying.stand_up import Routes, Standing
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder

DEADLINE_S = 60.0

PROBES_OF = {
    "penalties": ("frequency_penalty", "presence_penalty"),
    "several_choices": ("choices",),
}
"""Features that are asked for by probes of other names."""


async def probe_routes(
    routes: Routes, folder: RunFolder, checks: RouteChecks | None = None
) -> tuple[str, ...]:
    """Ask baseline, baseline again and candidate; write the answers into the run.

    A run that has them already (it is resumed) is not asked again. A request that is
    refused or fails is an answer without text. What is known to end an engine is not
    put to it; one launched here that ends all the same is started anew.

    Returns:
        Probes that ended the candidate's engine and were not known to.

    Raises:
        EngineError: An engine that was started anew did not come up.
    """
    path = folder.path / "probe" / FILE_NAME
    if path.exists():
        return ()
    known = {
        arm: () if checks is None else checks.ending(arm)
        for arm in ("baseline", "candidate")
    }
    arms = {
        "baseline": _arm_of(routes, "baseline", known["baseline"]),
        "control": _arm_of(routes, "baseline", known["baseline"]),
        "candidate": _arm_of(routes, "candidate", known["candidate"]),
    }
    for arm in arms.values():
        await arm.texts()
    plain = arms["baseline"].plain_texts()
    hints = Hints.of(arms["baseline"], await _first_tokens(routes.baseline, plain))
    ended: dict[str, tuple[str, ...]] = {}
    for name, arm in arms.items():
        side = "candidate" if name == "candidate" else "baseline"
        before = tuple(arm.given_up)
        await arm.parameters(hints, choices=name != "control")
        revive = routes.revive(side)
        if revive is not None and not await arm.stands():
            ended[name] = await _told_apart(arm, hints, before, revive)
    found = Probed(
        answers={name: arm.answers for name, arm in arms.items()},
        stop=dict(hints.stop),
        banned={prompt: text for prompt, (_, text) in hints.banned.items()},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.encode(found, order="sorted") + b"\n")
    return ended.get("candidate", ())


def _arm_of(routes: Routes, arm: str, ending: Sequence[str]) -> ProbedArm:
    """An arm whose engine ends at these features."""
    probes = [p for name in ending for p in PROBES_OF.get(name, (name,))]
    return ProbedArm(
        _asking(routes, arm),
        given_up=dict.fromkeys(probes),
        is_told="logprobs" not in ending,
    )


async def _told_apart(
    arm: ProbedArm, hints: Hints, known: Sequence[str], revive: Revive
) -> tuple[str, ...]:
    """Which probes ended the engine; the others that failed are asked once more."""
    suspects = [name for name in arm.given_up if name not in known]
    first = {probe: requests for probe, _, requests in reversed(hints.asked())}

    async def ask(probe: str) -> None:
        for fields in first[probe]:
            await arm.ask(PROMPTS["short"], fields)

    async def up() -> None:
        await revive()

    told = await culprits(suspects, Mortal(ask, arm.stands, up), at_once=AT_ONCE)
    guilty = (*told.end, *told.together)
    again = [name for name in suspects if name not in (*guilty, *told.untried)]
    for name in again:
        del arm.given_up[name]
        del arm.answers[name]
    await arm.parameters(hints, only=frozenset(again))
    return guilty


async def _first_tokens(
    standing: Standing, texts: Mapping[str, str | None]
) -> dict[str, tuple[int, str]]:
    """Id and text of the token each answer begins with, where the engine tells ids."""
    found = {}
    for prompt, text in texts.items():
        word = (text or "").split(" ")[0]
        if not word.isalpha():
            continue
        ids = await tokenize(
            standing.endpoint, standing.adapter.name, standing.model, word
        )
        if ids is not None and len(ids) == 1:
            found[prompt] = (ids[0], word)
    return found


def _asking(routes: Routes, arm: str) -> Asking:
    async def ask(
        messages: tuple[dict[str, str], ...], fields: Mapping[str, Any]
    ) -> Answered:
        standing = routes.standing(arm)
        endpoint, model = standing.endpoint, standing.model
        body = {"model": model, "messages": messages, **fields}
        try:
            reply = await fetch(
                endpoint,
                endpoint.api("chat/completions"),
                body=body,
                deadline_s=DEADLINE_S,
            )
        except ConfigError as error:
            return Answered(words=error.message)
        return answered(reply.status, reply.body, is_stream=bool(fields.get("stream")))

    return ask
