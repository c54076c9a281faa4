"""Redaction before anything is stored: secrets and personal data by pattern."""

import re
from collections.abc import Callable, Sequence

Redactor = Callable[[str], str]

PATTERNS: dict[str, re.Pattern[str]] = {
    "key": re.compile(
        r"\b(?:sk|pk|rk|hf|ghp|gho|ghs|xox[abp]|AKIA|AIza)[-_]?[A-Za-z0-9_\-]{12,}"
    ),
    "bearer": re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}"),
    "jwt": re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    "private_key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.S
    ),
    "email": re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}\.[A-Za-z]{2,24}"),
    "card": re.compile(r"\b\d(?:[ -]?\d){12,18}\b"),
    "phone": re.compile(r"(?<![\w.])\+\d{1,3}(?:[ .-]?\(?\d{1,6}\)?){2,5}\b"),
    "ipv4": re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"),
}
"""What is replaced by ``[name]``. Long digit runs count as cards only when their
check digit (Luhn) is right, so that ordinary numbers survive."""


def redact(text: str, *, hooks: Sequence[Redactor] = ()) -> str:
    """The text with everything that matches a pattern replaced by its name.

    Args:
        text: What would be stored.
        hooks: Further redactors, run after the patterns.
    """
    for name, pattern in PATTERNS.items():
        if name == "card":
            text = pattern.sub(_card, text)
        else:
            text = pattern.sub(f"[{name}]", text)
    for hook in hooks:
        text = hook(text)
    return text


def _card(match: re.Match[str]) -> str:
    digits = [int(c) for c in match[0] if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[-2::-2]]
    is_card = (sum(doubled) + sum(digits[-1::-2])) % 10 == 0
    return "[card]" if is_card else match[0]
