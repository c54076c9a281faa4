"""What users say of answers, joined to the sampled ones by response id."""

from collections.abc import Mapping

import msgspec

from routeproof.canary.samples.spool import Sample
from routeproof.canary.tasting.taster import Taster
from routeproof.canary.weighing.policies import COMPLAINT
from routeproof.errors import ConfigError

THUMBS = ("up", "down")
REASON_CHARS = 80


def take_feedback(taster: Taster, body: Mapping[str, object]) -> dict[str, object]:
    """Take in one user's word on one answer.

    Most answers are not sampled, and feedback on those joins nothing. A second word on
    the same answer replaces the first where it is kept and is no evidence again:
    evidence cannot be taken back.

    Args:
        taster: Keeps the samples and the evidence.
        body: ``response_id`` and ``thumb`` (``up`` or ``down``), with an optional
            ``reason`` such as ``off-topic``, which is redacted like any text.

    Raises:
        ConfigError: A field is missing or wrong.
        StoredRunError: The spool cannot be used.
    """
    response_id, thumb = body.get("response_id"), body.get("thumb")
    if not isinstance(response_id, str) or thumb not in THUMBS:
        raise ConfigError(
            "feedback needs `response_id` and `thumb`",
            hint='{"response_id": "chatcmpl-...", "thumb": "down"}',
        )
    sample = taster.spool.find(response_id)
    if sample is None:
        return {"joined": False, "why": "the answer was not sampled"}
    if sample.signals is None:
        return {"joined": False, "why": "the answer is not scored yet, ask again"}
    is_bad = thumb == "down"
    reason = body.get("reason") if is_bad else None
    said = taster.cleaner.text(str(reason))[:REASON_CHARS] if reason else None
    if COMPLAINT not in sample.signals and sample.arm != "baseline":
        taster.observe(
            COMPLAINT,
            is_canary=sample.arm == "canary",
            bad=is_bad,
            stratum=sample.stratum,
        )

    def change(kept: Sample) -> Sample:
        request = {k: v for k, v in kept.request.items() if k != "feedback_reason"}
        if said is not None:
            request["feedback_reason"] = said
        signals = {**(kept.signals or {}), COMPLAINT: is_bad}
        return msgspec.structs.replace(kept, signals=signals, request=request)

    taster.spool.change(sample.request_id, change)
    return {"joined": True, "arm": sample.arm}
