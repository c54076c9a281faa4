"""The canary block made exact: names to upstreams, words to rules, shares to ppm."""

import hashlib
import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from routeproof.canary.config_checks import (
    check_addresses,
    check_labels,
    check_spec,
)
from routeproof.canary.deciding.state import Steps
from routeproof.canary.deciding.stores import check_store
from routeproof.canary.relay.listener import Tls
from routeproof.canary.route_names import slug, upstream, with_routes
from routeproof.canary.samples.cleaning import cleaner_of
from routeproof.canary.splitting.shadow_rules import (
    check_shadow,
    graders_in_words,
    shadow_in_words,
)
from routeproof.canary.splitting.split import PPM
from routeproof.canary.weighing.evidence import SignalPolicy
from routeproof.canary.weighing.policies import policies
from routeproof.errors import ConfigError
from routeproof.proof.canary import CanarySpec, sample_share
from routeproof.proof.checks import check_endpoint
from routeproof.proof.file import proof_of
from routeproof.proof.proof import Proof
from routeproof.proof.yaml_text import parse, read_text

LISTEN = "127.0.0.1:8080"
ADMIN = "127.0.0.1:8081"
LEASE_S = 10.0
SIDES = {"baseline": "baseline", "canary": "candidate"}


@dataclass(frozen=True, slots=True)
class CanaryConfig:
    """Everything the gateway needs, resolved and checked.

    Attributes:
        name: File-safe name of this canary.
        upstreams: ``baseline`` and ``canary`` to the URL of the route.
        labels: The same to the name people gave the route.
        candidate_digest: Identifies what is being tried; a rollback is final for it.
        slo: Limits in seconds for the ``slow`` signals.
        routes: Both routes of the proof as plain data, for marks of what was edited.
        tls: What both listeners show; ``None`` for plain HTTP.
        upstream_ca: Authorities that vouch for ``https`` upstreams, in place of the
            system's.
        access_log: One line per request goes there; ``None`` keeps none.
    """

    name: str
    spec: CanarySpec
    upstreams: Mapping[str, str]
    labels: Mapping[str, str]
    candidate_digest: str
    sample_ppm: int
    steps: Steps
    policies: Mapping[str, SignalPolicy]
    slo: Mapping[str, float]
    lease_s: float
    folder: Path
    listen: str
    admin: str
    routes: Mapping[str, Any] = field(default_factory=dict)
    tls: Tls | None = None
    upstream_ca: Path | None = None
    access_log: Path | None = None
    notes: tuple[str, ...] = field(default=())

    def key_names(self) -> list[str]:
        """Variables that hold keys, for those who must take the keys out of texts."""
        traffic, graders = self.spec.traffic, self.spec.graders
        named = [
            *traffic.api_keys_env.values(),
            traffic.admin_key_env,
            traffic.override_key_env,
            self.spec.privacy.seal_key_env,
            *(one.api_key_env for one in (graders.judge, graders.embeddings) if one),
        ]
        return [name for name in named if name is not None]

    def upstream_tls(self) -> ssl.SSLContext | None:
        """How ``https`` upstreams are verified; ``None``: by the system's authorities.

        Raises:
            ConfigError: The file holds no certificates.
        """
        if self.upstream_ca is None:
            return None
        try:
            return ssl.create_default_context(cafile=self.upstream_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"{self.upstream_ca} cannot be used: "
                f"{error.strerror or 'it holds no certificate'}",
                key="canary.traffic.upstream_ca",
            ) from None


def load_canary(path: Path) -> CanaryConfig:
    """Read a file with a ``canary:`` block, short or long.

    Raises:
        ConfigError: The file is wrong, a route name leads nowhere, or a condition is
            written in words that nobody understands: a gate that is not understood
            is refused, never skipped.
    """
    document = parse(read_text(path), path)
    proof = proof_of(with_routes(document, path), path)
    spec = proof.canary
    if spec is None:
        raise ConfigError(
            "has no `canary:` block",
            path=path,
            hint="add `canary: {candidate: ..., baseline: ...}`",
        )
    upstreams = {
        "baseline": upstream(spec.baseline, "baseline", spec, proof, path),
        "canary": upstream(spec.candidate, "candidate", spec, proof, path),
    }
    for side, url in upstreams.items():
        check_endpoint(url, path, f"canary.{SIDES[side]}")
    if upstreams["baseline"] == upstreams["canary"]:
        raise ConfigError(
            f"both routes lead to {upstreams['canary']}",
            path=path,
            key="canary.candidate",
            hint="a canary needs two endpoints",
        )
    check_spec(spec, path)
    check_labels(spec, path)
    listen, admin = spec.listen or LISTEN, spec.admin or ADMIN
    check_addresses(listen, admin, path)
    check_shadow(spec.privacy, path)
    cleaner_of(spec.privacy)
    check_store(spec.store, path)
    slo = _slo(proof)
    name = slug(spec.candidate)
    return CanaryConfig(
        name=name,
        spec=spec,
        upstreams=upstreams,
        labels={"baseline": spec.baseline, "canary": spec.candidate},
        candidate_digest=_digest(proof, upstreams["canary"]),
        sample_ppm=round(sample_share(spec.online_sample) * PPM),
        steps=_steps(spec, path),
        policies=policies(spec, slo, path),
        slo=slo,
        lease_s=spec.lease_s or LEASE_S,
        folder=path.parent / (spec.state or f"canary-{name}"),
        listen=listen,
        admin=admin,
        routes=_plain(proof, upstreams["canary"]),
        tls=_tls(spec, path),
        upstream_ca=_beside(path, spec.traffic.upstream_ca),
        access_log=_beside(path, spec.traffic.access_log),
    )


def _beside(path: Path, name: str | None) -> Path | None:
    return path.parent / name if name else None


def _tls(spec: CanarySpec, path: Path) -> Tls | None:
    certificate = spec.traffic.tls_certificate
    private_key = spec.traffic.tls_private_key
    if certificate is None and private_key is None:
        return None
    if certificate is None or private_key is None:
        raise ConfigError(
            "a certificate and its private key come together",
            path=path,
            key="canary.traffic.tls_certificate",
            hint="write both `tls_certificate` and `tls_private_key`",
        )
    return Tls(path.parent / certificate, path.parent / private_key)


def _steps(spec: CanarySpec, path: Path) -> Steps:
    names = ("step", "hold", "drain")
    for name in spec.deadlines:
        if name not in names:
            raise ConfigError(
                f"`{name}` is no deadline",
                path=path,
                key="canary.deadlines",
                hint=f"known: {', '.join(names)}",
            )
    shares = spec.steps or tuple(spec.split.values())
    weights = tuple(round(share * PPM) for share in shares)
    if any(a >= b for a, b in zip(weights, weights[1:], strict=False)):
        raise ConfigError(
            "the steps must rise", path=path, key="canary.steps", hint="0.01, 0.05, 1"
        )
    plain = Steps()
    return Steps(
        weights_ppm=weights or plain.weights_ppm,
        step_deadline_s=spec.deadlines.get("step", plain.step_deadline_s),
        hold_deadline_s=spec.deadlines.get("hold", plain.hold_deadline_s),
        drain_deadline_s=spec.deadlines.get("drain", plain.drain_deadline_s),
        minimum_scored=spec.minimum_scored,
        at_deadline=spec.at_deadline,
    )


def _slo(proof: Proof) -> dict[str, float]:
    """The widest limit of each metric: the one a single request can break."""
    return {
        metric: max(limits.values())
        for metric, limits in proof.performance.slo.items()
        if limits
    }


def _digest(proof: Proof, url: str) -> str:
    plain = msgspec.json.encode(_plain(proof, url), order="sorted")
    return hashlib.sha256(plain).hexdigest()


def _plain(proof: Proof, url: str) -> dict[str, Any]:
    return {
        "candidate": msgspec.to_builtins(proof.candidate),
        "baseline": msgspec.to_builtins(proof.baseline),
        "url": url,
    }


def _first_step(config: CanaryConfig) -> list[str]:
    """How much traffic the first step needs, where anything is decided at it."""
    steps = config.steps
    scored_share = steps.weights_ppm[0] / PPM * config.sample_ppm / PPM
    if steps.weights_ppm[0] >= PPM:
        return []
    requests = math.ceil(steps.minimum_scored / scored_share)
    return [
        f"The first step needs some {requests:,} requests to have that many scored: "
        f"{requests / steps.step_deadline_s:.2g} a second until its deadline."
    ]


def in_words(config: CanaryConfig) -> list[str]:
    """What the gateway will do, one sentence a line, for ``canary check``."""
    steps = config.steps
    shares = ", ".join(f"{w / PPM:.4g}" for w in steps.weights_ppm)
    required = [n for n, p in config.policies.items() if p.is_required]
    spec = config.spec
    lines = [
        f"{config.labels['canary']} ({config.upstreams['canary']}) is tried against "
        f"{config.labels['baseline']} ({config.upstreams['baseline']}).",
        f"Clients connect to {config.listen}, people to {config.admin}.",
        f"A caller keeps its arm by {spec.traffic.sticky_by}; as many callers as get "
        "the candidate are its matched control.",
        f"{config.sample_ppm / PPM:.2%} of the answers of both are scored.",
        f"The share of the candidate climbs {shares}, each step only when "
        f"{', '.join(required)} all PASS with {steps.minimum_scored} scored answers "
        "per arm.",
        *_first_step(config),
        f"Any signal that FAILS rolls back; the chance of doing so to an equal "
        f"candidate is at most {spec.alpha:.0%} over its whole life.",
        f"A hold lasts at most {steps.hold_deadline_s:g} s, a step "
        f"{steps.step_deadline_s:g} s; then "
        + (
            "it goes back."
            if steps.at_deadline == "rollback"
            else "a person is called."
        ),
        f"A relay that cannot read the state for {config.lease_s:g} s serves the "
        "baseline only.",
    ]
    if spec.traffic.fallback:
        lines.append(
            f"Requests with {', '.join(spec.traffic.fallback)} always go to the "
            "baseline."
        )
    return lines + shadow_in_words(spec) + graders_in_words(spec)
