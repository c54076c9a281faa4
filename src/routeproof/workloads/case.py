"""A case: one prompt with its class, parameters, reference and scorer."""

from typing import Any

import msgspec


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt, one line of a JSONL file.

    Attributes:
        id: Unique in the workload.
        class_: Task class, such as ``factual_qa``; ``class`` in the file.
        messages: Chat messages as sent. Exactly one of ``messages`` and ``prompt``.
        prompt: Text for the completions endpoint.
        tags: Further slice tags, such as ``{"language": "fr"}``.
        parameters: Request fields of this case (``max_tokens``, ``tools``,
            ``response_format``, ``stop``); they win over the workload's sampling.
        reference: What the scorer compares with; its form is the scorer's.
        scorers: Names in ``routeproof.scorers.SCORERS``; the first is the headline.
        options: Options of the scorer, such as ``{"policy": "percent_as_number"}``.
        cluster: Cases of one document or conversation share it; ``None`` = its own.
    """

    id: str
    class_: str = msgspec.field(name="class")
    messages: tuple[dict[str, Any], ...] | None = None
    prompt: str | None = None
    tags: dict[str, str] = {}
    parameters: dict[str, Any] = {}
    reference: Any = None
    scorers: tuple[str, ...] = ("exact_match",)
    options: dict[str, Any] = {}
    cluster: str | None = None
