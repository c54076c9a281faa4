"""A canary with everything on it: drafts, structure, streams, pairs, a judge."""

import contextlib
import json
import random

from canary_cases import a_gateway, ask
from fakes.openai_server import (
    chat_chunks,
    event,
    json_reply,
    serving,
    stream_end,
    stream_head,
)

WORDS = (
    "The harbour opens at six and the ferry leaves every half hour until late".split()
)
ASKED = [
    "When does the harbour open?",
    "How often does the ferry leave?",
    "Write to jane.doe@example.org that I am late.",
]
FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "n",
        "schema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
    },
}

MORE = """\
  steps: [0.1, 0.25, 0.5, 1.0]
  minimum_scored: 60
  tolerances: {invalid_structure: 0.05, error: 0.05}
  privacy: {replay: true, replays_per_minute: 3000, keep_prompts: true}
  graders:
    judge: {endpoint: "%s", model: judge}
    asks_per_minute: 3000
"""


def an_engine(*, seed, broken_share, accepted_share, wait_s):
    """A script of a llama.cpp-like upstream with its own mistakes."""
    rng = random.Random(seed)

    def timings():
        if not accepted_share:
            return {"predicted_n": 40}
        drafted = rng.randrange(20, 60)
        accepted = sum(rng.random() < accepted_share for _ in range(drafted))
        return {"draft_n": drafted, "draft_n_accepted": accepted, "predicted_n": 40}

    def script(seen):
        asked = seen.json
        number = f"chatcmpl-{seed}-{seen.number}"
        wait = wait_s * rng.lognormvariate(0, 0.4)
        if asked.get("stream"):
            texts = [w + " " for w in WORDS[: rng.randrange(6, len(WORDS))]]
            steps = [*stream_head(), wait]
            for body in chat_chunks(texts):
                last = not body["choices"]
                extra = {"timings": timings()} if last else {}
                steps.append(event({**body, "id": number, **extra}))
            return [*steps, *stream_end()]
        if rng.random() < 0.01:
            return [wait, *json_reply({"error": {"message": "busy"}}, status=500)]
        text = " ".join(WORDS[: rng.randrange(6, len(WORDS))])
        if "response_format" in asked:
            is_broken = rng.random() < broken_share
            text = '{"n": "one"}' if is_broken else '{"n": 1}'
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 12, "completion_tokens": 40}
        body = {"id": number, "choices": [choice], "usage": usage, "timings": timings()}
        return [wait, *json_reply(body)]

    return script


def a_judge(seed=3):
    """A judge that finds one answer in forty off-topic and mostly sees a tie."""
    rng = random.Random(seed)

    def script(seen):
        text = seen.json["messages"][-1]["content"]
        if "off_topic" in text:
            word = "off_topic" if rng.random() < 0.025 else "on_topic"
        else:
            word = rng.choice(["tie", "tie", "first", "second"])
        said = json.dumps({"reason": "as it reads", "verdict": word})
        choice = {"message": {"content": said}, "finish_reason": "stop"}
        return json_reply({"choices": [choice]})

    return script


@contextlib.asynccontextmanager
async def a_busy_canary(folder, *, broken_share=0.03, more="", **given):
    """A gateway before two such engines, its candidate with ``broken_share``."""
    trusted = an_engine(seed=1, broken_share=0.02, accepted_share=0.0, wait_s=0.012)
    fast = an_engine(
        seed=2, broken_share=broken_share, accepted_share=0.7, wait_s=0.006
    )
    async with (
        serving(a_judge()) as judge,
        a_gateway(
            folder,
            trusted=trusted,
            fast=fast,
            more=MORE % judge.url + more,
            engine="llamacpp",
            **given,
        ) as stand,
    ):
        yield stand


async def traffic(stand, first, n):
    """``n`` mixed requests of as many users."""
    for i in range(first, first + n):
        message = {"role": "user", "content": ASKED[i % len(ASKED)]}
        body = {"model": "m", "messages": [message], "user": f"user-{i}"}
        if i % 3 == 0:
            body["response_format"] = FORM
        elif i % 3 == 1:
            body["stream"] = True
        await ask(stand.url, json.dumps(body).encode())
