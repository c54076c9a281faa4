"""Shadow pairs: what may be replayed, when, and what a pair says."""

import asyncio
import json
import threading

import pytest
from canary_cases import a_gateway, ask, run
from fakes.openai_server import CLOSE, chat_stream, json_reply, serving_in_thread
from tasting_cases import USUAL, a_copy, a_taster, standing, taste_all

from routeproof.canary.deciding.lease import Lease
from routeproof.canary.deciding.state import SignalOutcome, State
from routeproof.canary.splitting.shadow_rules import hours, is_within, no_replay
from routeproof.canary.splitting.share import ShareMeter
from routeproof.canary.tasting.asked_http import Endpoint
from routeproof.canary.tasting.replayer import WAITING_MAX, Replayer
from routeproof.canary.tasting.shadow_pairs import CopiedPair
from routeproof.canary.weighing.policies import PAIRED, SHADOW
from routeproof.proof.canary import PrivacySpec

REFUSES = {
    "a header": ({b"x-routeproof-no-replay": b"1"}, {}),
    "metadata": ({}, {"metadata": {"no_replay": "true"}}),
    "metadata, a boolean": ({}, {"metadata": {"routeproof_no_replay": True}}),
    "tools": ({}, {"tools": [{"type": "function"}]}),
    "tools that are empty": ({}, {"tools": []}),
    "functions": ({}, {"functions": [{}]}),
    "a search": ({}, {"web_search_options": {}}),
    "kept by the server": ({}, {"store": True}),
    "several choices": ({}, {"n": 3}),
}


@pytest.mark.parametrize(("headers", "fields"), REFUSES.values(), ids=REFUSES)
def test_what_is_marked_or_could_act_is_never_replayed(headers, fields):
    assert no_replay(headers, {**USUAL, **fields}) is not None


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({}, {}),
        ({b"x-routeproof-no-replay": b"false"}, {"metadata": {"no_replay": "0"}}),
        ({}, {"metadata": {"customer": "7"}, "n": 1, "stream": True, "seed": 3}),
    ],
)
def test_an_ordinary_prompt_may_be_replayed(headers, fields):
    assert no_replay(headers, {**USUAL, **fields}) is None


def test_hours_go_over_midnight_and_nonsense_is_refused():
    assert hours("22:00-06:30") == (1320, 390)
    clock = [is_within(h * 3600.0, "22:00-06:00") for h in (21, 22, 23, 0, 5, 6)]
    assert clock == [False, True, True, True, True, False]
    assert is_within(12 * 3600.0, "09:00-17:00") and is_within(0.0, None)
    for text in ("noon", "22-6", "25:00-26:00", "06:00-06:00", "6:0-7:00"):
        with pytest.raises(ValueError):
            hours(text)


class World:
    """A replayer with a hand on all it looks at."""

    def __init__(self, url, **privacy):
        self.now_s = 0.0
        self.pairs = []
        self.lease = Lease(lease_s=1e9, clock=self.clock)
        self.weigh(100_000)
        self.meter = ShareMeter(window_s=1.0, clock=self.clock)
        self.replayer = Replayer(
            privacy=PrivacySpec(replay=True, **privacy),
            upstreams={
                "canary": Endpoint(url, {"Authorization": "Bearer own-canary"}),
                "baseline": Endpoint(url, {}),
            },
            lease=self.lease,
            meter=self.meter,
            take=self.take,
            wall=self.clock,
            clock=self.clock,
        )

    def clock(self):
        return self.now_s

    def weigh(self, ppm):
        self.lease.renew(State(name="c", candidate_digest="d", weight_ppm=ppm))

    def take(self, pair):
        self.pairs.append(pair)
        return True


def a_world(url="http://127.0.0.1:9", **privacy):
    return World(url, **privacy)


def may(**given):
    return a_copy(no_replay=None, **given)


def test_a_prompt_of_the_control_is_asked_of_the_canary_and_the_other_way_round():
    with serving_in_thread(json_reply({"id": "x", "choices": []})) as server:
        world = a_world(server.url.removesuffix("/v1"), replays_per_minute=600)
        for arm in ("control", "canary"):
            world.replayer.offer(may(arm=arm, request_id=f"from-{arm}"))
            world.now_s += 1.0
            assert world.replayer.once()
    assert [p.replay.arm for p in world.pairs] == ["canary", "control"]
    assert [s.json for s in server.seen] == [USUAL, USUAL]
    assert [s.headers.get("authorization") for s in server.seen] == [
        "Bearer own-canary",
        None,
    ]
    assert world.replayer.waiting() == 0


def test_the_budget_the_load_the_hours_and_the_weight_hold_replays_back():
    with serving_in_thread(json_reply({"id": "x", "choices": []})) as server:
        world = a_world(
            server.url.removesuffix("/v1"),
            replays_per_minute=6,
            replay_in_flight_max=1,
            replay_hours="00:00-01:00",
        )
        for i in range(4):
            world.replayer.offer(may(request_id=f"r{i}"))
        assert world.replayer.once()
        world.now_s = 9.0
        assert not world.replayer.once()  # the budget
        world.now_s = 11.0
        world.meter.began("baseline")
        world.meter.began("baseline")
        assert not world.replayer.once()  # the load
        world.meter.ended("baseline")
        world.weigh(0)
        assert not world.replayer.once()  # the weight
        world.weigh(10_000)
        assert world.replayer.once()
        world.now_s = 3_650.0
        world.replayer.offer(may(request_id="late"))
        assert not world.replayer.once()  # the hours
    assert len(server.seen) == 2


def test_a_prompt_that_finds_no_quiet_moment_is_forgotten_and_counted():
    world = a_world(replay_wait_s=60.0, replay_in_flight_max=0)
    world.meter.began("baseline")
    world.replayer.offer(may())
    world.now_s = 59.0
    world.replayer.once()
    assert world.replayer.waiting() == 1
    world.now_s = 61.0
    world.replayer.once()
    assert world.replayer.waiting() == 0
    assert world.replayer.counts["expired"] == 1
    assert world.replayer.by_arm["expired", "canary"] == 1


def test_no_more_than_so_many_prompts_are_in_memory():
    world = a_world()
    for i in range(WAITING_MAX + 3):
        world.replayer.offer(may(request_id=f"r{i}"))
    assert world.replayer.waiting() == WAITING_MAX
    assert world.replayer.counts["no_room"] == 3


def test_a_users_waiting_prompts_are_forgotten_on_erasure():
    world = a_world()
    for owner in ("a", "b", "a"):
        world.replayer.offer(may(owner=owner))
    assert world.replayer.forget("a") == 2 and world.replayer.waiting() == 1


def test_what_the_router_did_not_see_is_found_in_the_body():
    world = a_world(replays_per_minute=600)
    world.replayer.offer(may(request={"tools": [{"type": "function"}]}))
    assert not world.replayer.once()
    assert world.replayer.counts["acts"] == 1 and not world.pairs


def test_a_rollback_cuts_the_replay_under_way_and_forgets_the_rest():
    begun, cut = threading.Event(), asyncio.Event()
    steps = [*chat_stream(["slow"])[:2], begun.set, cut, CLOSE]
    with serving_in_thread(steps) as server:
        world = a_world(server.url.removesuffix("/v1"), replays_per_minute=600)
        for i in range(3):
            world.replayer.offer(may(arm="control", request_id=f"r{i}"))
        world.replayer.start()
        assert begun.wait(10)
        world.weigh(0)
        world.replayer.cut()
        world.replayer.stop()
    assert world.pairs == [] and world.replayer.waiting() == 0
    assert world.replayer.counts["cut"] + world.replayer.counts["rolled_back"] == 3


def a_pair(control, canary, *, is_live_canary=True, **given):
    arms = {"control": control, "canary": canary}
    live = "canary" if is_live_canary else "control"
    other = "control" if is_live_canary else "canary"
    return CopiedPair(
        a_copy(arms[live], arm=live, request_id="live-request", **given),
        a_copy(arms[other], arm=other, request_id="live-request.shadow"),
    )


LOOP = "the sea, the sea, " * 80


@pytest.mark.parametrize("is_live_canary", [True, False])
def test_a_pair_says_which_side_is_worse_whichever_was_live(tmp_path, is_live_canary):
    taster = a_taster(tmp_path, paired=[SHADOW + name for name in PAIRED])
    pair = a_pair("Paris.", LOOP, is_live_canary=is_live_canary)
    taste_all(taster, pair.live, pair)
    seen = standing(taster, "shadow.degenerate")
    assert (seen.control_share, seen.canary_share) == (0.0, 1.0)
    assert taster.pairs == {"compared": 1}
    (kept,) = taster.spool.latest()
    assert kept.shadow.arm == pair.replay.arm
    assert kept.shadow.record.answer.text == pair_text(pair.replay)


def pair_text(copy):
    return json.loads(b"".join(copy.capture.pieces))["choices"][0]["message"]["content"]


@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_a_replay_that_was_not_wanted_is_no_pair_and_counts_as_a_failure(
    tmp_path, status
):
    taster = a_taster(tmp_path, paired=["shadow.error"])
    for i in range(20):
        live = a_copy(arm="control", request_id=f"live-{i}")
        replay = a_copy(arm="canary", request_id=f"live-{i}.shadow", status=status)
        taste_all(taster, CopiedPair(live, replay))
    seen = standing(taster, "shadow.error")
    assert seen.canary_seen == 0 and taster.pairs["not_served"] == 20
    assert seen.outcome is SignalOutcome.ERROR


def test_an_answer_the_client_left_is_no_pair_and_no_failure(tmp_path):
    taster = a_taster(tmp_path, paired=["shadow.error"])
    half = {"outcome": "cancelled", "raw_answer": b'{"id": "x", "choi'}
    live = a_copy(arm="control", request_id="live-1", **half)
    taste_all(taster, CopiedPair(live, a_copy(request_id="live-1.shadow")))
    assert taster.pairs == {"cancelled": 1}
    assert taster.ledger.taken.total() > 0
    assert standing(taster, "shadow.error").outcome is SignalOutcome.NO_DATA


PLANTED = "the plum tree behind the mill"
MORE = """\
  steps: [0.5, 1.0]
  privacy: {replay: true, replays_per_minute: 6000}
"""


def broken(seen):
    return said("word " * 400 if "x-request-id" not in seen.headers else "Fine.")


def said(text):
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return json_reply({"id": "c", "choices": [choice]})


async def traffic(stand, n, **fields):
    for i in range(n):
        message = {"role": "user", "content": f"Where is {PLANTED}? {i}"}
        body = {"messages": [message], "user": f"user-{i}", **fields}
        headers = [f"x-request-id: request-{i:04}"]
        await ask(stand.url, json.dumps(body).encode(), headers=headers)


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


@pytest.mark.slow
def test_a_fault_seen_only_in_shadow_pairs_takes_the_candidate_back(tmp_path):
    """The candidate behaves for clients; its replays loop."""

    async def go():
        async with a_gateway(
            tmp_path, trusted=said("Fine."), fast=broken, more=MORE
        ) as stand:
            gateway = stand.gateway
            gateway.command("start", actor="test")
            before = gateway.side.replayer.counts
            while gateway.store.read("fast").phase not in ("rolled_back",):
                await traffic(stand, 20)
                await until(
                    lambda: (
                        gateway.side.replayer.waiting() < 40
                        or gateway.store.read("fast").phase == "rolled_back"
                    )
                )
                assert before["sent"] < 2_000, gateway.taster.standings()
            return gateway

    gateway = run(go())
    assert "shadow.degenerate" in gateway.store.read("fast").reason
    files = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert PLANTED.encode() not in files
    assert gateway.side.replayer.waiting() == 0


@pytest.mark.slow
def test_requests_marked_no_replay_are_tasted_but_never_sent_twice(tmp_path):
    async def go():
        async with a_gateway(
            tmp_path, trusted=said("Fine."), fast=said("Fine."), more=MORE
        ) as stand:
            stand.gateway.command("start", actor="test")
            await traffic(stand, 30, metadata={"no_replay": "true"})
            await until(lambda: stand.gateway.side.replayer.waiting() == 0)
            stand.gateway.side.stop()
            return stand

    stand = run(go())
    assert len(stand.trusted.seen) + len(stand.fast.seen) == 30
    assert stand.gateway.taster.spool.latest()
    assert stand.gateway.side.replayer.counts["sent"] == 0
    assert stand.gateway.side.replayer.counts["marked"] > 0
