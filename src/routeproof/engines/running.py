"""An engine that was started: waiting for it, its log, its end."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import fetch
from routeproof.errors import ConfigError, EngineError
from routeproof.proof.route import LaunchSpec

TAIL_LINES = 20
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Running:
    """An engine that is up.

    Attributes:
        endpoint_url: Base URL of its API, with ``/v1``.
        pid: Process id of the engine itself.
        log_path: Everything it wrote to standard output and error.
        ended: Done as soon as the engine ends by itself; says how, in words.
    """

    endpoint_url: str
    pid: int
    log_path: Path
    ended: "asyncio.Future[str]"

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """The engine's last log lines."""
        return log_tail(self.log_path, lines)

    def died(self, name: str) -> EngineError:
        """The error to raise when a request failed since the engine is gone."""
        how = self.ended.result() if self.ended.done() else "ended"
        return EngineError(
            f"the engine of the {name} {how} in the middle of the run",
            log_tail=self.log_tail(),
            hint=f"the whole log is in {self.log_path}; the records so far are kept",
        )


def log_tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log, control characters removed, at most 400 wide."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64 * 1024))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    plain = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    kept = [line.rstrip()[:400] for line in plain.splitlines() if line.strip()]
    return "\n".join(kept[-lines:])


HINTS = {
    "SIGILL": "this build uses processor instructions that this machine does not "
    "have; take a build for an older or generic processor",
    "SIGKILL": "the system may have been out of memory; look into its kernel log",
    "SIGSEGV": "the engine crashed; try another version of it",
}
"""What usually lies behind an engine that a signal ended while starting."""


async def wait_until_ready(running: Running, spec: LaunchSpec, name: str) -> None:
    """Wait until an engine answers.

    Raises:
        EngineError: It ended, or its time is up; shows its last log lines.
    """
    endpoint = Endpoint(running.endpoint_url)
    try:
        async with asyncio.timeout(spec.ready_timeout_s):
            while not await _answers(endpoint):
                await asyncio.wait([running.ended], timeout=POLL_S)
                if running.ended.done():
                    raise _ended_early(running, name)
    except TimeoutError:
        raise EngineError(
            f"the engine of the {name} was not ready after {spec.ready_timeout_s:g} s",
            log_tail=running.log_tail(),
            hint="raise `launch.ready_timeout_s` if it was still loading; the whole "
            f"log is in {running.log_path}",
        ) from None


def _ended_early(running: Running, name: str) -> EngineError:
    how = running.ended.result()
    hint = next((text for word, text in HINTS.items() if how.endswith(word)), None)
    return EngineError(
        f"the engine of the {name} {how} while starting",
        log_tail=running.log_tail(),
        hint=hint or f"the whole log is in {running.log_path}",
    )


async def _answers(endpoint: Endpoint) -> bool:
    """Whether the engine lists its models, and is healthy where it can say so.

    ``/v1/models`` decides: llama.cpp answers it only when loaded, and an engine
    without ``/health`` still has it.
    """
    try:
        health = await fetch(endpoint, endpoint.at("/health"), deadline_s=5.0)
        if health.status not in (200, 404, 405):
            return False
        models = await fetch(endpoint, endpoint.api("models"), deadline_s=5.0)
    except ConfigError:
        return False
    return models.status in (200, 401, 403)
