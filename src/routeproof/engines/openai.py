"""Any OpenAI-compatible server: what the protocol itself tells, and no more."""

from collections.abc import Mapping
from typing import Any

from routeproof.engines.adapter import TableAdapter
from routeproof.engines.series import Series
from routeproof.engines.values import first_model, model_ids, put
from routeproof.records.record import EngineDetails
from routeproof.routes.fields import READABLE
from routeproof.routes.read_back import ReadBack

MODELS = "/v1/models"

SERIES = (Series("process_start_s", ("process_start_time_seconds",), across="max"),)


def read_back(answers: Mapping[str, str]) -> ReadBack:
    """Only the model's name and context limit, and those only where offered."""
    fields: dict[str, str] = {}
    model = first_model(answers.get(MODELS))
    put(fields, "model.served", model.get("id"))
    put(fields, "context_limit_tokens", model.get("max_model_len"))
    return ReadBack(
        engine="openai",
        fields=fields,
        cannot_tell=tuple(name for name in READABLE if name not in fields),
        models=model_ids(answers.get(MODELS)),
        raw=dict(answers),
    )


def details(body: Mapping[str, Any]) -> EngineDetails:
    """The fingerprint, when the server sends one."""
    fingerprint = body.get("system_fingerprint")
    return EngineDetails(
        fingerprint=fingerprint if isinstance(fingerprint, str) else None
    )


OPENAI = TableAdapter(
    name="openai",
    probe_paths=(MODELS,),
    metrics_path="/metrics",
    series=SERIES,
    read=read_back,
    detail=details,
)
