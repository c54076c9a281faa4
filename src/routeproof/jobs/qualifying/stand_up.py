"""Both routes of a proof, up and read back: started, probed, written down."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.adapters import adapter
from routeproof.engines.embedded import Progress, fetch_embedded
from routeproof.engines.endpoint import Endpoint, endpoint_of
from routeproof.engines.launch import Running, launch
from routeproof.engines.probe import probe, served_name
from routeproof.errors import ConfigError
from routeproof.proof.proof import Proof
from routeproof.proof.route import LaunchSpec, RouteSpec
from routeproof.routes.diff import diff
from routeproof.routes.inventory import RouteDiff, take_inventory
from routeproof.routes.parity import parity_problems
from routeproof.routes.read_back import ReadBack
from routeproof.routes.resolve import resolve
from routeproof.workloads.golden import chat_template_path

EMBEDDED = ("{llama_server}", "{demo_model}", "{chat_template}")
"""Names in a launch command that stand for the embedded engine, its model, and a chat
template of ours that lets the model call tools."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One route that answers.

    Attributes:
        running: The engine when it was launched here, else ``None``.
    """

    spec: RouteSpec
    endpoint: Endpoint
    read_back: ReadBack
    adapter: TableAdapter
    running: Running | None

    @property
    def model(self) -> str:
        """The model name that is sent: the one the endpoint knows the model by.

        Raises:
            ConfigError: The route names no model and the endpoint serves none.
        """
        wanted, served = self.spec.model, self.read_back.models
        if wanted is not None:
            return served_name(self.read_back, wanted) or wanted
        if not served:
            raise ConfigError(
                f"{self.endpoint.url} serves no model",
                key="model",
                hint="load a model, or name one under `model` of the route",
            )
        return served[0]


Raise = Callable[[], Awaitable[Standing]]
"""Stops what is left of a route's engine, starts it anew and asks it who it is."""


@dataclass(slots=True)
class Routes:
    """Both routes and what differs between them.

    Attributes:
        baseline, candidate: As they stand now: an engine that was started anew answers
            at another port.
        found: What differs, as it was read at first.
        raises: By arm, how to start its engine anew; only engines launched here.
    """

    baseline: Standing
    candidate: Standing
    found: RouteDiff
    raises: Mapping[str, Raise] = field(default_factory=dict)

    def standing(self, arm: str) -> Standing:
        """The baseline or the candidate."""
        return self.baseline if arm == "baseline" else self.candidate

    def revive(self, arm: str) -> Callable[[], Awaitable[Endpoint]] | None:
        """How to start the engine of an arm anew; ``None`` for one that was given.

        The call raises `EngineError` when it does not come up.
        """
        again = self.raises.get(arm)
        if again is None:
            return None

        async def started() -> Endpoint:
            standing = await again()
            if arm == "baseline":
                self.baseline = standing
            else:
                self.candidate = standing
            return standing.endpoint

        return started

    def refuse_unfair(self) -> None:
        """Stop where the routes may not be compared.

        Raises:
            ParityError: They differ in a field that is not under test.
            ConfigError: An endpoint contradicts the file, or acceptance is faked.
        """
        for problem in parity_problems(self.found):
            if problem.kind == "undeclared":
                raise problem.error()
            raise ConfigError(
                problem.why,
                key=problem.field,
                hint="correct the proof file, or the route",
            )


@asynccontextmanager
async def stand_up(
    proof: Proof,
    *,
    logs: Path,
    environ: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> AsyncIterator[Routes]:
    """Launch what is to be launched, probe both endpoints, take inventories.

    Everything launched is stopped at the end of the block, on every way out.

    Args:
        proof: The proof.
        logs: Folder for the logs of launched engines.
        environ: Where keys are looked up; the process's own by default.
        progress: Told of downloads, when the embedded engine is asked for.

    Raises:
        ConfigError: An endpoint or a launch command is wrong.
        EngineError: An engine did not start.
    """
    baseline, candidate = resolve(proof)
    fill = _fill((baseline, candidate), progress)
    async with AsyncExitStack() as stack:
        standing = []
        raises: dict[str, Raise] = {}
        for name, spec in (("baseline", baseline), ("candidate", candidate)):
            own = await stack.enter_async_context(AsyncExitStack())
            started = _starter(name, spec, own, logs / f"{name}.log", fill, environ)
            if _is_launched(spec):
                raises[name] = started
            standing.append(await started())
        first, second = standing
        found = diff(
            take_inventory(first.spec, first.read_back),
            take_inventory(second.spec, second.read_back),
            second.spec,
        )
        yield Routes(first, second, found, raises)


def _is_launched(spec: RouteSpec) -> bool:
    return spec.launch is not None and spec.endpoint is None


def _starter(
    name: str,
    spec: RouteSpec,
    own: AsyncExitStack,
    log_path: Path,
    fill: Mapping[str, str],
    environ: Mapping[str, str] | None,
) -> Raise:
    """Brings a route up; once more, what is left of its engine is stopped first."""

    async def started() -> Standing:
        await own.aclose()
        running = None
        if spec.launch is not None and spec.endpoint is None:
            running = await own.enter_async_context(
                launch(spec.launch, name=name, log_path=log_path, fill=fill)
            )
        return await _probed(name, spec, running, environ or dict(os.environ))

    return started


async def _probed(
    name: str, spec: RouteSpec, running: Running | None, environ: Mapping[str, str]
) -> Standing:
    endpoint = endpoint_of(spec, environ, url=running.endpoint_url if running else None)
    try:
        said = await probe(endpoint, model=spec.model)
    except ConfigError as error:
        if running is not None and running.ended.done():
            raise running.died(name) from None
        raise ConfigError(error.message, key=name, hint=error.hint) from None
    return Standing(spec, endpoint, said, adapter(said.engine), running)


def _fill(specs: tuple[RouteSpec, ...], progress: Progress | None) -> dict[str, str]:
    launches = [s.launch for s in specs if s.launch and _is_launched(s)]
    if not any(_wants_embedded(each) for each in launches):
        return {}
    found = fetch_embedded(progress)
    return {
        "llama_server": str(found.server),
        "demo_model": str(found.model),
        "chat_template": str(chat_template_path()),
    }


def _wants_embedded(spec: LaunchSpec) -> bool:
    return any(name in word for word in spec.command for name in EMBEDDED)
