"""Everything beside serving and tasting: asking, replaying, exporting, remembering."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from routeproof.canary.config import CanaryConfig
from routeproof.canary.deciding.lease import Lease
from routeproof.canary.otlp.exporter import Exporter, Measured
from routeproof.canary.otlp.names import convention_of
from routeproof.canary.otlp.wire import destination_of, server_of
from routeproof.canary.splitting.share import ShareMeter
from routeproof.canary.tasting.asked_http import Endpoint, bearer
from routeproof.canary.tasting.asking import Asker
from routeproof.canary.tasting.graders import Grader, embedding_grader, off_topic_grader
from routeproof.canary.tasting.likelihood_grader import LikelihoodGrader
from routeproof.canary.tasting.replayer import Replayer
from routeproof.canary.tasting.taster import Taster
from routeproof.canary.tasting.tee import Copy
from routeproof.canary.weighing.curves import Curves
from routeproof.canary.weighing.health import Budget
from routeproof.errors import ConfigError
from routeproof.proof.policy import JudgeSpec
from routeproof.scorers.judge.endpoint import ask_endpoint
from routeproof.scorers.judge.question import Ask

REPLAY_TIMEOUT_S = 300.0


@dataclass(slots=True)
class Side:
    """The helpers of one canary.

    Attributes:
        exporter: ``None`` when no collector is named.
    """

    taster: Taster
    asker: Asker
    replayer: Replayer
    exporter: Exporter | None
    curves: Curves

    def take(self, copy: Copy) -> None:
        """Take a finished copy on the event loop: to be tasted, maybe replayed."""
        self.taster.put(copy)
        if self.replayer.privacy.replay:
            self.replayer.offer(copy)

    def start(self, measure: Callable[[], Sequence[Measured]]) -> None:
        """Begin all that is configured; the exporter asks ``measure`` for metrics."""
        self.asker.start()
        self.replayer.start()
        if self.exporter is not None:
            self.exporter.measure = measure
            self.exporter.start()

    def stop(self) -> None:
        """End all of it; what waits to be asked or replayed is forgotten."""
        self.replayer.stop()
        self.taster.stop()
        self.asker.stop()
        if self.exporter is not None:
            self.exporter.stop()


@dataclass(frozen=True, slots=True)
class Around:
    """What of the gateway the helpers need."""

    lease: Lease
    meter: ShareMeter
    keys: Mapping[str, bytes] = field(repr=False)
    wall: Callable[[], float]
    clock: Callable[[], float]
    environ: Mapping[str, str] = field(repr=False)
    engine: str


def side_of(config: CanaryConfig, taster: Taster, around: Around) -> Side:
    """The helpers that a canary file asks for, wired to its taster.

    Raises:
        ConfigError: A key is not set, or an address or variable makes no sense.
    """
    upstreams = {
        name: Endpoint(url, _key(around.keys, name), REPLAY_TIMEOUT_S, _tls(config))
        for name, url in config.upstreams.items()
    }
    asker = _asker(config, taster, around, upstreams["baseline"])
    replayer = Replayer(
        privacy=config.spec.privacy,
        upstreams=upstreams,
        lease=around.lease,
        meter=around.meter,
        take=taster.put_pair,
        wall=around.wall,
        clock=around.clock,
    )
    exporter = _exporter(config, around)
    taster.on_tasted.append(asker.offer)
    taster.on_paired.append(asker.offer_pair)
    if exporter is not None:
        taster.on_tasted.append(exporter.take)
    return Side(taster, asker, replayer, exporter, Curves())


def _tls(config: CanaryConfig) -> ssl.SSLContext | None:
    return config.upstream_tls()


def _key(keys: Mapping[str, bytes], name: str) -> dict[str, str]:
    key = keys.get(name)
    return {} if key is None else {"Authorization": key.decode("latin-1")}


def _asker(
    config: CanaryConfig, taster: Taster, around: Around, baseline: Endpoint
) -> Asker:
    spec = config.spec.graders
    judge = _judge(spec.judge, around.environ)
    graders: dict[str, Grader] = {}
    if judge is not None:
        graders["off_topic"] = off_topic_grader(judge, taster.cleaner)
    if spec.embeddings is not None:
        secret = _secret(spec.embeddings, "embeddings", around.environ)
        endpoint = Endpoint(spec.embeddings.endpoint, bearer(secret))
        graders["unrelated"] = embedding_grader(
            endpoint, spec.embeddings.model, taster.cleaner
        )
    if spec.likelihood:
        graders["unlikely"] = LikelihoodGrader(baseline)
    return Asker(
        taster=taster,
        graders=graders,
        judge=judge,
        budget=Budget(spec.asks_per_minute, around.clock),
        waiting_max=spec.waiting_max,
    )


def _judge(spec: JudgeSpec | None, environ: Mapping[str, str]) -> Ask | None:
    if spec is None:
        return None
    secret = _secret(spec, "judge", environ)
    return ask_endpoint(spec.endpoint, spec.model, api_key=secret, timeout_s=60.0)


def _secret(spec: JudgeSpec, what: str, environ: Mapping[str, str]) -> str | None:
    if spec.api_key_env is None:
        return None
    value = environ.get(spec.api_key_env)
    if not value:
        raise ConfigError(
            f"the environment variable {spec.api_key_env} is not set",
            key=f"canary.graders.{what}.api_key_env",
            hint=f"export {spec.api_key_env}=... before you serve",
        )
    return value


def _exporter(config: CanaryConfig, around: Around) -> Exporter | None:
    destination = destination_of(around.environ)
    if destination is None:
        return None
    given = {
        arm: {
            "routeproof.route": config.name,
            "routeproof.arm": arm,
            "routeproof.candidate": config.candidate_digest[:16],
            "gen_ai.provider.name": around.engine,
            **server_of(config.upstreams["canary" if arm == "canary" else "baseline"]),
        }
        for arm in ("canary", "control", "baseline")
    }
    return Exporter(destination, convention_of(around.environ), given)
