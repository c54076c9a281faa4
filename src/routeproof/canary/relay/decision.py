"""What the relay needs to be told about one request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from routeproof.canary.relay.connection import Headers
from routeproof.canary.relay.request import Request
from routeproof.canary.relay.upstream import Pool
from routeproof.canary.splitting.split import LiveArm


class Tee(Protocol):
    """Takes a copy of one exchange. Must return at once and never raise."""

    def head(self, status: int, headers: Headers) -> None:
        """The answer's head came."""
        ...

    def piece(self, data: bytes, at_s: float) -> None:
        """A piece of the answer's body came."""
        ...

    def end(self, outcome: str) -> None:
        """The exchange is over: ``completed``, ``cut_short`` or ``cancelled``."""
        ...


@dataclass(frozen=True, slots=True)
class SecondTry:
    """Where a whole answer is asked for again when the first one is not valid.

    Attributes:
        authorization: As in ``Decision``.
        is_good: Whether a body is what the request asked for; run in a thread.
    """

    pool: Pool
    authorization: bytes | None = field(repr=False)
    is_good: Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a request goes.

    Attributes:
        authorization: Value of the upstream's ``Authorization``; ``None`` passes the
            client's own.
        sample: Where the answer is copied to; ``None`` when it is not sampled.
        second: What stands in for an invalid answer; ``None`` almost always.
    """

    arm: LiveArm
    pool: Pool
    authorization: bytes | None = field(repr=False)
    request_id: str
    sample: Tee | None = None
    second: SecondTry | None = None


class Router(Protocol):
    """Chooses the arm and keeps count."""

    def route(self, request: Request) -> Decision:
        """Where this request goes."""
        ...

    def ended(self, decision: Decision, status: int, outcome: str) -> None:
        """The exchange is over."""
        ...
