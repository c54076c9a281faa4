"""The canary as a part of other tools: Argo Rollouts, Flagger, OpenFeature."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from routeproof.canary.admin.http import Reply, Request
from routeproof.canary.deciding.state import SignalOutcome, State
from routeproof.canary.gateway import Gateway
from routeproof.canary.splitting.split import assign
from routeproof.canary.weighing.evidence import Standing, decides

OFREP = "/ofrep/v1/evaluate/flags"
GONE = ("rolling_back", "rolled_back")
WORST_FIRST = (
    SignalOutcome.FAIL,
    SignalOutcome.ERROR,
    SignalOutcome.STALE,
    SignalOutcome.NO_DATA,
    SignalOutcome.INCONCLUSIVE,
    SignalOutcome.PASS,
)


def overall(state: State, standings: Sequence[Standing]) -> SignalOutcome:
    """One outcome for all signals that decide: the worst of them.

    Without any required signal there is no data, and a candidate that was taken back
    has failed whatever its evidence says now.
    """
    if state.phase in GONE:
        return SignalOutcome.FAIL
    deciding = [s for s in standings if decides(s)]
    if not any(s.is_required for s in deciding):
        return SignalOutcome.NO_DATA
    return min((s.outcome for s in deciding), key=WORST_FIRST.index)


def analysis(gateway: Gateway, request: Request) -> Reply:
    """The shape Argo Rollouts' web metric reads: ``jsonPath: "{$.data.ok}"``.

    Every other status than 200 is an error to it, and no verdict. ``ok`` is true only
    for ``pass``; ``score`` is the share of required signals that pass, ``null`` without
    any.
    """
    name = request.path.rpartition("/")[2]
    state = gateway.store.read(name)
    if state is None:
        return Reply({"error": f"there is no canary `{name}`"}, 404)
    standings = gateway.taster.standings()
    required = [s for s in standings if s.is_required and not s.is_advisory]
    passed = sum(s.outcome is SignalOutcome.PASS for s in required)
    outcome = overall(state, standings)
    return Reply(
        {
            "data": {
                "ok": outcome is SignalOutcome.PASS,
                "outcome": outcome.value,
                "score": passed / len(required) if required else None,
                "phase": state.phase,
                "reason": state.reason,
                "failed": [
                    s.name
                    for s in standings
                    if s.outcome is SignalOutcome.FAIL and decides(s)
                ],
                "signals": {s.name: s.outcome.value for s in standings},
            }
        }
    )


def flagger(gateway: Gateway, request: Request) -> Reply:
    """Flagger's webhooks: 200 says yes, 403 says no, of every type there is.

    ``rollback`` says yes once the candidate has to go; the gates that confirm say yes
    only on evidence; ``rollout`` says no only to harm, since Flagger counts every no as
    a failed check; the others are notes, and welcome.
    """
    state = gateway.store.read(gateway.config.name)
    if state is None:
        return Reply({"phase": "unknown"}, 403)
    outcome = overall(state, gateway.taster.standings())
    is_gone = outcome is SignalOutcome.FAIL
    says_yes = {
        "rollback": is_gone,
        "confirm-rollout": not is_gone,
        "pre-rollout": not is_gone,
        "rollout": not is_gone,
        "confirm-traffic-increase": outcome is SignalOutcome.PASS,
        "confirm-promotion": state.phase == "promoted" or outcome is SignalOutcome.PASS,
        "post-rollout": True,
        "event": True,
    }
    hook = request.path.rpartition("/")[2]
    if hook not in says_yes:
        return Reply({"error": f"no hook `{hook}`", "known": list(says_yes)}, 404)
    said = {"phase": state.phase, "outcome": outcome.value, "reason": state.reason}
    return Reply(said, 200 if says_yes[hook] else 403)


def flag(gateway: Gateway, request: Request) -> Reply:
    """OpenFeature remote evaluation (OFREP) of the split, for one targeting key."""
    name = request.path.rpartition("/")[2]
    if name != gateway.config.name:
        details = f"the flag of this gateway is `{gateway.config.name}`"
        return _failed("FLAG_NOT_FOUND", details, 404, key=name)
    return _evaluated(gateway, request)


def flags(gateway: Gateway, request: Request) -> Reply:
    """The same for all flags, of which there is one.

    Clients ask again and again: an unchanged answer is a 304 to those who have it.
    """
    one = _evaluated(gateway, request)
    if one.status != 200 and one.body["errorCode"] != "GENERAL":
        return Reply({k: v for k, v in one.body.items() if k != "key"}, one.status)
    found = Reply({"flags": [one.body]})
    tag = f'"{hashlib.blake2b(found.encode(), digest_size=12).hexdigest()}"'
    if tag in [each.strip() for each in request.if_none_match.split(",")]:
        return Reply(None, 304, tag=tag)
    return replace(found, tag=tag)


def _evaluated(gateway: Gateway, request: Request) -> Reply:
    name = gateway.config.name
    context = request.body.get("context", {})
    if not isinstance(context, dict):
        return _failed("INVALID_CONTEXT", "`context` is no object", 400, key=name)
    key = context.get("targetingKey")
    if not isinstance(key, str) or not key:
        details = "the split is by caller: give `context.targetingKey`"
        return _failed("TARGETING_KEY_MISSING", details, 400, key=name)
    sticky_by = gateway.config.spec.traffic.sticky_by
    prefix = "h:" if sticky_by.startswith("header:") else "u:"
    if sticky_by not in ("user",) and prefix != "h:":
        details = f"the split is by {sticky_by}, which a flag client does not know"
        return _failed("GENERAL", details, 400, key=name)
    router = gateway.router
    arm = assign(prefix + key, salt=router.salt, weight_ppm=router.lease.weight_ppm())
    return Reply(
        {
            "key": name,
            "variant": arm,
            "value": arm == "canary",
            "reason": "SPLIT",
            "metadata": {"route": gateway.config.labels["canary"]},
        }
    )


def _failed(code: str, details: str, status: int, *, key: str) -> Reply:
    return Reply({"key": key, "errorCode": code, "errorDetails": details}, status)


def unreadable(path: str, problem: str) -> Reply:
    """The answer to a body that is none, in the shape the asked endpoint has."""
    if not path.startswith(OFREP):
        return Reply({"error": problem}, 400)
    body = {"errorCode": "PARSE_ERROR", "errorDetails": problem}
    key = path.removeprefix(OFREP).strip("/")
    return Reply({"key": key, **body} if key else body, 400)
