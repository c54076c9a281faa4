"""The ``canary:`` block: the short form people write, and room for the long one."""

import re
from typing import Literal

from routeproof.errors import ConfigError
from routeproof.proof.policy import JudgeSpec
from routeproof.proof.route import _Strict


class TrafficSpec(_Strict, frozen=True, kw_only=True):
    """How requests pass the gateway.

    Attributes:
        sticky_by: What keeps one caller on one arm: the ``user`` field of the body,
            a header (``header:x-session-id``), the API key, or the whole prompt.
        hosts: Host names clients may use; empty allows any.
        api_keys_env: Route name to the variable with the key its upstream gets; a
            route without one gets the caller's own.
        admin_key_env: Variable with the key of the admin listener.
        override_key_env: Variable with the key of testers, who choose an arm by
            ``x-routeproof-arm`` with ``x-routeproof-key``.
        fallback: Request features that never go to the candidate, such as
            ``structured_output`` or ``min_p``.
        retry_invalid_structure: Answer a non-streaming structured request from the
            baseline when the candidate's answer is not valid.
        drain: What happens to running candidate requests at a rollback.
        body_bytes_max: Larger requests are refused with 413.
        receive_deadline_s: For the head and for the body of a request, each.
        first_byte_deadline_s: For the upstream's first byte.
        idle_deadline_s: Between two pieces of an answer.
        tls_certificate, tls_private_key: PEM files both listeners show; without them
            they speak plain HTTP.
        upstream_ca: PEM file of the authorities that vouch for ``https`` upstreams,
            in place of the system's. Upstreams are always verified.
        access_log: File with one line of JSON per request (times, sizes, arm, status;
            no text, no key, no caller); none is kept without it.
        off_tenants: Tenants (value of ``x-tenant-id``) that never get the candidate.
    """

    sticky_by: str = "user"
    hosts: tuple[str, ...] = ()
    api_keys_env: dict[str, str] = {}
    admin_key_env: str | None = None
    override_key_env: str | None = None
    fallback: tuple[str, ...] = ()
    retry_invalid_structure: bool = False
    drain: Literal["finish", "cut"] = "finish"
    body_bytes_max: int = 64 * 1024 * 1024
    receive_deadline_s: float = 60.0
    first_byte_deadline_s: float = 600.0
    idle_deadline_s: float = 120.0
    tls_certificate: str | None = None
    tls_private_key: str | None = None
    upstream_ca: str | None = None
    access_log: str | None = None
    off_tenants: tuple[str, ...] = ()


class PrivacySpec(_Strict, frozen=True, kw_only=True):
    """What of live traffic is kept, and for how long.

    Attributes:
        keep_prompts: Keep redacted prompts beside sampled answers.
        retention_s: Samples older than this are forgotten.
        seal_key_env: Variable with the key that encrypts samples at rest.
        patterns: Name to a regular expression; what matches is stored as ``[name]``.
        hooks: Functions ``package.module:name`` from text to redacted text, run after
            all patterns.
        replay: Ask sampled prompts of the other arm too and compare pair by pair.
            The prompt is held in memory until the pair is scored, never on disk.
        replays_per_minute: Most shadow replays a minute.
        replay_hours: Span of the day in UTC in which replays may run, ``22:00-06:00``;
            any hour when not given.
        replay_in_flight_max: No replay starts while more live requests than this run.
        replay_wait_s: A prompt that found no quiet moment for so long is forgotten.
    """

    keep_prompts: bool = False
    retention_s: float = 7 * 86_400.0
    seal_key_env: str | None = None
    patterns: dict[str, str] = {}
    hooks: tuple[str, ...] = ()
    replay: bool = False
    replays_per_minute: float = 6.0
    replay_hours: str | None = None
    replay_in_flight_max: int = 8
    replay_wait_s: float = 900.0


class GradersSpec(_Strict, frozen=True, kw_only=True):
    """Who else is asked about sampled answers. Prompts and answers are sent there.

    Attributes:
        judge: A chat model: is the answer about the request (``off_topic``), and which
            answer of a shadow pair is better (``shadow.preference``).
        embeddings: An endpoint with ``/embeddings``: how near answer and request lie
            (``unrelated``).
        likelihood: Ask the baseline how likely it finds each answer (``unlikely``).
        asks_per_minute: Most sampled answers a minute that are asked about.
        waiting_max: Most answers that wait to be asked about; more are dropped.
    """

    judge: JudgeSpec | None = None
    embeddings: JudgeSpec | None = None
    likelihood: bool = False
    asks_per_minute: float = 30.0
    waiting_max: int = 200


class CanarySpec(_Strict, frozen=True, kw_only=True):
    """Live comparison of two named routes behind the gateway.

    The first six keys are the short form and are kept as text; the rest is optional
    and says the same things exactly.

    Attributes:
        candidate, baseline: Names of the two routes as shown to people.
        online_sample: Share of traffic compared online: ``5%`` or ``0.05``.
        quality_gate, perf_gate, rollback_if: The conditions in words.
        listen, admin: Addresses, ``host:port`` or ``unix:/path``.
        routes: Route name to endpoint URL.
        split: The candidate's name to the one share it gets, in place of ``steps``.
        scorers: Names of online scorers.
        tolerances: Scorer or metric name to the loss allowed.
        steps: Shares of traffic the candidate climbs through.
        per_caller: Most sampled answers of one caller that are evidence at a step; all
            without it.
        minimum_scored: Scored answers per arm a step needs before it may widen.
        deadlines: Name of a step of the protocol to its deadline in seconds.
        at_deadline: What a deadline does: roll back, or keep the share and call a
            person.
        lease_s: Seconds a candidate stays on without being renewed.
        state: Folder of the state store and the sample spool.
        store: What keeps the state: ``sqlite``, or ``memory`` for a trial.
        alpha: Chance of ever rolling back a candidate that is not worse.
        traffic, privacy: How requests pass, what is kept of them.
        graders: Who else is asked about sampled answers.
    """

    candidate: str
    baseline: str
    online_sample: str | float = "5%"
    quality_gate: str | None = None
    perf_gate: str | None = None
    rollback_if: str | None = None
    listen: str | None = None
    admin: str | None = None
    routes: dict[str, str] = {}
    split: dict[str, float] = {}
    scorers: tuple[str, ...] = ()
    tolerances: dict[str, float] = {}
    steps: tuple[float, ...] = ()
    per_caller: int | None = None
    minimum_scored: int = 200
    deadlines: dict[str, float] = {}
    at_deadline: Literal["rollback", "page"] = "rollback"
    lease_s: float | None = None
    state: str | None = None
    store: str = "sqlite"
    alpha: float = 0.05
    traffic: TrafficSpec = TrafficSpec()
    privacy: PrivacySpec = PrivacySpec()
    graders: GradersSpec = GradersSpec()


def sample_share(text: str | float) -> float:
    """A share in [0, 1] from ``5%`` or ``0.05``.

    Raises:
        ConfigError: It is neither, or outside [0, 1].

    Example:
        >>> sample_share("25%")
        0.25
    """
    share = float(text) if isinstance(text, (int, float)) else _from_text(text)
    if not 0.0 <= share <= 1.0:
        raise ConfigError(
            f"a share must lie between 0 and 100 %, got {text}",
            key="canary.online_sample",
            hint="write `5%` or `0.05`",
        )
    return share


def _from_text(text: str) -> float:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)\s*", text)
    if match is None:
        raise ConfigError(
            f"`{text}` is not a share",
            key="canary.online_sample",
            hint="write `5%` or `0.05`",
        )
    number = float(match[1])
    return number / 100.0 if match[2] else number
