"""What is taken out of texts before anything is stored or sent elsewhere."""

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from routeproof.canary.samples.redact import Redactor, redact
from routeproof.errors import ConfigError
from routeproof.proof.canary import PrivacySpec
from routeproof.records.record import Record

SECRET_CHARS = 6
"""Shorter keys are words that may stand anywhere; they are no secrets either."""


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Known keys, built-in patterns, then the file's own, then its hooks.

    Attributes:
        hooks: The file's patterns and hooks, in the order in which they run.
        secrets: Keys that are known: an upstream that echoes one in its error makes no
            sample that shows it, whatever the key looks like.
    """

    hooks: tuple[Redactor, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def knowing(self, *secrets: str | None) -> "Cleaner":
        """The same cleaner with further keys to take out."""
        more = tuple(s for s in secrets if s and len(s) >= SECRET_CHARS)
        return replace(self, secrets=(*self.secrets, *more)) if more else self

    def text(self, text: str) -> str:
        """A text without what must not be kept.

        Raises:
            Exception: Whatever a hook raises: the text is then not kept at all.
        """
        return redact(self._masked(text), hooks=self.hooks)

    def word(self, text: str) -> str:
        """The same without hooks: for names and reasons, which a hook is not for."""
        return redact(self._masked(text))

    def _masked(self, text: str) -> str:
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "[key]")
        return text

    def value(self, value: Any) -> Any:
        """The same for every text inside lists and mappings."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {key: self.value(each) for key, each in value.items()}
        return value

    def record(self, record: Record) -> Record:
        """A record with clean texts and without its bulky parts."""
        said = record.answer
        answer = msgspec.structs.replace(
            said,
            text=None if said.text is None else self.text(said.text),
            reasoning=None,
            tool_calls=None if said.tool_calls is None else self.text(said.tool_calls),
            error=None if said.error is None else self.text(said.error),
            finish_reason=None
            if said.finish_reason is None
            else self.word(said.finish_reason),
            choices=None,
            logprobs=None,
            token_ids=None,
        )
        fingerprint = record.engine.fingerprint
        engine = msgspec.structs.replace(
            record.engine,
            fingerprint=None if fingerprint is None else self.word(fingerprint),
        )
        return msgspec.structs.replace(record, answer=answer, engine=engine)


def cleaner_of(privacy: PrivacySpec, secrets: tuple[str, ...] = ()) -> Cleaner:
    """The cleaner of a canary file.

    Args:
        privacy: Its patterns and hooks.
        secrets: The values of the keys it names.

    Raises:
        ConfigError: A pattern is no regular expression, or a hook is not there.
    """
    own = [_pattern(name, text) for name, text in privacy.patterns.items()]
    return Cleaner((*own, *map(_hook, privacy.hooks))).knowing(*secrets)


def _pattern(name: str, text: str) -> Redactor:
    try:
        compiled = re.compile(text)
    except re.error as error:
        raise ConfigError(
            f"`{text}` is no regular expression: {error}",
            key=f"canary.privacy.patterns.{name}",
        ) from None
    if compiled.match("") is not None:
        raise ConfigError(
            f"`{text}` matches where nothing is",
            key=f"canary.privacy.patterns.{name}",
            hint="let it match at least one character",
        )
    replacement = f"[{name}]".replace("\\", "\\\\")
    return lambda found: compiled.sub(replacement, found)


def _hook(where: str) -> Redactor:
    module, _, name = where.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"no redaction hook `{where}`: {error}",
            key="canary.privacy.hooks",
            hint="write package.module:function",
        ) from None
    if not callable(found):
        raise ConfigError(f"`{where}` is no function", key="canary.privacy.hooks")

    def hook(text: str) -> str:
        cleaned = found(text)
        if not isinstance(cleaned, str):
            raise TypeError(f"{where} gave {type(cleaned).__name__}, not text")
        return cleaned

    return hook


KEPT_FIELDS = (
    "response_format",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "stop",
    "stream",
    "n",
)
"""Request fields a sample keeps; the prompt is not among them."""


def kept_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a sample keeps of its request."""
    return {name: body[name] for name in KEPT_FIELDS if name in body}
