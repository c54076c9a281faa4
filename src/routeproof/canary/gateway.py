"""One canary with all its parts: relay, taster, controller, store, lease."""

import asyncio
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from routeproof.canary.config import CanaryConfig
from routeproof.canary.deciding.controller import Controller
from routeproof.canary.deciding.lease import Lease
from routeproof.canary.deciding.route_changes import draft_of, note_routes
from routeproof.canary.deciding.state import RESTING, Command, Seen, State, new_attempt
from routeproof.canary.deciding.store import AuditEntry, StateStore
from routeproof.canary.deciding.stores import open_store
from routeproof.canary.deciding.way_back import WayBack
from routeproof.canary.relay.inbound import Limits
from routeproof.canary.relay.relay import Relay
from routeproof.canary.relay.upstream import Deadlines, Pool
from routeproof.canary.router import CanaryRouter, owner_digest
from routeproof.canary.samples.cleaning import cleaner_of
from routeproof.canary.samples.sealing import seal_from
from routeproof.canary.samples.spool import Spool
from routeproof.canary.side import Around, Side, side_of
from routeproof.canary.splitting.share import ShareMeter
from routeproof.canary.splitting.split import PPM, canary_share_of_samples
from routeproof.canary.tasting.blindness import blindness, try_disk
from routeproof.canary.tasting.feedback import take_feedback
from routeproof.canary.tasting.remembered import recall, remember
from routeproof.canary.tasting.taster import Taster
from routeproof.canary.weighing.evidence import Evidence, decides
from routeproof.engines.adapters import adapter
from routeproof.errors import ConfigError, StoredRunError

TICK_S = 0.5
GOING_BACK_TICK_S = 0.1
"""How often the gateway looks while the candidate's share has yet to reach 0."""

SHARE_WINDOW_S = 1.0


@dataclass(slots=True)
class Gateway:
    """Everything of one canary in one process.

    Attributes:
        wall: Unix seconds.
        clock: Monotonic seconds.
        way_back: How long the last rollback took.
        blind: Why harm would go unseen now; the lease is not renewed meanwhile.
    """

    config: CanaryConfig
    environ: Mapping[str, str] = field(
        default_factory=lambda: dict(os.environ), repr=False
    )
    wall: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    engine: str = "openai"
    store: StateStore = field(init=False)
    lease: Lease = field(init=False)
    meter: ShareMeter = field(init=False)
    taster: Taster = field(init=False)
    side: Side = field(init=False)
    router: CanaryRouter = field(init=False)
    relay: Relay = field(init=False)
    controller: Controller = field(init=False)
    way_back: WayBack = field(init=False)
    blind: str | None = field(default=None, init=False)
    _step: tuple[int, int] = field(default=(0, 0), init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)

    def __post_init__(self) -> None:
        config = self.config
        self.way_back = WayBack(self.wall, self.clock)
        try:
            config.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"cannot keep state in {config.folder}: {error.strerror}",
                key="canary.state",
            ) from error
        self.store = open_store(config.spec.store, config.folder)
        self.lease = Lease(lease_s=config.lease_s, clock=self.clock)
        self.meter = ShareMeter(window_s=SHARE_WINDOW_S, clock=self.clock)
        state = self._begin()
        self.taster = Taster(
            spool=Spool(
                config.folder / "samples.db",
                seal=seal_from(config.spec.privacy.seal_key_env, self.environ),
            ),
            evidence=Evidence(
                config.policies,
                alpha=config.spec.alpha,
                per_caller=config.spec.per_caller,
                canary_share=canary_share_of_samples(state.weight_ppm),
            ),
            adapter=adapter(self.engine),
            slo=config.slo,
            wall=self.wall,
            keep_prompts=config.spec.privacy.keep_prompts,
            cleaner=cleaner_of(
                config.spec.privacy,
                tuple(self.environ.get(name, "") for name in config.key_names()),
            ),
        )
        step = recall(self.taster, config.folder, attempt=state.attempt)
        self._step = (state.attempt, state.step if step is None else step)
        self._wire(state)

    def _begin(self) -> State:
        """The stored state, or a fresh one; another candidate is a new attempt."""
        config = self.config
        state = self.store.read(config.name)
        if state is None:
            fresh = State(
                name=config.name,
                candidate_digest=config.candidate_digest,
                entered_s=self.wall(),
                revision=1,
            )
            self._write(fresh, 0, "create")
            return fresh
        if state.candidate_digest == config.candidate_digest:
            return state
        if state.phase not in RESTING:
            raise ConfigError(
                f"the canary `{config.name}` is {state.phase} with another candidate",
                hint="roll it back first, or restore the route",
            )
        fresh = new_attempt(state, config.candidate_digest, self.wall(), override=False)
        self._write(fresh, state.revision, "new_attempt")
        return fresh

    def _write(self, state: State, expected: int, action: str) -> None:
        entry = AuditEntry(
            name=state.name,
            actor="gateway",
            action=action,
            reason=state.reason,
            at_s=self.wall(),
            revision=state.revision,
            numbers={
                "candidate_digest": state.candidate_digest[:16],
                "draft": draft_of(self.config.routes),
                **note_routes(self.config.folder, self.config.routes),
            },
        )
        self.store.write(state, expected=expected, entry=entry)

    def _wire(self, state: State) -> None:
        traffic = self.config.spec.traffic
        deadlines = Deadlines(
            first_byte_s=traffic.first_byte_deadline_s, idle_s=traffic.idle_deadline_s
        )
        self.router = CanaryRouter(
            salt=f"{state.name}/{state.attempt}",
            pools={
                name: Pool(url, deadlines, self.config.upstream_tls())
                for name, url in self.config.upstreams.items()
            },
            keys=self._keys(traffic.api_keys_env),
            traffic=traffic,
            lease=self.lease,
            meter=self.meter,
            sample_ppm=self.config.sample_ppm,
            taste=lambda copy: self.side.take(copy),
            override_key=self._secret(traffic.override_key_env),
        )
        self.side = side_of(
            self.config,
            self.taster,
            Around(
                lease=self.lease,
                meter=self.meter,
                keys=self.router.keys,
                wall=self.wall,
                clock=self.clock,
                environ=self.environ,
                engine=self.engine,
            ),
        )
        self.relay = Relay(
            router=self.router,
            hosts=frozenset(host.lower() for host in traffic.hosts),
            clock=self.clock,
        )
        self.controller = Controller(
            store=self.store,
            name=self.config.name,
            steps=self.config.steps,
            look=self.look,
            wall=self.wall,
        )
        self.lease.renew(state)
        self._note_rollback(state)

    @property
    def limits(self) -> Limits:
        """What clients may ask of the relay."""
        traffic = self.config.spec.traffic
        return Limits(
            body_bytes=traffic.body_bytes_max, receive_s=traffic.receive_deadline_s
        )

    def tls_context(self) -> ssl.SSLContext | None:
        """How the data listener shows itself; ``None`` for plain HTTP.

        Raises:
            ConfigError: The certificate or its key cannot be used.
        """
        return None if self.config.tls is None else self.config.tls.context()

    def _keys(self, named: Mapping[str, str]) -> dict[str, bytes]:
        sides = {label: side for side, label in self.config.labels.items()}
        keys = {}
        for label, variable in named.items():
            side = sides.get(label, label)
            if side not in self.config.upstreams:
                raise ConfigError(
                    f"`{label}` is no route of this canary",
                    key="canary.traffic.api_keys_env",
                    hint=f"known: {', '.join(sides)}",
                )
            secret = self._secret(variable)
            if secret is not None:
                keys[side] = b"Bearer " + secret.encode()
        return keys

    def _secret(self, variable: str | None) -> str | None:
        if variable is None:
            return None
        value = self.environ.get(variable)
        if not value:
            raise ConfigError(
                f"the environment variable {variable} is not set",
                hint=f"export {variable}=... before you serve",
            )
        return value

    def look(self) -> Seen:
        """What the controller sees now."""
        standings = self.taster.standings()
        scored = min((s.step_seen for s in standings if s.is_required), default=0)
        share = self.meter.share()
        weight = self.lease.weight_ppm() / PPM
        self.side.curves.add(self.wall(), standings, weight=weight, share=share)
        if share is None and self.meter.canary_is_drained():
            share = 0.0
        self.way_back.look(share)
        return Seen(
            now_s=self.wall(),
            signals={s.name: s.outcome for s in standings if decides(s)},
            scored_canary=scored,
            scored_control=scored,
            observed_share=share,
        )

    def feedback(self, body: Mapping[str, object]) -> dict[str, object]:
        """Take in what a user said of an answer; see ``take_feedback``."""
        return take_feedback(self.taster, body)

    def erase(self, user: str) -> int:
        """Forget every sample of one user; returns how many."""
        owner = owner_digest(user)
        return self.side.replayer.forget(owner) + self.taster.spool.erase(owner)

    def command(self, command: Command, *, actor: str, reason: str = "") -> State:
        """Carry out an operator's command; this relay obeys before it returns.

        Raises:
            ConfigError: The command makes no sense now.
            StoredRunError: The store cannot be written.
        """
        with self._lock:
            began_s = self.clock()
            word = self.taster.cleaner.word
            state = self.controller.command(
                command, actor=word(actor), reason=word(reason)
            )
            if state.attempt != self._step[0]:
                self._begin_anew(state)
            self.lease.renew(state, began_s)
            self._note_rollback(state)
        return state

    def tick(self) -> State | None:
        """Look, decide, renew the lease, remember the evidence.

        Ticks and commands take turns: a tick that read the state before a rollback
        must not renew the lease with it afterwards.
        """
        with self._lock:
            began_s = self.clock()
            state = self.controller.tick()
            if state is None:
                return None
            try_disk(self.taster)
            self.blind = blindness(self.taster, self.config.lease_s)
            if self.blind is None or state.phase in (*RESTING, "rolling_back"):
                self.lease.renew(state, began_s)
            self._note_rollback(state)
            if state.attempt != self._step[0]:
                self._begin_anew(state)
            if (state.attempt, state.step) != self._step and state.phase != "ready":
                self._step = (state.attempt, state.step)
                self.taster.enter_step(canary_share_of_samples(state.weight_ppm))
            attempt, step = self._step
            remember(self.taster, self.config.folder, attempt=attempt, step=step)
        return state

    def _begin_anew(self, state: State) -> None:
        """Another attempt: other callers get the candidate, and nothing is known."""
        self._step = (state.attempt, state.step)
        self.router.salt = f"{state.name}/{state.attempt}"
        self.taster.begin_anew()

    @property
    def rollback_s(self) -> float | None:
        """From the last rollback's trigger to the last candidate byte."""
        return self.way_back.to_last_byte_s

    @property
    def share_zero_s(self) -> float | None:
        """From the same trigger until a look saw an observed share of 0."""
        return self.way_back.to_share_zero_s

    def _note_rollback(self, state: State) -> None:
        """Cut what must be cut, and measure until the last candidate byte."""
        if state.phase == "rolling_back" and self.way_back.begin(state):
            self.side.replayer.cut()
            if self.config.spec.traffic.drain == "cut":
                self.relay.cut("canary")
        if state.phase != "rolled_back":
            return
        if not self.meter.canary_is_drained():
            self.relay.cut("canary")
            return
        try:
            self.way_back.end(state, self.meter.last_canary_byte_s, self.config.folder)
        except OSError as error:
            self.controller.last_error = f"cannot keep a rollback: {error.strerror}"

    async def control(self) -> None:
        """Tick until cancelled; a store that fails stops the lease, not the relay."""
        last_sweep_s = self.clock()
        while True:
            await asyncio.to_thread(self._tick_safely)
            if self.clock() - last_sweep_s > 60.0:
                last_sweep_s = self.clock()
                await asyncio.to_thread(self._forget_old)
            going_back = self.way_back.is_under_way
            await asyncio.sleep(GOING_BACK_TICK_S if going_back else TICK_S)

    def _tick_safely(self) -> None:
        """The border of the control loop: without it one fault would end it unseen."""
        try:
            self.tick()
        except Exception as error:  # the lease is not renewed; the next look may be
            self.controller.last_error = f"{type(error).__name__} in the control loop"

    def _forget_old(self) -> None:
        try:
            self.taster.spool.expire(self.wall() - self.config.spec.privacy.retention_s)
        except StoredRunError as error:
            self.taster.last_error = error.message
