"""Which arm a live request goes to, and whether its answer is tasted."""

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from routeproof.canary.deciding.lease import Lease
from routeproof.canary.relay.decision import Decision, SecondTry
from routeproof.canary.relay.request import Request
from routeproof.canary.relay.upstream import Pool
from routeproof.canary.splitting.features import FEATURES, features_of, glance
from routeproof.canary.splitting.shadow_rules import no_replay
from routeproof.canary.splitting.share import ShareMeter
from routeproof.canary.splitting.split import LiveArm, assign, is_sampled
from routeproof.canary.splitting.structure import structure_check
from routeproof.canary.tasting.tee import Copy
from routeproof.proof.canary import TrafficSpec

GENERATION_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses")
"""Paths whose requests are split; everything else goes to the baseline."""

TASTED_PATHS = GENERATION_PATHS
"""Paths whose answers can be read by the scorers."""

STORED = FEATURES["stored_state"]
"""Answers that lean on what one arm's engine keeps are not tasted: the other arm could
not give them."""

READ_BYTES_MAX = 4 * 1024 * 1024
"""Longer bodies are not read on the event loop (4 MiB take it some 4 ms): they go to
the baseline and take no part in the comparison, whatever their caller's arm is."""


@dataclass(slots=True)
class Counts:
    """What passed, by what a metrics page shows."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(slots=True)
class CanaryRouter:
    """Splits live traffic; a ``relay.Router``.

    Attributes:
        salt: Enters every hash; the canary's name and attempt.
        pools: ``baseline`` and ``canary``.
        keys: ``Authorization`` value by pool name; a pool without one passes the
            caller's own.
        override_key: Testers' key, or ``None`` when arms cannot be chosen.
        taste: Takes finished copies; must return at once.
    """

    salt: str
    pools: Mapping[str, Pool]
    keys: Mapping[str, bytes] = field(repr=False)
    traffic: TrafficSpec
    lease: Lease
    meter: ShareMeter
    sample_ppm: int
    taste: Callable[[Copy], None]
    override_key: str | None = field(default=None, repr=False)
    counts: Counts = field(default_factory=Counts)

    def route(self, request: Request) -> Decision:
        """The arm of one request, decided from the path, the caller and the body."""
        found = dict(request.headers)
        request_id = _request_id(found)
        path, body = request.path, request.body
        if path not in GENERATION_PATHS or request.method != "POST":
            return self._decision("baseline", request_id, None)
        fields = glance(body) if len(body) <= READ_BYTES_MAX else None
        if fields is None:
            return self._decision("baseline", request_id, None)
        weight = self.lease.weight_ppm()
        chosen = self._override(found)
        if chosen is not None:
            return self._decision(chosen if weight else "baseline", request_id, None)
        arm = self._arm(found, fields, body, weight)
        copy = second = None
        if path in TASTED_PATHS and arm != "baseline":
            sampled = is_sampled(request_id, salt=self.salt, share_ppm=self.sample_ppm)
            if sampled and not STORED(fields):
                copy = self._copy(arm, request_id, fields, request)
        if arm == "canary" and self.traffic.retry_invalid_structure:
            second = self._second(path, fields)
        return self._decision(arm, request_id, copy, second)

    def _second(self, path: str, fields: Mapping[str, Any]) -> SecondTry | None:
        """The baseline as a stand-in for an invalid whole structured answer."""
        is_good = structure_check(path, fields)
        if is_good is None:
            return None
        return SecondTry(self.pools["baseline"], self.keys.get("baseline"), is_good)

    def _arm(
        self,
        headers: Mapping[bytes, bytes],
        fields: Mapping[str, Any],
        body: bytes,
        weight: int,
    ) -> LiveArm:
        """The arm of a caller; testers' requests never get here, nor are they tasted.

        A feature of the fallback list takes a request out of the comparison in both
        arms: a control that kept such requests would not match the candidate.
        """
        tenant = headers.get(b"x-tenant-id", b"").decode("latin-1")
        if tenant in self.traffic.off_tenants and tenant:
            return "baseline"
        arm = assign(
            self._key(headers, fields, body), salt=self.salt, weight_ppm=weight
        )
        if arm == "baseline" or not self.traffic.fallback:
            return arm
        used = features_of(fields).intersection(self.traffic.fallback)
        if used and arm == "canary":
            self.counts.fallbacks.update(used)
        return "baseline" if used else arm

    def _override(self, headers: Mapping[bytes, bytes]) -> LiveArm | None:
        """The arm a tester asks for, when the key is right."""
        asked = headers.get(b"x-routeproof-arm", b"").decode("latin-1")
        given = headers.get(b"x-routeproof-key", b"")
        if self.override_key is None or asked not in ("canary", "baseline"):
            return None
        if not hmac.compare_digest(given, self.override_key.encode()):
            return None
        return "canary" if asked == "canary" else "baseline"

    def _key(
        self, headers: Mapping[bytes, bytes], fields: Mapping[str, Any], body: bytes
    ) -> str:
        """What keeps a caller on its arm; a request without it stands for itself."""
        how = self.traffic.sticky_by
        if how.startswith("header:"):
            value = headers.get(how.removeprefix("header:").lower().encode(), b"")
            if value:
                return f"h:{value.decode('latin-1')}"
        elif how == "api_key" and headers.get(b"authorization"):
            return f"k:{_digest(headers[b'authorization'])}"
        elif how == "prompt":
            return f"p:{hashlib.blake2b(body, digest_size=16).hexdigest()}"
        elif isinstance(fields.get("user"), str):
            return f"u:{fields['user']}"
        return f"r:{secrets.token_hex(8)}"

    def _copy(
        self,
        arm: LiveArm,
        request_id: str,
        fields: Mapping[str, Any],
        request: Request,
    ) -> Copy:
        user, headers = fields.get("user"), dict(request.headers)
        owner = owner_digest(user) if isinstance(user, str) else None
        kind = "stream" if fields.get("stream") else "whole"
        key = self._key(headers, fields, request.body)
        return Copy(
            request_id=request_id,
            arm=arm,
            stratum=kind,
            raw=request.body,
            owner=owner,
            done=self.taste,
            unit=_digest(key.encode("utf-8", "surrogatepass")),
            path=request.path,
            no_replay=no_replay(headers, fields)
            if request.path != "/v1/responses"
            else "acts",  # kept by the server unless it says otherwise
            trace=headers.get(b"traceparent", b"").decode("latin-1") or None,
            caller_key=_caller_key(headers),
        )

    def _decision(
        self,
        arm: LiveArm,
        request_id: str,
        copy: Copy | None,
        second: SecondTry | None = None,
    ) -> Decision:
        pool = "canary" if arm == "canary" else "baseline"
        self.meter.began(arm)
        return Decision(
            arm=arm,
            pool=self.pools[pool],
            authorization=self.keys.get(pool),
            request_id=request_id,
            sample=copy,
            second=second,
        )

    def ended(self, decision: Decision, status: int, outcome: str) -> None:
        """Count an exchange that is over."""
        self.meter.ended(decision.arm)
        self.counts.requests[decision.arm, str(status)] += 1
        self.counts.outcomes[decision.arm, outcome] += 1


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    """The caller's own request id when it is a plain one, else a fresh one."""
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    if 8 <= len(given) <= 64 and all(c.isalnum() or c in "-_." for c in given):
        return given
    return secrets.token_hex(12)


def _caller_key(headers: Mapping[bytes, bytes]) -> str | None:
    """The key a caller came with, without its scheme."""
    for name in (b"authorization", b"api-key", b"x-api-key"):
        if headers.get(name):
            return headers[name].decode("latin-1").rpartition(" ")[2]
    return None


def owner_digest(user: str) -> str:
    """What a sample remembers of its user: enough to erase by, no name."""
    return _digest(user.encode("utf-8", "surrogatepass"))


def _digest(value: bytes) -> str:
    return hashlib.blake2b(value, digest_size=16).hexdigest()
