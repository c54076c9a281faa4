"""One request of a client, whole."""

from dataclasses import dataclass

from routeproof.canary.connection import Headers


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came.

    Attributes:
        target: Path and query as the client wrote them; starts with ``/``.
        headers: In their order, names in small letters.
        body: Framing undone, content encoding kept.
    """

    method: str
    target: bytes
    headers: Headers
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, not decoded: ``%2f`` is no slash, so nothing is routed by it."""
        return self.target.partition(b"?")[0].decode("latin-1")
