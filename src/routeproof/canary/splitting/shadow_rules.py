"""Which sampled prompts may be asked of the other arm, and when."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from routeproof.errors import ConfigError
from routeproof.proof.canary import CanarySpec, PrivacySpec

NO_REPLAY_HEADER = b"x-routeproof-no-replay"
NO_REPLAY_FIELDS = ("no_replay", "routeproof_no_replay")
"""Names in the request's ``metadata`` that forbid a replay."""

ACTING_FIELDS = (
    "tools",
    "functions",
    "tool_choice",
    "function_call",
    "web_search_options",
    "plugins",
    "mcp_servers",
    "background",
    "store",
    "session_id",
)
"""Request fields that let an answer act or be kept: it could call a tool, search, or
leave something behind on the server. Whatever the value, such a request is not sent
twice."""

_NO = frozenset({"", "0", "false", "no", "off"})


def no_replay(headers: Mapping[bytes, bytes], fields: Mapping[str, Any]) -> str | None:
    """Why this request may not be asked of the other arm; ``None`` when it may.

    Returns:
        ``marked`` (by header or metadata), ``acts`` (see ``ACTING_FIELDS``) or
        ``several`` (more than one choice: there is no one pair).
    """
    mark = headers.get(NO_REPLAY_HEADER, b"").decode("latin-1").strip().lower()
    if mark not in _NO:
        return "marked"
    metadata = fields.get("metadata")
    if isinstance(metadata, Mapping) and any(
        str(metadata.get(name, "")).lower() not in _NO for name in NO_REPLAY_FIELDS
    ):
        return "marked"
    if any(fields.get(name) is not None for name in ACTING_FIELDS):
        return "acts"
    return "several" if fields.get("n") not in (None, 1) else None


def hours(text: str) -> tuple[int, int]:
    """Start and end of a span of the day in minutes after midnight.

    Raises:
        ValueError: It is not two times of day, or they are the same.

    Example:
        >>> hours("22:00-06:30")
        (1320, 390)
    """
    first, _, last = text.partition("-")
    start, end = (_minutes(part) for part in (first, last))
    if start == end:
        raise ValueError("the span is empty")
    return start, end


def _minutes(text: str) -> int:
    hour, colon, minute = text.strip().partition(":")
    if not (colon and hour.isdigit() and minute.isdigit() and len(minute) == 2):
        raise ValueError(f"`{text}` is no time of day")
    if int(hour) > 24 or int(minute) > 59 or int(hour) * 60 + int(minute) > 1440:
        raise ValueError(f"`{text}` is no time of day")
    return int(hour) * 60 + int(minute)


def is_within(wall_s: float, span: str | None) -> bool:
    """Whether a Unix time lies in a span of the UTC day, over midnight or not.

    Example:
        >>> is_within(23 * 3600.0, "22:00-06:00"), is_within(7 * 3600.0, "22:00-06:00")
        (True, False)
    """
    if span is None:
        return True
    start, end = hours(span)
    now = datetime.fromtimestamp(wall_s, UTC)
    minute = now.hour * 60 + now.minute
    if start < end:
        return start <= minute < end
    return minute >= start or minute < end


def check_shadow(privacy: PrivacySpec, path: Path) -> None:
    """Refuse what makes no sense.

    Raises:
        ConfigError: The hours are none, or a limit allows nothing.
    """
    if privacy.replay_hours is not None:
        try:
            hours(privacy.replay_hours)
        except ValueError as error:
            raise ConfigError(
                str(error),
                path=path,
                key="canary.privacy.replay_hours",
                hint="write 22:00-06:00 (UTC)",
            ) from None
    for name in ("replays_per_minute", "replay_wait_s"):
        if privacy.replay and getattr(privacy, name) <= 0:
            raise ConfigError(
                f"`{name}` must be above 0",
                path=path,
                key=f"canary.privacy.{name}",
                hint="leave `replay` out to have no shadow pairs",
            )


def shadow_in_words(spec: CanarySpec) -> list[str]:
    """What is replayed, for ``canary check``; nothing without replays."""
    privacy = spec.privacy
    if not privacy.replay:
        return []
    when = f" between {privacy.replay_hours} UTC" if privacy.replay_hours else ""
    return [
        f"At most {privacy.replays_per_minute:g} sampled prompts a minute are asked of "
        f"the other arm too{when}, while at most {privacy.replay_in_flight_max} live "
        "requests run; never those marked no-replay and never those with tools. A "
        f"prompt waits in memory for at most {privacy.replay_wait_s:g} s."
    ]


def graders_in_words(spec: CanarySpec) -> list[str]:
    """Who is asked about answers, for ``canary check``; nothing when nobody is."""
    graders, lines = spec.graders, []
    if graders.judge is not None:
        lines.append(
            f"Prompts and answers of samples are sent to the judge at "
            f"{graders.judge.endpoint}, redacted."
        )
    if graders.embeddings is not None:
        lines.append(
            f"Prompts and answers of samples are sent to the embedding model at "
            f"{graders.embeddings.endpoint}, redacted."
        )
    if graders.likelihood:
        lines.append("The baseline is asked how likely it finds sampled answers.")
    if lines:
        lines.append(
            f"At most {graders.asks_per_minute:g} answers a minute are asked about."
        )
    return lines
