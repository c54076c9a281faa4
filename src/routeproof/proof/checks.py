"""What a proof must satisfy beyond its types. Nothing is sent, nothing is started."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from routeproof.errors import ConfigError
from routeproof.proof.canary import sample_share
from routeproof.proof.limits import check_numbers
from routeproof.proof.nearest import nearest
from routeproof.proof.proof import Proof
from routeproof.proof.route import RouteSpec
from routeproof.proof.workload import ArrivalSpec

LIKELIHOOD_METRICS = frozenset({"perplexity", "reference_likelihood", "bits_per_byte"})
"""Metrics that look at likelihood alone. They miss broken tool calls, loops and wrong
answers, so they may stand beside a task metric but never alone."""

_PERCENTILE = re.compile(r"^(?:mean|max|p(?:\d{1,2}(?:\.\d+)?))$")


def check_proof(proof: Proof, path: Path) -> None:
    """Check values and how they fit together.

    Raises:
        ConfigError: The first thing found wrong, with its place and a hint.
    """
    check_numbers(proof, path)
    _check_routes(proof, path)
    _check_workload(proof, path)
    _check_quality(proof, path)
    for metric, limits in proof.performance.slo.items():
        for name in limits:
            if not _PERCENTILE.match(name):
                _fail(
                    f"`{name}` is not a percentile",
                    path,
                    f"performance.slo.{metric}",
                    "write p50, p95, p99, p99.9, mean or max",
                )
    if proof.canary is not None:
        try:
            sample_share(proof.canary.online_sample)
        except ConfigError as error:
            _fail(error.message.split(": ", 1)[-1], path, error.key, error.hint)


def check_environment(proof: Proof, environ: Mapping[str, str], path: Path) -> None:
    """Check that every variable the proof names is set and not empty.

    Raises:
        ConfigError: Names the variable and the key that asks for it.
    """
    wanted = [
        (f"{arm}.auth.api_key_env", spec.auth.api_key_env)
        for arm, spec in (("baseline", proof.baseline), ("candidate", proof.candidate))
    ]
    wanted += [
        (f"quality[{i}].judge.api_key_env", gate.judge.api_key_env)
        for i, gate in enumerate(proof.quality)
        if gate.judge is not None
    ]
    for key, name in wanted:
        if name is not None and not environ.get(name):
            state = "empty" if name in environ else "not set"
            _fail(
                f"the environment variable {name} is {state}",
                path,
                key,
                f"export {name}=... before you run this, or remove the key when the "
                "endpoint needs none",
            )


def _fail(message: str, path: Path, key: str | None, hint: str | None) -> NoReturn:
    raise ConfigError(message, path=path, key=key, hint=hint)


def _check_routes(proof: Proof, path: Path) -> None:
    if proof.baseline.like is not None:
        _fail(
            "the baseline cannot be like another route",
            path,
            "baseline.like",
            "write the baseline out and use `like: baseline` in the candidate",
        )
    if proof.candidate.like not in (None, "baseline"):
        _fail(
            f"there is no route `{proof.candidate.like}`",
            path,
            "candidate.like",
            "write `like: baseline`",
        )
    for arm, spec in (("baseline", proof.baseline), ("candidate", proof.candidate)):
        _check_route(arm, spec, path)
    if proof.rollback.to not in ("baseline", "candidate"):
        _fail(
            f"there is no route `{proof.rollback.to}`",
            path,
            "rollback.to",
            "write `to: baseline`",
        )


def _check_route(arm: str, spec: RouteSpec, path: Path) -> None:
    if spec.endpoint is None and spec.launch is None and spec.like is None:
        _fail(
            "has neither `endpoint` nor `launch`, so nothing can be asked",
            path,
            arm,
            "add `endpoint: http://127.0.0.1:8000/v1`, or `launch: {command: [...]}` "
            "to have it started",
        )
    if spec.endpoint is not None:
        check_endpoint(spec.endpoint, path, f"{arm}.endpoint")
    if spec.launch is not None and not spec.launch.command:
        _fail(
            "is empty",
            path,
            f"{arm}.launch.command",
            "give the program and its arguments as a list",
        )
    for index, name in enumerate(spec.changes):
        _check_change(name, path, f"{arm}.changes[{index}]")


def _check_change(name: str, path: Path, key: str) -> None:
    known = [
        f for f in RouteSpec.__struct_fields__ if f not in ("like", "changes", "auth")
    ]
    if name.split(".")[0] not in known:
        near = nearest(name, known)
        _fail(
            f"`{name}` is not a field of a route",
            path,
            key,
            f"did you mean `{near}`?" if near else f"fields: {', '.join(known)}",
        )


def check_endpoint(url: str, path: Path | None, key: str | None) -> None:
    """Check the form of an endpoint URL.

    Raises:
        ConfigError: Not http(s) or unix, no host, a bad port, or a secret inside.
    """
    hint = "write it as http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(
            f"`{url}` has a port that is not a port", path=path, key=key, hint=hint
        ) from None
    if parts.scheme == "unix" and parts.path:
        return
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or re.search(r"\s", url)
    ):
        raise ConfigError(f"`{url}` is not a URL", path=path, key=key, hint=hint)
    if parts.username or parts.password:
        raise ConfigError(
            "the URL carries a user name or password",
            path=path,
            key=key,
            hint="name a variable under `auth.api_key_env` instead",
        )
    if parts.query or parts.fragment or port == 0:
        plain = re.sub("[?#].*", "", url)  # a query may hold a key
        raise ConfigError(
            f"`{plain}` with what follows it is not the base URL of an endpoint"
            if plain != url
            else f"`{url}` is not the base URL of an endpoint",
            path=path,
            key=key,
            hint=hint,
        )


def _check_workload(proof: Proof, path: Path) -> None:
    sampling, trials = proof.workload.sampling, proof.workload.trials
    if sampling.temperature > 0 and trials == 1:
        _fail(
            f"one trial at temperature {sampling.temperature:g} cannot tell a worse "
            "route from an unlucky draw: the answers differ from draw to draw on the "
            "baseline too",
            path,
            "workload.trials",
            "ask for at least 2 trials of each case, or set `temperature: 0`",
        )
    if not proof.workload.cases:
        _fail("is empty", path, "workload.cases", "write `cases: [golden]` or a file")
    for stage in ("quality", "latency", "sweep", "soak"):
        arrivals: ArrivalSpec | None = getattr(proof.workload.load, stage)
        if arrivals is not None:
            _check_arrivals(arrivals, path, f"workload.load.{stage}")


def _check_arrivals(spec: ArrivalSpec, path: Path, key: str) -> None:
    ways = [
        name for name in ("concurrency", "request_rate", "trace") if getattr(spec, name)
    ]
    if len(ways) != 1:
        found = " and ".join(f"`{way}`" for way in ways) or "none of them"
        _fail(
            "needs exactly one of `concurrency`, `request_rate` and `trace`; "
            f"got {found}",
            path,
            key,
            "write a second proof for the other way of sending",
        )


def _check_quality(proof: Proof, path: Path) -> None:
    metrics = {gate.metric for gate in proof.quality}
    if metrics and metrics <= LIKELIHOOD_METRICS:
        _fail(
            f"{', '.join(sorted(metrics))} alone cannot show that answers are still "
            "right: likelihood can stay level while tool calls, formats and final "
            "answers break",
            path,
            "quality",
            "add a task metric such as `{metric: exact_match, tolerance: 0.02}`",
        )
    seen: dict[tuple[str, tuple[tuple[str, str], ...], int | None], int] = {}
    for index, gate in enumerate(proof.quality):
        identity = (gate.metric, tuple(sorted(gate.slice.items())), gate.k)
        if identity in seen:
            _fail(
                f"asks the same as quality[{seen[identity]}]: {gate.metric}",
                path,
                f"quality[{index}]",
                "keep one of the two, or give them different slices",
            )
        seen[identity] = index
