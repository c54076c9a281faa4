"""What a client's connection needs of others: one who serves, one who listens."""

from typing import TYPE_CHECKING, Protocol

from routeproof.canary.relay.request import Request

if TYPE_CHECKING:
    from routeproof.canary.relay.inbound import Inbound


class Listening(Protocol):
    """Who is told of a client that waits for its answer."""

    def client_gone(self) -> None:
        """The client closed its connection."""
        ...

    def client_full(self) -> None:
        """The client reads more slowly than it is written to."""
        ...

    def client_ready(self) -> None:
        """It reads again."""
        ...


class Serves(Protocol):
    """Takes whole requests."""

    def begin(self, request: Request, client: "Inbound") -> None:
        """Answer this request, now or later."""
        ...
