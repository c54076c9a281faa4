"""Where a route is reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from routeproof.errors import ConfigError
from routeproof.proof.checks import check_endpoint
from routeproof.proof.route import RouteSpec


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint, ready to be sent to.

    Attributes:
        url: Base URL of the API, such as ``http://127.0.0.1:8000/v1``.
        headers: Sent with every request.
        api_key: Sent as a bearer token; never shown.
        verify_tls: Whether the server's certificate must be valid.
        unix_socket: Path of a socket to connect to instead of the URL's host.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    api_key: str | None = field(default=None, repr=False)
    verify_tls: bool = True
    unix_socket: str | None = None

    def __post_init__(self) -> None:
        check_endpoint(self.url, None, "endpoint")

    @property
    def root(self) -> str:
        """The server's root, where engines keep ``/health`` and ``/metrics``.

        Example:
            >>> Endpoint("http://127.0.0.1:8000/v1").root
            'http://127.0.0.1:8000'
        """
        base = self.url.rstrip("/")
        for suffix in ("/v1", "/v3"):
            base = base.removesuffix(suffix)
        return base

    def api(self, path: str) -> str:
        """The URL of an API call, such as ``models`` or ``chat/completions``."""
        return f"{self.url.rstrip('/')}/{path.lstrip('/')}"

    def at(self, path: str) -> str:
        """The URL of a path below the server's root, such as ``/metrics``."""
        return f"{self.root}/{path.lstrip('/')}"

    def sent_headers(self) -> dict[str, str]:
        """Headers of every request, the authorisation among them."""
        headers = {"Accept": "*/*", **self.headers}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return headers


def endpoint_of(
    spec: RouteSpec, environ: Mapping[str, str], *, url: str | None = None
) -> Endpoint:
    """The endpoint of a resolved route.

    ``unix:///run/engine.sock`` reaches an engine over a Unix socket.

    Args:
        spec: The route.
        environ: Where the key named by ``auth.api_key_env`` is looked up.
        url: The URL of an engine that was launched for this route.

    Raises:
        ConfigError: No URL, or the variable with the key is not set.
    """
    address = url or spec.endpoint
    if address is None:
        raise ConfigError(
            "the route has no endpoint and was not launched",
            key="endpoint",
            hint="add `endpoint:` or `launch:` to the route",
        )
    name = spec.auth.api_key_env
    if name is not None and not environ.get(name):
        raise ConfigError(
            f"the environment variable {name} is not set",
            key="auth.api_key_env",
            hint=f"export {name}=... before you run this",
        )
    socket = None
    if address.startswith("unix:"):
        socket, address = urlsplit(address).path, "http://localhost/v1"
    return Endpoint(
        url=address,
        headers=dict(spec.auth.headers),
        api_key=environ.get(name) if name else None,
        verify_tls=spec.auth.verify_tls,
        unix_socket=socket,
    )
