"""What a canary file may not say: words nobody understands, addresses that are none."""

from pathlib import Path

from routeproof.canary.relay.listener import Address
from routeproof.canary.route_names import with_routes
from routeproof.canary.splitting.features import FEATURES
from routeproof.errors import ConfigError
from routeproof.proof.canary import CanarySpec, sample_share
from routeproof.proof.checks import check_endpoint
from routeproof.proof.file import proof_of
from routeproof.proof.yaml_text import parse, read_text
from routeproof.routes.inventory import take_inventory
from routeproof.routes.lock import FILE_NAME, check_lock, lock_of
from routeproof.routes.resolve import resolve

QUALITY_WORDS = ("within tolerance vs baseline",)
PERFORMANCE_WORDS = ("slo-valid on same workload",)
ROLLBACK_WORDS = ("quality < threshold",)
STICKY_BY = ("user", "api_key", "prompt")


def check_spec(spec: CanarySpec, path: Path) -> None:
    """Check what can be checked without knowing the routes.

    Raises:
        ConfigError: A gate is in words nobody understands, a feature or a way to keep
            callers is unknown, or a judge's address is none.
    """
    _check_words(spec, path)
    _check_features(spec, path)
    _check_sticky(spec, path)
    if sample_share(spec.online_sample) < 1e-6:
        raise ConfigError(
            "no answer would be scored, so nothing could ever be decided",
            path=path,
            key="canary.online_sample",
            hint="write a share above 0, such as `5%`",
        )
    for name in ("judge", "embeddings"):
        asked = getattr(spec.graders, name)
        if asked is not None:
            check_endpoint(asked.endpoint, path, f"canary.graders.{name}.endpoint")


def check_addresses(listen: str, admin: str, path: Path) -> None:
    """Check where clients and people connect.

    Raises:
        ConfigError: One is no address, or both are the same.
    """
    for key, address in (("listen", listen), ("admin", admin)):
        try:
            Address.of(address)
        except ConfigError as error:
            raise ConfigError(
                error.message, path=path, key=f"canary.{key}", hint=error.hint
            ) from None
    if listen == admin and not listen.endswith(":0"):
        raise ConfigError(
            f"clients and people would both connect to {listen}",
            path=path,
            key="canary.admin",
            hint="give the admin listener an address of its own",
        )


def check_labels(spec: CanarySpec, path: Path) -> None:
    """Check that keys and shares are named for the two routes there are.

    Raises:
        ConfigError: A name is of neither.
    """
    labels = (spec.candidate, spec.baseline)
    for name in spec.traffic.api_keys_env:
        if name not in (*labels, "canary", "baseline"):
            raise ConfigError(
                f"`{name}` is no route of this canary",
                path=path,
                key="canary.traffic.api_keys_env",
                hint=f"known: {', '.join(labels)}",
            )
    if spec.split and set(spec.split) != {spec.candidate}:
        raise ConfigError(
            "`split` says what the candidate gets; the baseline has the rest",
            path=path,
            key="canary.split",
            hint=f"write `split: {{{spec.candidate}: 0.05}}`",
        )
    if spec.split and spec.steps:
        raise ConfigError(
            "`split` is one share that stays, `steps` are several",
            path=path,
            key="canary.split",
            hint="write one of the two",
        )


def check_pairing(path: Path) -> list[str]:
    """Refuse a target and a draft other than those that were locked together.

    Only what the file declares is held against ``routeproof.lock`` beside it; not for
    commands that take a candidate back.

    Returns:
        What else differs from when the pair was qualified, a sentence each.

    Raises:
        ConfigError: Target, draft or both are not the locked ones.
    """
    proof = proof_of(with_routes(parse(read_text(path), path), path), path)
    _, candidate = resolve(proof)
    now = take_inventory(candidate, None)
    lock = path.parent / FILE_NAME
    if lock_of(now) is None:
        return []
    if not lock.exists():
        return [
            "Target and draft of the candidate are not locked as a pair; "
            "`routeproof qualify --lock` does it once they pass."
        ]
    notes = []
    for problem in check_lock(lock, now):
        if problem.kind == "new_pair":
            raise ConfigError(
                f"{problem.why}: locked {problem.locked}, now {problem.now}",
                path=lock,
                key=problem.field,
                hint="qualify the new pair with `routeproof qualify --lock`",
            )
        notes.append(
            f"{problem.field} is {problem.now}; the pair was qualified with "
            f"{problem.locked}."
        )
    return notes


def _check_words(spec: CanarySpec, path: Path) -> None:
    for key, words, known in (
        ("quality_gate", spec.quality_gate, QUALITY_WORDS),
        ("perf_gate", spec.perf_gate, PERFORMANCE_WORDS),
        ("rollback_if", spec.rollback_if, ROLLBACK_WORDS),
    ):
        if words is not None and " ".join(words.lower().split()) not in known:
            raise ConfigError(
                f"`{words}` is not a condition routeproof understands",
                path=path,
                key=f"canary.{key}",
                hint=f"write `{known[0]}`, or leave it out and use `tolerances`",
            )


def _check_features(spec: CanarySpec, path: Path) -> None:
    for name in spec.traffic.fallback:
        if name not in FEATURES:
            raise ConfigError(
                f"`{name}` is no request feature",
                path=path,
                key="canary.traffic.fallback",
                hint=f"known: {', '.join(FEATURES)}",
            )


def _check_sticky(spec: CanarySpec, path: Path) -> None:
    how = spec.traffic.sticky_by
    named, _, header = how.partition(":")
    if how not in STICKY_BY and not (named == "header" and header.strip()):
        raise ConfigError(
            f"callers cannot be kept by `{how}`",
            path=path,
            key="canary.traffic.sticky_by",
            hint=f"known: {', '.join(STICKY_BY)}, header:NAME",
        )
