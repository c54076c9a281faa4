"""Routes as a person writes them down in a proof file."""

from typing import Literal

import msgspec

Maturity = Literal["release", "merged", "open_pr", "branch", "private"]
Placement = Literal["same_device", "other_device"]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every struct in a proof file: frozen, keyword-only, strict keys."""


class EngineSpec(_Strict, frozen=True, kw_only=True):
    """The serving engine: name, version and how far it is from a release."""

    name: str
    version: str | None = None
    commit: str | None = None
    maturity: Maturity = "release"


class DraftSpec(_Strict, frozen=True, kw_only=True):
    """The draft model of a speculative route."""

    model: str
    revision: str | None = None
    tokenizer: str | None = None
    weights: str | None = None


class SpeculationSpec(_Strict, frozen=True, kw_only=True):
    """Speculative decoding: method, draft, and how many tokens are drafted.

    ``options`` keeps what only one engine knows, such as ``ngram_size_n`` or
    ``accept_threshold``; change classes are read from it too.
    """

    method: str
    draft: DraftSpec | None = None
    draft_tokens: int | None = None
    placement: Placement | None = None
    options: dict[str, str | int | float | bool] = {}


class LaunchSpec(_Strict, frozen=True, kw_only=True):
    """How to start the engine. ``{port}`` in the command is a free port.

    ``model_file`` may be named as ``{model}``. The command is a list (no shell).
    """

    command: tuple[str, ...]
    env: dict[str, str] = {}
    ready_timeout_s: float = 180.0
    cwd: str | None = None


class TokenizerSpec(_Strict, frozen=True, kw_only=True):
    """Tokenizer and chat template, with what pins them."""

    name: str | None = None
    revision: str | None = None
    digest: str | None = None
    chat_template: str | None = None
    chat_template_digest: str | None = None


class HardwareSpec(_Strict, frozen=True, kw_only=True):
    """Where the route runs."""

    device: str | None = None
    count: int | None = None
    driver: str | None = None
    topology: str | None = None


class AuthSpec(_Strict, frozen=True, kw_only=True):
    """How requests are authorised: names of variables, never the secrets."""

    api_key_env: str | None = None
    headers: dict[str, str] = {}
    verify_tls: bool = True


class RouteSpec(_Strict, frozen=True, kw_only=True):
    """One route: everything that decides a result. See ARCHITECTURE, section 1.

    ``like`` names the route whose fields fill what is not given here;
    ``changes`` lists the top-level fields under test, so that any other difference
    between the two routes is a parity error.
    """

    like: str | None = None
    endpoint: str | None = None
    launch: LaunchSpec | None = None
    model: str | None = None
    revision: str | None = None
    tokenizer: TokenizerSpec | None = None
    engine: EngineSpec | None = None
    weights: str | None = None
    kv_cache: str | None = None
    attention_backend: str | None = None
    speculation: SpeculationSpec | None = None
    hardware: HardwareSpec | None = None
    context_limit_tokens: int | None = None
    sampler_defaults: dict[str, float | int | str | bool] = {}
    auth: AuthSpec = AuthSpec()
    changes: tuple[str, ...] = ()
