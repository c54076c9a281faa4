"""Finished exchanges and tasters for tests of what is said of answers."""

import json

from fakes.openai_server import chat_stream

from routeproof.canary.samples.spool import Spool
from routeproof.canary.tasting.taster import Taster
from routeproof.canary.tasting.tee import Copy
from routeproof.canary.weighing.evidence import Evidence, SignalPolicy
from routeproof.engines.adapters import adapter

USUAL = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
}


def whole_answer(text, *, finish="stop", number=0, **fields):
    """The body of a whole chat answer."""
    choice = {"index": 0, "message": {"content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    body = {"id": f"chatcmpl-{number}", "choices": [choice], "usage": usage}
    return json.dumps({**body, **fields}).encode()


def a_copy(
    text="Paris.",
    *,
    arm="canary",
    request_id="r1",
    request=None,
    status=200,
    outcome="completed",
    raw_answer=None,
    **given,
):
    """A finished exchange as the relay leaves it behind."""
    body = json.dumps({**USUAL, **(request or {})}).encode()
    fields = {"stratum": "whole", "owner": None, "done": lambda _: None, **given}
    copy = Copy(request_id=request_id, arm=arm, raw=body, **fields)
    copy.head(status, [(b"content-type", b"application/json")])
    copy.piece(raw_answer or whole_answer(text, number=request_id), 0.0)
    copy.end(outcome)
    return copy


def a_taster(folder, *names, paired=(), **given):
    """A taster with its own spool; it judges ``names`` and the pairs ``paired``."""
    policies = {name: SignalPolicy(minimum=5) for name in names or ("error",)}
    policies |= {name: SignalPolicy(minimum=5, is_paired=True) for name in paired}
    fields = {"slo": {}, "wall": lambda: 1_000.0, **given}
    return Taster(
        spool=fields.pop("spool", None) or Spool(folder / "samples.db"),
        evidence=Evidence(policies),
        adapter=adapter("openai"),
        **fields,
    )


def taste_all(taster, *copies):
    """Put copies or pairs, score them all, and leave the thread ended."""
    taster.start()
    for each in copies:
        (taster.put if isinstance(each, Copy) else taster.put_pair)(each)
    taster.stop()


def standing(taster, name):
    """Where one signal stands."""
    return {s.name: s for s in taster.standings()}[name]


def streamed(texts):
    """The pieces of a streamed answer without HTTP framing."""
    raw = b"".join(chat_stream(texts)[1:])
    out = b""
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        n = int(size, 16)
        out, raw = out + raw[:n], raw[n + 2 :]
    return out
