"""Failures that gateways and canaries are known for, each with its right behaviour.

``ROWS`` names the tests of every row, here and in other files, so that the list is
complete in one place.
"""

import asyncio
import gzip
import json
import re
from pathlib import Path

import pytest
from canary_cases import a_gateway, ask, run, split, until
from fakes.openai_server import (
    ABORT,
    CLOSE,
    chat_stream,
    chunk,
    delta,
    event,
    head,
    json_reply,
    stream_end,
    stream_head,
)

from routeproof.canary.config import load_canary
from routeproof.canary.deciding.state import (
    Seen,
    SignalOutcome,
    State,
    Steps,
    advance,
    obey,
)
from routeproof.canary.splitting.split import PPM, assign
from routeproof.canary.weighing.evidence import Evidence, SignalPolicy
from routeproof.errors import ConfigError

pytestmark = pytest.mark.slow

HERE = "test_failures_table.py"
ROWS = {
    1: ("JSON split across chunks", "test_fuzz.py::test_any_split_of_an_answer_gives"),
    2: (
        "UTF-8 split",
        f"{HERE}::test_bytes_pass_untouched",
        "test_fuzz.py::test_the_observer_reads_any_framing",
    ),
    3: ("comments kept alive as data", f"{HERE}::test_bytes_pass_untouched"),
    4: ("data: without a space", "test_fuzz.py::test_the_observer_reads_any_framing"),
    5: ("CR, LF and CRLF", "test_fuzz.py::test_the_observer_reads_any_framing"),
    7: ("usage chunk with choices", f"{HERE}::test_bytes_pass_untouched"),
    8: ("usage on the last content chunk", f"{HERE}::test_one_request_is_one_sample"),
    9: ("zero is a value", f"{HERE}::test_one_request_is_one_sample"),
    10: ("usage added up", f"{HERE}::test_the_final_usage_counts"),
    11: ("unknown fields lost", f"{HERE}::test_bytes_pass_untouched"),
    13: (
        "status decided too early",
        "test_relay.py::test_the_upstreams_own_status",
        f"{HERE}::test_an_error_as_first_event",
    ),
    14: (
        "death looks complete",
        f"{HERE}::test_a_stream_that_dies_says_so",
        f"{HERE}::test_a_stream_that_died_is_tasted",
    ),
    15: ("stale length", f"{HERE}::test_no_length_is_made_up"),
    16: (
        "encoding without its header",
        f"{HERE}::test_a_packed_body_keeps_its_encoding",
        f"{HERE}::test_a_packing_nobody_here_opens",
    ),
    17: (
        "large bodies",
        f"{HERE}::test_large_bodies_pass",
        f"{HERE}::test_a_chunked_body_above_the_limit",
    ),
    19: ("client leaves mid-stream", f"{HERE}::test_a_client_that_leaves_is_seen"),
    20: (
        "client leaves before the first token",
        f"{HERE}::test_a_client_that_leaves_is_seen",
    ),
    21: ("other routes leak", f"{HERE}::test_a_client_that_leaves_is_seen"),
    23: ("disconnects unseen", f"{HERE}::test_a_client_that_leaves_is_seen"),
    24: ("tasks leak", f"{HERE}::test_a_thousand_abrupt_closes"),
    25: ("memory grows", "test_failures_scale.py::test_memory_is_flat"),
    26: ("counters drift", f"{HERE}::test_counters_return_to_zero"),
    28: (
        "one hung backend blocks all",
        f"{HERE}::test_a_hanging_candidate_holds_up_nobody",
    ),
    29: ("cap of 100 connections", "test_failures_scale.py::test_two_thousand_streams"),
    30: (
        "headers lost or forwarded",
        "test_small_parts.py::test_upstream_gets_no_hop_by_hop",
        "test_small_parts.py::test_the_clients_own_key_passes",
    ),
    31: (
        "slow clients",
        f"{HERE}::test_a_head_that_drips",
        f"{HERE}::test_a_body_that_drips",
    ),
    33: ("Retry-After", f"{HERE}::test_too_many_requests_passes"),
    34: ("retry after output", f"{HERE}::test_nothing_is_sent_twice"),
    35: ("counted twice", f"{HERE}::test_one_request_is_one_sample"),
    37: ("streams without a second try", f"{HERE}::test_a_kept_connection_that_died"),
    38: ("raw key in the audit", "test_planted_keys.py::test_no_planted_key_is_kept"),
    39: ("share creeps", f"{HERE}::test_the_share_does_not_creep"),
    40: ("users bounce", f"{HERE}::test_a_users_arm_is_the_same"),
    41: (
        "5 % becomes 2.6 %",
        "test_split.py::test_the_share_of_each_arm_is_the_weight",
    ),
    42: ("an upgrade rebuckets", "test_split.py::test_golden_vectors_pin"),
    44: ("inconclusive promotes", "test_state.py::test_an_outcome_without_a_verdict"),
    45: ("empty result", f"{HERE}::test_no_answer_at_all_is_no_data"),
    46: ("unknown metric passes", f"{HERE}::test_a_gate_nobody_knows"),
    47: ("zero baseline passes", f"{HERE}::test_a_rare_fault_the_control_never_has"),
    48: (
        "abort leaves traffic",
        "test_race.py::test_rollbacks_and_dead_stores_race",
        "test_race.py::test_no_byte_of_a_running_answer",
    ),
    49: (
        "removed while still routed",
        f"{HERE}::test_running_answers_end_before_it_is_rolled_back",
    ),
    51: (
        "stuck",
        "test_state.py::test_every_phase_has_a_way_out",
        "test_state.py::CanaryLife",
        "test_life.py::Life",
    ),
    52: ("a gate has not reported", f"{HERE}::test_a_gate_that_has_not_reported"),
    53: ("retry after an abort", "test_state.py::test_a_rolled_back_digest_needs_an"),
    54: (
        "reason not visible",
        "test_controller.py::test_a_failing_signal_ends_in",
        "test_metrics_page.py::test_a_failing_gate_is_on_the_page",
    ),
}
"""Row of the table of failures that gateways and canaries are known for, what it is
about, and the tests that hold the right behaviour."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row}: {ROWS[row][0]}")
def test_every_row_has_its_tests(row):
    for where in ROWS[row][1:]:
        name, _, start = where.partition("::")
        text = (Path(__file__).parent / name).read_text()
        assert f"def {start}" in text or f"class {start}" in text, where


def test_no_row_of_the_table_is_missing():
    table = Path(__file__).parents[3] / "shared" / "reference" / "failures.md"
    if not table.exists():
        pytest.skip("the table of failures is not beside the repository")
    last = table.read_text().partition("## Gateways and canaries")[2]
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", last, re.M)} == set(ROWS)


def through(tmp_path, trusted, **request):
    async def go():
        async with a_gateway(tmp_path, trusted=trusted, fast=[]) as stand:
            return await ask(stand.url, **request), stand

    return run(go())


ODD = {"id": "x", "choices": [{"index": 0, "delta": {"reasoning": "ü🙂"}, "odd": 0}]}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 2852}
CACHED = {"cached_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}
FULL = {**delta("last", finish="stop"), "usage": {**USAGE, **CACHED}}
EVENTS = [
    b": keep-alive\n\n",
    b"data:" + json.dumps(ODD, ensure_ascii=False).encode() + b"\n\n",
    b"data: " + json.dumps(FULL).encode() + b"\r\n\r\n",
    b"event: odd\rid: 7\rdata: {}\r\r",
    b"data: [DONE]\n\n",
]
WHOLE = b"".join(EVENTS)


def test_bytes_pass_untouched_one_at_a_time_with_comments_and_unknown_fields(tmp_path):
    pieces = [chunk(WHOLE[i : i + 1]) for i in range(len(WHOLE))]
    answer, _ = through(tmp_path, [*stream_head(), *pieces, b"0\r\n\r\n"])
    assert split(answer)[2] == WHOLE


def test_no_length_is_made_up_for_a_stream(tmp_path):
    answer, _ = through(tmp_path, chat_stream())
    assert "content-length" not in split(answer)[1]


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_packed_body_keeps_its_encoding_also_with_an_error(
    tmp_path, status, is_chunked
):
    packed = gzip.compress(WHOLE)
    if is_chunked:
        top = head(status, content_encoding="gzip", transfer_encoding="chunked")
        script = [top, chunk(packed[:9]), chunk(packed[9:]), b"0\r\n\r\n"]
    else:
        length = len(packed)
        script = [head(status, content_encoding="gzip", content_length=length) + packed]
    found, headers, body = split(through(tmp_path, script)[0])
    assert (found, headers["content-encoding"]) == (status, "gzip")
    assert gzip.decompress(body) == WHOLE


@pytest.mark.parametrize("size", [1_000_000, 8 << 20, 64 << 20])
def test_large_bodies_pass_both_ways(tmp_path, size):
    def echo(seen):
        return [head(200, content_length=len(seen.body)) + seen.body]

    body = bytes(range(256)) * (size // 256)
    answer, _ = through(tmp_path, echo, body=body, path="/v1/other")
    assert split(answer)[2] == body


def test_a_chunked_body_above_the_limit_is_refused_while_it_comes(tmp_path):
    more = "  traffic: {body_bytes_max: 1000}\n"

    async def go():
        async with a_gateway(tmp_path, trusted=[], fast=[], more=more) as stand:
            reader, writer = await connect(stand)
            top = "POST /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(top.encode() + chunk(b"x" * 600) + chunk(b"x" * 600))
            answer = await reader.read()
            writer.close()
            return answer, len(stand.trusted.seen)

    answer, seen = run(go())
    assert split(answer)[0] == 413 and seen == 0


async def connect(stand):
    host, port = stand.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


def request(path="/v1/chat/completions", body=b"{}", method="POST"):
    top = f"{method} {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
    return top.encode() + body


def test_a_stream_that_dies_says_so_and_never_that_it_is_done(tmp_path):
    script = [*stream_head(), event(delta("Hel")), ABORT]
    answer, _ = through(tmp_path, script)
    assert b"event: error" in answer and b"[DONE]" not in answer
    assert not answer.endswith(b"0\r\n\r\n")


def test_a_stream_that_dies_inside_an_event_is_left_as_it_is(tmp_path):
    script = [*stream_head(), chunk(b'data: {"half'), ABORT]
    answer, _ = through(tmp_path, script)
    assert b"event: error" not in answer and b"[DONE]" not in answer
    assert not answer.endswith(b"0\r\n\r\n")


def test_a_whole_answer_that_dies_is_not_filled_up(tmp_path):
    script = [head(200, content_length=100) + b"half", ABORT]
    answer, _ = through(tmp_path, script)
    assert split(answer)[2] == b"half"


@pytest.mark.parametrize("wait", ["7", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_too_many_requests_passes_with_its_wait_and_is_not_tried_again(tmp_path, wait):
    reply = json_reply({"error": "slow down"}, status=429, retry_after=wait)
    answer, stand = through(tmp_path, reply)
    status, headers, _ = split(answer)
    assert (status, headers["retry-after"]) == (429, wait.lower())
    assert len(stand.trusted.seen) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_kept_connection_that_died_is_replaced_before_the_first_byte(
    tmp_path, stream
):
    good = chat_stream() if stream else json_reply({"ok": 1})

    async def go():
        async with a_gateway(
            tmp_path, trusted=lambda s: [*good, CLOSE] if s.number == 0 else good,
            fast=[],
        ) as stand:  # fmt: skip
            stand.gateway.router.pools["baseline"].rest_s = 0.0
            answers = [split(await ask(stand.url)) for _ in range(4)]
            return [status for status, _, _ in answers], len(stand.trusted.seen)

    assert run(go()) == ([200] * 4, 4)


@pytest.mark.parametrize("partial", [b"HTTP/1.1 2", head(200, content_length=9) + b"a"])
def test_nothing_is_sent_twice_once_a_byte_came(tmp_path, partial):
    def script(seen):
        return json_reply({}) if seen.number == 0 else [partial, ABORT]

    async def go():
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            stand.gateway.router.pools["baseline"].rest_s = 0.0
            await ask(stand.url)
            await ask(stand.url)
            return len(stand.trusted.seen)

    assert run(go()) == 2


FAULTS = {
    "reset before an answer": [ABORT],
    "close before an answer": [CLOSE],
    "reset in the middle": [*stream_head(), event(delta("a")), ABORT],
    "not HTTP": [b"\x00\x01 rubbish\r\n\r\n", CLOSE],
    "switch": [b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"],
    "bad chunk size": [*stream_head(), b"zz\r\nabc\r\n"],
    "endless head": [b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 20_000],
    "error status": json_reply({}, status=500),
    "an answer": json_reply({}),
    "two answers at once": [*json_reply({}), *json_reply({"smuggled": 1})],
}


def test_counters_return_to_zero_under_every_fault(tmp_path):
    async def go():
        kinds = list(FAULTS.values())
        script = lambda seen: kinds[seen.number % len(kinds)]  # noqa: E731
        more = "  steps: [0.5]\n"
        async with a_gateway(tmp_path, trusted=script, fast=script, more=more) as stand:
            stand.gateway.command("start", actor="test")
            asked = [ask(stand.url, body_of(i)) for i in range(40)]
            answers = await asyncio.gather(*asked)
            router = stand.gateway.router
            pools = [pool.in_use for pool in router.pools.values()]
            flying = dict(stand.gateway.meter.in_flight)
            counted = sum(router.counts.requests.values())
            return pools, set(flying.values()), counted, b"".join(answers)

    pools, flying, counted, answers = run(go())
    assert (pools, flying, counted) == ([0, 0], {0}, 40)
    assert b"smuggled" not in answers


def body_of(i, **more):
    return json.dumps({"messages": [], "user": f"u{i}", **more}).encode()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings", "/other"])
@pytest.mark.parametrize("phase", ["prefill", "whole", "stream"])
def test_a_client_that_leaves_is_seen_upstream_in_every_phase(tmp_path, path, phase):
    async def go():
        never = asyncio.Event()
        script = {
            "prefill": [never],
            "whole": [head(200, content_length=9) + b"a", never],
            "stream": [*stream_head(), event(delta("a")), never],
        }[phase]
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            reader, writer = await connect(stand)
            writer.write(request(path))
            while not stand.trusted.seen:
                await asyncio.sleep(0)
            if phase != "prefill":
                await reader.read(1)
            writer.transport.abort()
            while stand.gateway.router.pools["baseline"].in_use:
                await asyncio.sleep(0)
            return stand.gateway.router.counts.outcomes

    assert dict(run(go())) == {("baseline", "cancelled"): 1}


def test_a_thousand_abrupt_closes_leave_no_task_behind(tmp_path):
    async def go():
        never = asyncio.Event()
        script = [*stream_head(), event(delta("a")), never]
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            before = len(asyncio.all_tasks())
            for _ in range(50):
                pairs = [await connect(stand) for _ in range(20)]
                for _, writer in pairs:
                    writer.write(request())
                for reader, writer in pairs:
                    await reader.read(1)
                    writer.transport.abort()
            pool = stand.gateway.router.pools["baseline"]
            while pool.in_use or stand.trusted.in_flight:
                never.set()
                await asyncio.sleep(0)
            for _ in range(50):
                await asyncio.sleep(0)
            return before, len(asyncio.all_tasks())

    before, after = run(go())
    assert after <= before + 5


def test_a_client_that_does_not_read_stops_the_upstream(tmp_path):
    written = []

    async def go():
        block = b"x" * 65_536
        steps = [
            s for i in range(1_000) for s in (block, lambda i=i: written.append(i))
        ]
        script = [head(200, content_length=65_536 * 1_000), *steps]
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            reader, writer = await connect(stand)
            writer.transport.pause_reading()
            writer.write(request("/v1/other"))
            while not written:
                await asyncio.sleep(0)
            last, still = -1, 0
            while still < 200:
                await asyncio.sleep(0)
                still = still + 1 if len(written) == last else 0
                last = len(written)
            writer.transport.abort()

    run(go())
    assert len(written) < 500


def test_a_hanging_candidate_holds_up_nobody_of_the_baseline(tmp_path):
    async def go():
        never = asyncio.Event()
        more = "  steps: [0.5]\n"
        async with a_gateway(
            tmp_path, trusted=json_reply({}), fast=[never], more=more
        ) as stand:
            stand.gateway.command("start", actor="test")
            salt = stand.gateway.router.salt
            arms = [
                assign(f"u:u{i}", salt=salt, weight_ppm=PPM // 2) for i in range(30)
            ]
            stuck = [
                asyncio.ensure_future(ask(stand.url, body_of(i)))
                for i, arm in enumerate(arms)
                if arm == "canary"
            ]
            others = [i for i, arm in enumerate(arms) if arm != "canary"]
            answers = [split(await ask(stand.url, body_of(i)))[0] for i in others]
            stand.gateway.relay.cut("canary")
            cut = [split(await each)[:2] for each in stuck]
            return answers, cut

    answers, cut = run(go())
    assert answers and set(answers) == {200}
    assert cut and {status for status, _ in cut} == {503}
    assert all(headers["retry-after"] == "0" for _, headers in cut)


SLOW = "  traffic: {receive_deadline_s: 0.2}\n"


def test_a_head_that_drips_is_given_up(tmp_path):
    async def go():
        async with a_gateway(tmp_path, trusted=[], fast=[], more=SLOW) as stand:
            reader, writer = await connect(stand)
            writer.write(b"POST /v1/x HTTP/1.1\r\nHost: h\r\nX-Slow: ")
            try:
                return await reader.read()
            except ConnectionError:
                return b""
            finally:
                writer.transport.abort()

    assert run(go()) == b""


def test_a_body_that_drips_is_given_up_with_a_word(tmp_path):
    async def go():
        async with a_gateway(tmp_path, trusted=[], fast=[], more=SLOW) as stand:
            reader, writer = await connect(stand)
            writer.write(
                b"POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\na"
            )
            answer = await reader.read()
            writer.close()
            return answer, len(stand.trusted.seen)

    answer, seen = run(go())
    assert split(answer)[0] == 408 and seen == 0


@pytest.mark.parametrize("hosts", ["Host: a\r\nHost: b\r\n", "X-A: b\r\n"])
def test_a_request_has_one_host(tmp_path, hosts):
    async def go():
        async with a_gateway(tmp_path, trusted=[], fast=[]) as stand:
            reader, writer = await connect(stand)
            writer.write(f"GET /v1/models HTTP/1.1\r\n{hosts}\r\n".encode())
            answer = await reader.read()
            writer.close()
            return answer

    assert split(run(go()))[0] == 400


def test_a_question_for_the_head_alone_does_not_wait_for_a_body(tmp_path):
    async def go():
        script = [head(200, content_length=1234)]
        async with a_gateway(tmp_path, trusted=script, fast=[]) as stand:
            reader, writer = await connect(stand)
            writer.write(b"HEAD /v1/models HTTP/1.1\r\nHost: h\r\n\r\n")
            answer = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            return answer

    assert b"content-length: 1234" in run(go())


def test_one_request_is_one_sample_with_the_usage_it_came_with(tmp_path):
    script = [*stream_head(), chunk(EVENTS[0]), chunk(EVENTS[1]), event(FULL)]

    async def go():
        more = "  steps: [0.5]\n"
        served = [*script, *stream_end()]
        async with a_gateway(tmp_path, trusted=served, fast=served, more=more) as stand:
            stand.gateway.command("start", actor="test")
            for i in range(12):
                await ask(stand.url, body_of(i, stream=True))
            stand.gateway.taster.stop()
            return stand.gateway.taster.spool.latest()

    samples = run(go())
    assert len(samples) == 12
    assert {s.record.usage.output_tokens for s in samples} == {2}
    assert {s.record.usage.cached_tokens for s in samples} == {0}
    assert {s.record.answer.text for s in samples} == {"last"}


def test_a_stream_that_died_is_tasted_as_an_error(tmp_path):
    died = [*stream_head(), event(delta("a")), ABORT]

    async def go():
        more = "  steps: [0.5]\n"
        async with a_gateway(tmp_path, trusted=died, fast=died, more=more) as stand:
            stand.gateway.command("start", actor="test")
            for i in range(6):
                await ask(stand.url, body_of(i, stream=True))
            stand.gateway.taster.stop()
            return stand.gateway.taster.spool.latest()

    samples = run(go())
    assert samples and all(s.signals["error"] for s in samples)


def test_a_users_arm_is_the_same_through_restarts_and_replicas(tmp_path):
    async def go(life):
        served = json_reply({"life": life})
        more = "  steps: [0.3]\n"
        folder = tmp_path / str(life)
        folder.mkdir()
        async with a_gateway(folder, trusted=served, fast=served, more=more) as stand:
            stand.gateway.command("start", actor="test")
            for i in range(40):
                await ask(stand.url, body_of(i))
            return sorted(s.json["user"] for s in stand.fast.seen)

    first, second = run(go(1)), run(go(2))
    assert first == second and 0 < len(first) < 40


def test_the_share_does_not_creep_when_the_same_users_come_again():
    """A hundred thousand users, three visits each: within four standard errors."""
    n, share = 100_000, 0.05
    visits = [
        [assign(f"u:{i}", salt="s/1", weight_ppm=50_000) for i in range(n)]
        for _ in range(3)
    ]
    assert visits[0] == visits[1] == visits[2]
    bound = 4 * (share * (1 - share) / n) ** 0.5
    for arm in ("canary", "control"):
        assert abs(visits[2].count(arm) / n - share) < bound


@pytest.mark.parametrize(
    "line",
    [
        "scorers: [eror]",
        "tolerances: {speed: 0.1}",
        "quality_gate: looks fine",
        "scorers: [off_topic]",
        "tolerances: {shadow.error: 0.1}",
        "privacy: {replay: true, replay_hours: noon}",
        "privacy: {patterns: {x: '('}}",
    ],
)
def test_a_gate_nobody_knows_is_refused(tmp_path, line):
    file = tmp_path / "canary.yaml"
    routes = 'routes: {a: "http://127.0.0.1:1", b: "http://127.0.0.1:2"}'
    file.write_text(f"canary:\n  candidate: a\n  baseline: b\n  {routes}\n  {line}\n")
    with pytest.raises(ConfigError):
        load_canary(file)


def an_evidence(**policy):
    return Evidence({"error": SignalPolicy(**policy)}, alpha=0.05)


def test_no_answer_at_all_is_no_data_and_neither_passes_nor_fails():
    assert an_evidence().standings()[0].outcome is SignalOutcome.NO_DATA


def test_a_rare_fault_the_control_never_has_does_not_pass_and_is_found():
    evidence = an_evidence(tolerance=0.02)
    outcomes = []
    for i in range(3_000):
        evidence.observe("error", False, False, "whole")
        evidence.observe("error", True, i % 50 == 49, "whole")
        if i in (199, 2_999):
            outcomes.append(evidence.standings()[0].outcome)
    assert outcomes[0] is SignalOutcome.INCONCLUSIVE
    assert outcomes[1] is SignalOutcome.FAIL


def test_an_invalid_structure_is_answered_by_the_baseline_and_counted(tmp_path):
    more = (
        "  steps: [0.5]\n  traffic: {retry_invalid_structure: true}\n"
        "  tolerances: {invalid_structure: 0.05}\n"
    )

    def said(text):
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return json_reply({"id": "c", "choices": [choice]})

    async def go():
        async with a_gateway(
            tmp_path, trusted=said('{"n": 1}'), fast=said("{broken"), more=more
        ) as stand:
            stand.gateway.command("start", actor="test")
            form = {"type": "json_object"}
            answers = [
                split(await ask(stand.url, body_of(i, response_format=form)))[2]
                for i in range(10)
            ]
            stand.gateway.taster.stop()
            return answers, stand

    answers, stand = run(go())
    assert all(b'{\\"n\\": 1}' in answer for answer in answers)
    tried = len(stand.fast.seen)
    assert tried > 0 and len(stand.trusted.seen) == 10
    found = {s.name: s for s in stand.gateway.taster.standings()}["invalid_structure"]
    assert (found.canary_seen, found.canary_share) == (tried, 1.0)


def sampled(tmp_path, script, *, n=8, more="  steps: [0.5]\n"):
    """Samples of ``n`` streams of the same script from both arms."""

    async def go():
        async with a_gateway(tmp_path, trusted=script, fast=script, more=more) as stand:
            stand.gateway.command("start", actor="test")
            answers = [await ask(stand.url, body_of(i, stream=True)) for i in range(n)]
            stand.gateway.taster.stop()
            return answers, stand.gateway

    return run(go())


def test_the_final_usage_counts_and_nothing_is_added_up(tmp_path):
    running = [
        {**delta("a"), "usage": {"prompt_tokens": 5, "completion_tokens": n}}
        for n in (1, 2, 22)
    ]
    last = {**delta("", finish="stop"), "usage": {"completion_tokens": 2852}}
    script = [*stream_head(), *map(event, [*running, last]), *stream_end()]
    _, gateway = sampled(tmp_path, script)
    samples = gateway.taster.spool.latest()
    assert {s.record.usage.output_tokens for s in samples} == {2852}


def test_an_error_as_first_event_passes_as_it_is_and_is_tasted_as_one(tmp_path):
    said = {"error": {"message": "slow down", "code": 429}}
    script = [*stream_head(), event(said), *stream_end()]
    answers, gateway = sampled(tmp_path, script)
    assert all(b"slow down" in split(answer)[2] for answer in answers)
    samples = gateway.taster.spool.latest()
    assert samples and all(s.signals["error"] for s in samples)


def test_a_packing_nobody_here_opens_passes_and_is_counted_as_not_tasted(tmp_path):
    packed = b"\x0b\x02\x80hello\x03"
    script = [head(200, content_encoding="br", content_length=len(packed)) + packed]
    answers, gateway = sampled(tmp_path, script, n=24)
    for _, headers, body in map(split, answers):
        assert (headers["content-encoding"], body) == ("br", packed)
    assert gateway.taster.spool.latest() == []
    assert sum(gateway.taster.dropped.values()) == 24
    assert "`br`" in gateway.taster.ledger.troubles()["reading"][1]


def test_running_answers_end_before_it_is_rolled_back(tmp_path):
    """``drain: finish``: who removes a candidate that is rolled back cuts nobody."""

    async def go():
        go_on = asyncio.Event()
        slow = [
            *stream_head(),
            event(delta("a")),
            go_on,
            event(delta("b")),
            *stream_end(),
        ]
        more = "  steps: [0.5]\n"
        async with a_gateway(
            tmp_path, trusted=chat_stream(), fast=slow, more=more
        ) as stand:
            stand.gateway.command("start", actor="test")
            asked = [asyncio.create_task(ask(stand.url, body_of(i))) for i in range(12)]
            while stand.gateway.meter.in_flight["canary"] < 3:
                await asyncio.sleep(0)
            stand.gateway.command("rollback", actor="test")
            phases = set()
            for _ in range(5):
                phases.add(stand.gateway.tick().phase)
            go_on.set()
            answers = [split(await each)[2] for each in asked]
            store = stand.gateway.store
            await until(lambda: store.read("fast").phase == "rolled_back")
            return phases, answers, stand.gateway.meter.in_flight["canary"]

    phases, answers, left = run(go())
    assert phases == {"rolling_back"} and left == 0
    assert all(answer.endswith(b"[DONE]\n\n") for answer in answers)


@pytest.mark.parametrize("late", ["no_data", "inconclusive", "error", "stale"])
def test_a_gate_that_has_not_reported_keeps_the_others_from_widening(late):
    state = obey(State(name="c", candidate_digest="d"), "start", 0.0, Steps())
    signals = {"a": SignalOutcome.PASS, "z": SignalOutcome(late)}
    seen = Seen(now_s=1.0, signals=signals, scored_canary=500, scored_control=500)
    after = advance(state, seen, Steps())
    assert (after.phase, after.weight_ppm) == ("held", state.weight_ppm)
