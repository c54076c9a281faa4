"""What is taken out of texts before anything is stored or sent elsewhere."""

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from routeproof.canary.samples.redact import Redactor, redact
from routeproof.errors import ConfigError
from routeproof.proof.canary import PrivacySpec
from routeproof.records.record import Record


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Built-in patterns, then the file's own, then its hooks.

    Attributes:
        hooks: The file's patterns and hooks, in the order in which they run.
    """

    hooks: tuple[Redactor, ...] = ()

    def text(self, text: str) -> str:
        """A text without what must not be kept.

        Raises:
            Exception: Whatever a hook raises: the text is then not kept at all.
        """
        return redact(text, hooks=self.hooks)

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
            choices=None,
            logprobs=None,
            token_ids=None,
        )
        return msgspec.structs.replace(record, answer=answer)


def cleaner_of(privacy: PrivacySpec) -> Cleaner:
    """The cleaner of a canary file.

    Raises:
        ConfigError: A pattern is no regular expression, or a hook is not there.
    """
    own = [_pattern(name, text) for name, text in privacy.patterns.items()]
    return Cleaner((*own, *map(_hook, privacy.hooks)))


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
