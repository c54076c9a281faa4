"""Requests as bytes, made before the clock runs."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from routeproof.engines.adapter import Adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.errors import ConfigError
from routeproof.proof.workload import SamplingSpec
from routeproof.workloads.case import Case

_NOT_IN_A_HEADER = re.compile(r"[\r\n\0]")
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
_NOT_ASKED = frozenset({"model", "messages", "prompt", "stream_options"})


@dataclass(frozen=True, slots=True)
class Target:
    """One arm's route as the load sees it.

    Attributes:
        model: Sent as ``model``.
        adapter: Knows which fields bring per-request details, and how to read them.
        extra_fields: Merged into every body of this arm; the case's own win.
        adapter_fields: Sent in place of the adapter's own request fields: those of
            them that every arm's server accepts (``engines.capabilities.sendable``).
            ``None`` = all of the adapter's.
        ask_usage: Send ``stream_options`` (some servers refuse it).
        pid: Process of an engine on this machine, for its memory and CPU time.
    """

    endpoint: Endpoint
    model: str
    adapter: Adapter
    extra_fields: Mapping[str, Any] = field(default_factory=dict)
    ask_usage: bool = True
    pid: int | None = None
    adapter_fields: Mapping[str, Any] | None = None

    def detail_fields(self) -> Mapping[str, Any]:
        """Request fields that bring per-request details back."""
        if self.adapter_fields is None:
            return self.adapter.request_fields()
        return self.adapter_fields


class Body(NamedTuple):
    """A request's body.

    Attributes:
        asked: Digest of its parameters, for both arms to be held together: of all that
            is sent but model, prompt, ``stream_options`` and what only brings details
            of the engine back.
    """

    data: bytes
    asked: str


def path_of(case: Case) -> str:
    """The API call of a case, below the endpoint's URL."""
    return "completions" if case.messages is None else "chat/completions"


def body_of(
    case: Case,
    target: Target,
    sampling: SamplingSpec,
    *,
    stream: bool,
    trial: int = 0,
    nonce: str | None = None,
    prefill_only: bool = False,
) -> Body:
    """The JSON body of a request, and what it asks.

    Precedence, weakest first: sampling of the workload, fields of the adapter, extra
    fields of the target, parameters of the case. Every sampling field that is set is
    sent, so that no server default decides. A sampling seed is raised by the trial.

    A ``nonce`` is put in front of the prompt so that no prefix cache can help;
    ``prefill_only`` asks for a single token, to fill a cache.
    """
    body: dict[str, Any] = {"model": target.model}
    if case.messages is None:
        prompt = case.prompt or ""
        body["prompt"] = prompt if nonce is None else f"[{nonce}] {prompt}"
    else:
        body["messages"] = _with_nonce(case.messages, nonce)
    for name in _SAMPLING:
        value = getattr(sampling, name)
        if value is not None:
            body[name] = value
    if sampling.seed is not None:
        body["seed"] = sampling.seed + trial
    body["stream"] = stream
    if stream and target.ask_usage:
        body["stream_options"] = {"include_usage": True}
    details = target.detail_fields()
    body.update(details)
    body.update(target.extra_fields)
    body.update(case.parameters)
    if prefill_only:
        body["max_tokens"] = 1
    return Body(msgspec.json.encode(body), _digest(body, details))


def _digest(body: Mapping[str, Any], details: Iterable[str]) -> str:
    """12 hexadecimal digits of the SHA-256 of what may change an answer."""
    hidden = _NOT_ASKED.union(details).difference(_SAMPLING, {"seed"})
    asked = {name: value for name, value in body.items() if name not in hidden}
    packed = msgspec.json.encode(asked, order="sorted")
    return hashlib.sha256(packed).hexdigest()[:12]


def _with_nonce(
    messages: tuple[dict[str, Any], ...], nonce: str | None
) -> list[dict[str, Any]]:
    out = [dict(m) for m in messages]
    if nonce is not None and out:
        content = out[0].get("content")
        if isinstance(content, str):
            out[0]["content"] = f"[{nonce}] {content}"
        else:
            out.insert(0, {"role": "system", "content": f"[{nonce}]"})
    return out


def head_of(endpoint: Endpoint, path: str) -> bytes:
    """The part of the request head that all requests to ``path`` share.

    Raises:
        ConfigError: A header holds a line break, or is not Latin-1.
    """
    parts = urlsplit(endpoint.api(path))
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    lines = [f"POST {target} HTTP/1.1", f"Host: {parts.netloc.rpartition('@')[2]}"]
    headers = {
        "User-Agent": "routeproof",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        **endpoint.sent_headers(),
    }
    for name, value in headers.items():
        if _NOT_IN_A_HEADER.search(name + value):
            raise ConfigError(f"the header {name} holds a line break", key="headers")
        lines.append(f"{name}: {value}")
    try:
        return "\r\n".join(lines).encode("latin-1") + b"\r\n"
    except UnicodeEncodeError as error:
        raise ConfigError(
            "a header holds a character that HTTP cannot carry",
            key="headers",
            hint="headers are Latin-1; check the key for stray quotes",
        ) from error


def request_of(head: bytes, body: bytes, request_id: str) -> bytes:
    """Head and body, ready for the socket."""
    return b"%bX-Request-ID: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        head,
        request_id.encode("ascii"),
        len(body),
        body,
    )
