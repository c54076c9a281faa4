"""The whole gateway: live answers are tasted, a worse candidate goes back by itself."""

import asyncio
import json
import time

import pytest
from canary_cases import a_gateway, ask, run, split
from fakes.openai_server import chat_stream, json_reply

from routeproof.canary.admin.app import Admin

pytestmark = pytest.mark.slow

SCHEMA = {
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


def whole(text, number=0):
    """A whole chat answer."""
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    return json_reply({"id": f"chatcmpl-{number}", "choices": [choice], "usage": usage})


def good(seen):
    return whole('{"n": 1}', seen.number)


def broken(seen):
    return whole('{"n": "one"}', seen.number)


def structured(user):
    body = {"messages": [{"role": "user", "content": "count"}], "user": user}
    return json.dumps({**body, "response_format": SCHEMA}).encode()


async def traffic(stand, first, n):
    """``n`` structured requests of as many users; how many came back whole."""
    sent = [
        asyncio.create_task(ask(stand.url, structured(f"user-{first + i}")))
        for i in range(n)
    ]
    answers = [split(await each) for each in sent]
    return sum(status == 200 for status, _, _ in answers)


async def until(condition, stand):
    while not condition(stand.gateway.store.read("fast")):
        await asyncio.sleep(0)


MORE = """\
  steps: [0.5, 1.0]
  tolerances: {invalid_structure: 0.05}
"""


def test_a_candidate_that_breaks_structure_is_taken_back_and_clients_see_no_gap(
    tmp_path,
):
    async def go():
        async with a_gateway(tmp_path, trusted=good, fast=broken, more=MORE) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            first = ok = 0
            while stand.gateway.store.read("fast").phase != "rolled_back":
                ok += await traffic(stand, first, 20)
                first += 20
                assert first < 20_000, stand.gateway.taster.standings()
            before = len(stand.fast.seen)
            ok += await traffic(stand, first, 40)
            return stand, first + 40, ok, before, len(stand.fast.seen)

    stand, sent, ok, before, after = run(go())
    assert ok == sent
    assert after == before > 0
    state = stand.gateway.store.read("fast")
    assert "invalid_structure" in state.reason
    assert stand.gateway.rollback_s < 2.0
    audit = [e.action for e in stand.gateway.store.since(0)]
    assert audit == ["create", "start", "rolling_back", "rolled_back"]


def test_an_equal_candidate_is_not_taken_back(tmp_path):
    async def go():
        async with a_gateway(tmp_path, trusted=good, fast=good, more=MORE) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            for first in range(0, 200, 20):
                await traffic(stand, first, 20)
            stand.gateway.tick()
            return stand

    stand = run(go())
    assert stand.gateway.store.read("fast").phase in ("stepping", "held")
    assert not [
        s for s in stand.gateway.taster.standings() if s.outcome in ("fail", "stale")
    ]


def test_an_operators_rollback_takes_the_share_to_zero_at_once(tmp_path):
    async def go():
        async with a_gateway(tmp_path, trusted=good, fast=good, more=MORE) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            await traffic(stand, 0, 20)
            began = time.monotonic()
            stand.gateway.controller.command("rollback", actor="test")
            stand.gateway.tick()
            before = len(stand.fast.seen)
            await traffic(stand, 100, 20)
            await until(lambda s: s.phase == "rolled_back", stand)
            return before, len(stand.fast.seen), time.monotonic() - began

    before, after, seconds = run(go())
    assert before == after > 0
    assert seconds < 5


def test_a_dead_store_leaves_no_candidate_traffic_past_the_lease(tmp_path):
    now = [1000.0]

    async def go():
        async with a_gateway(
            tmp_path, trusted=good, fast=good, more=MORE, clock=lambda: now[0]
        ) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            stand.gateway.store.path = tmp_path / "nowhere" / "state.db"
            assert stand.gateway.tick() is None
            now[0] += stand.gateway.config.lease_s + 0.1
            await traffic(stand, 0, 30)
            return len(stand.fast.seen), len(stand.trusted.seen)

    assert run(go()) == (0, 30)


def test_evidence_and_samples_survive_a_restart(tmp_path):
    async def go():
        async with a_gateway(tmp_path, trusted=good, fast=broken, more=MORE) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            await traffic(stand, 0, 6)
            stand.gateway.taster.stop()
            stand.gateway.taster.start()
            stand.gateway.tick()
            return stand.gateway.taster.standings()

    before = run(go())

    async def again():
        async with a_gateway(tmp_path, trusted=good, fast=broken, more=MORE) as stand:
            return stand.gateway.taster.standings()

    # The upstream's port is part of what is tried, so the second life is another
    # candidate: it must not start by itself while the first is out.
    with pytest.raises(Exception, match="is stepping with another candidate"):
        run(again())
    assert sum(s.canary_seen for s in before if s.name == "invalid_structure") > 0


def test_a_planted_key_is_in_no_file_and_on_no_page(tmp_path):
    planted = "sk-plantedKEY1234567890abcdef"

    def leaking(seen):
        return whole(f"your key is {planted}", seen.number)

    async def go():
        async with a_gateway(
            tmp_path, trusted=leaking, fast=leaking, more="  steps: [0.5, 1.0]\n"
        ) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            body = json.dumps(
                {"messages": [{"role": "user", "content": planted}], "user": "u"}
            ).encode()
            for _ in range(8):
                headers = [f"Authorization: Bearer {planted}"]
                await ask(stand.url, body, headers=headers)
            stand.gateway.taster.stop()
            stand.gateway.taster.start()
            pages = json.dumps(Admin(stand.gateway, None).status(), default=str)
            return pages

    pages = run(go())
    files = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert planted.encode() not in files
    assert planted not in pages


def test_a_tester_with_the_key_chooses_the_arm(tmp_path):
    more = "  traffic: {override_key_env: TESTERS}\n"
    asked = ["X-Routeproof-Arm: canary"]

    async def go():
        async with a_gateway(
            tmp_path,
            trusted=good,
            fast=good,
            more=more,
            environ={"TESTERS": "right"},
        ) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            body = structured("a user of the baseline")
            wrong = [*asked, "X-Routeproof-Key: wrong"]
            await ask(stand.url, body, headers=wrong)
            without = len(stand.fast.seen)
            await ask(stand.url, body, headers=[*asked, "X-Routeproof-Key: right"])
            return without, len(stand.fast.seen)

    assert run(go()) == (0, 1)


def test_requests_with_a_feature_of_the_fallback_list_never_reach_the_candidate(
    tmp_path,
):
    more = "  steps: [0.999, 1.0]\n  traffic: {fallback: [structured_output]}\n"

    async def go():
        async with a_gateway(tmp_path, trusted=good, fast=good, more=more) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            await traffic(stand, 0, 10)
            structured_seen = len(stand.fast.seen)
            plain = json.dumps({"messages": [], "user": "u1"}).encode()
            await ask(stand.url, plain)
            return structured_seen, len(stand.fast.seen)

    assert run(go()) == (0, 1)


def test_a_sampled_stream_is_scored_like_a_whole_answer(tmp_path):
    loop = chat_stream(["the sea, the sea, " * 60])

    async def go():
        async with a_gateway(
            tmp_path, trusted=loop, fast=loop, more="  steps: [0.5, 1.0]\n"
        ) as stand:
            stand.gateway.controller.command("start", actor="test")
            stand.gateway.tick()
            for i in range(6):
                body = json.dumps({"messages": [], "user": f"{i}", "stream": True})
                await ask(stand.url, body.encode())
            stand.gateway.taster.stop()
            stand.gateway.taster.start()
            return stand.gateway.taster.spool.latest()

    samples = run(go())
    assert samples
    assert all(s.signals["degenerate"] for s in samples)
    assert all(s.prompt is None for s in samples)
