"""The client judges itself, and a run in which it was too slow is invalid."""

import os
import time

import msgspec
import numpy as np
import pytest
from fakes.openai_server import (
    chat_stream,
    delta,
    event,
    json_reply,
    serving,
    stream_end,
    stream_head,
)
from record_cases import a_manifest, a_record
from run_cases import MS, PlainAdapter, a_target, a_workload, captured, run, some_cases

from routeproof.engines.adapter import Counters
from routeproof.records.manifest import Threshold
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Block
from routeproof.runs.conduct import conduct
from routeproof.runs.health import judge_client, worse_of
from routeproof.runs.mock import Served, Shape
from routeproof.runs.parse import Origin
from routeproof.runs.plan import build_plan
from routeproof.runs.selftest import compare, self_test
from routeproof.runs.telemetry import Sampler
from routeproof.runs.watch import Watch

GOOD = {
    "requests": 100.0,
    "loop_lag_samples": 100.0,
    "loop_lag_p99_s": 0.004,
    "dispatch_delay_p99_s": 0.001,
    "first_chunk_p50_s": 0.1,
    "rate_share": 1.0,
    "concurrency_share": 0.99,
    "not_started_share": 0.0,
    "cpu_share": 0.3,
}


def judged(place="baseline/sweep/c16", **changes):
    return judge_client({place: {**GOOD, **changes}})


def test_a_client_that_keeps_up_is_valid():
    health = judged()
    assert health.valid
    assert health.reasons == ()
    assert all(check.ok for check in health.checks)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loop_lag_p99_s": 0.05}, "event loop"),
        ({"dispatch_delay_p99_s": 0.05}, "after they were due"),
        ({"rate_share": 0.9}, "rate"),
        ({"concurrency_share": 0.5}, "concurrency"),
        ({"not_started_share": 0.02}, "could not be started"),
        ({"cpu_share": 0.97}, "processor"),
    ],
)
def test_each_limit_spoils_the_run_and_says_so(changes, words):
    health = judged(**changes)
    assert not health.valid
    (reason,) = health.reasons
    assert words in reason and "baseline/sweep/c16" in reason


def test_lateness_is_measured_against_what_it_spoils():
    assert judged(loop_lag_p99_s=0.05, first_chunk_p50_s=2.0).valid
    assert not judged(loop_lag_p99_s=0.05, first_chunk_p50_s=0.2).valid


def test_the_quality_phase_is_not_timed_and_cannot_spoil_the_run():
    assert judged("baseline/quality/c1", loop_lag_p99_s=1.0).valid


def test_what_could_not_be_taken_fails_nothing_and_is_not_called_good():
    health = judge_client({"baseline/latency/c1": {"requests": 5.0}})
    assert health.valid
    assert {check.ok for check in health.checks} == {None}


def test_few_samples_do_not_make_a_percentile():
    assert judged(loop_lag_p99_s=0.5, loop_lag_samples=3.0).valid


def test_a_failed_self_test_spoils_the_run():
    check = Threshold(
        name="self_test_first_error_p95_s", value=0.3, limit=0.02, ok=False
    )
    health = judge_client({}, before=[check])
    assert not health.valid
    assert "self_test_first_error_p95_s" in health.reasons[0]


def test_bundled_chunks_are_explained_and_spoil_nothing():
    health = judged(coalesced_share=0.8, late_first_share=0.9)
    assert health.valid
    assert any("came together" in note for note in health.notes)
    assert any("proxy that buffers" in note for note in health.notes)


def test_the_worse_part_of_an_interrupted_level_counts():
    first = {"rate_share": 0.9, "cpu_share": 0.2}
    merged = worse_of(first, {"rate_share": 1.0, "cpu_share": 0.5, "x": None})
    assert merged == {"rate_share": 0.9, "cpu_share": 0.5, "x": None}


def a_block(**changes):
    given = {
        "number": 1,
        "group": 1,
        "arm": "baseline",
        "phase": "sweep",
        "level": "c2",
        "n_cases": 4,
        "concurrency": 2,
    }
    return Block(**{**given, **changes})


def watched(spans, block):
    """Numbers of a block with requests of the given (intended, dispatched, end)."""
    watch = Watch()
    watch.enter()
    for number, (intended, dispatched, end) in enumerate(spans):
        record = a_record(
            request_id=str(number),
            phase=block.phase,
            level=block.level,
            intended_s=intended,
            dispatched_s=dispatched,
            end_s=end,
            chunk_s=(dispatched + 0.5,),
        )
        watch.see(record, captured([]))
    watch.leave(block, 0)
    return watch.numbers()["baseline/sweep/c2"]


def test_achieved_concurrency_is_that_of_the_time_in_which_there_was_work():
    full = [(0, 0, 1), (0, 0, 1), (1, 1, 2), (1, 1, 2), (2, 2, 9), (2, 2, 3)]
    assert watched(full, a_block())["concurrency_share"] == pytest.approx(1.0)
    half = [(0, 0, 1), (1, 1, 2), (2, 2, 3)]
    assert watched(half, a_block())["concurrency_share"] == pytest.approx(0.5)


def test_achieved_rate_is_the_schedule_against_what_was_sent():
    block = a_block(concurrency=None, offsets_s=np.array([0.0, 1.0, 2.0, 3.0]))
    late = [(0, 0, 9), (1, 1.5, 9), (2, 3, 9), (3, 4, 9)]
    numbers = watched(late, block)
    assert numbers["rate_share"] == pytest.approx(0.75)
    assert numbers["dispatch_delay_p99_s"] == pytest.approx(1.0)


def test_a_stream_that_was_held_back_is_told_from_a_steady_one():
    def seen(chunk_s, coalesced):
        watch = Watch()
        watch.enter()
        record = a_record(
            phase="sweep",
            intended_s=0.0,
            dispatched_s=0.0,
            end_s=2.0,
            chunk_s=chunk_s,
            coalesced_reads=coalesced,
        )
        watch.see(record, captured([], headers=[("via", "1.1 squid"), ("date", "x")]))
        return watch

    steady = seen(tuple(0.1 * i for i in range(1, 11)), 0)
    held = seen((1.9,) * 9 + (2.0,), 8)
    place = "baseline/sweep/c1"
    assert steady.numbers()[place]["late_first_share"] == 0.0
    assert held.numbers()[place]["late_first_share"] == 1.0
    assert held.notes() == ["baseline: answers passed through via: 1.1 squid"]


@pytest.mark.parametrize(
    ("server", "is_proxy"),
    [("llama.cpp", False), ("uvicorn", False), ("nginx/1.25", True), ("envoy", True)],
)
def test_an_engine_is_no_proxy_because_it_says_its_name(server, is_proxy):
    watch = Watch()
    watch.enter()
    record = a_record(phase="sweep", intended_s=0.0, dispatched_s=0.0, end_s=2.0)
    watch.see(record, captured([], headers=[("server", server)]))
    assert bool(watch.notes()) is is_proxy


def test_the_self_test_subtracts_the_truth_from_what_was_seen():
    capture = captured([(130, b"x"), (140, b"y")])
    capture.dispatched_ns = 10 * MS
    served = [Served("a", 12 * MS, 115 * MS, 200 * MS, 0)]
    error, answered, late = compare([("a", capture)], served, Shape(first_s=0.1))
    assert error.value == pytest.approx(0.120 - 0.103)
    assert error.ok is True
    assert answered.value == 1.0
    assert late.value == pytest.approx(0.003)


def test_a_request_that_the_mock_never_served_fails_the_self_test():
    checks = compare([("a", captured([]))], [], Shape())
    assert [c.ok for c in checks] == [None, False, None]


@pytest.mark.slow
def test_the_self_test_runs_against_the_real_mock():
    shape = Shape(first_s=0.01, gap_s=0.001, chunks=4)
    checks = run(self_test(4, seconds=0.0, shape=shape))
    by_name = {check.name: check for check in checks}
    assert by_name["self_test_answered_share"].value == 1.0
    assert by_name["self_test_first_error_p95_s"].value > 0


# -- in a run ------------------------------------------------------------------------


class CountingAdapter(PlainAdapter):
    metrics_path = "/metrics"

    def counters(self, exposition, at_s):
        name, value = exposition.split()
        return Counters(at_s=at_s, values={name: float(value)})


@pytest.mark.slow
def test_a_run_writes_stages_health_and_samples(tmp_path):
    def script(seen):
        if seen.method == "GET":
            return [_text(b"running 2")]
        return chat_stream()

    def _text(body):
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    plan = build_plan(some_cases(4), a_workload("latency", concurrency=(1,)))

    async def go():
        async with serving(script) as one, serving(script) as two:
            adapter = CountingAdapter()
            targets = {
                "baseline": a_target(one.url, adapter=adapter),
                "candidate": a_target(two.url, adapter=adapter),
            }
            folder = RunFolder.create(tmp_path / "r")
            folder.write_manifest(a_manifest())
            await conduct(plan, targets, folder)

    run(go())
    folder = RunFolder.open(tmp_path / "r")
    manifest = folder.read_manifest()
    stages = [(s.phase, s.complete) for s in manifest.stages]
    assert stages == [("quality", True), ("latency", True)]
    places = set(manifest.health.by_level)
    arms = ("baseline", "candidate", "control")
    assert places == {f"{a}/{p}/c1" for a in arms for p in ("quality", "latency")}
    rows = [
        (arm, name, value)
        for part in folder.telemetry()
        for arm, name, value in zip(
            part.text("arm"),
            part.text("name"),
            part.number("value").values,
            strict=True,
        )
    ]
    assert ("baseline", "running", 2.0) in rows
    assert ("candidate", "running", 2.0) in rows
    assert any(a == "client" and n == "process_rss_bytes" and v > 0 for a, n, v in rows)


def test_health_of_an_earlier_part_of_the_run_is_not_forgotten(tmp_path):
    folder = RunFolder.create(tmp_path / "r")
    bad = judged("candidate/sweep/c16", cpu_share=1.0)
    folder.write_manifest(a_manifest(health=bad))
    plan = build_plan(some_cases(2), a_workload())

    async def go():
        async with serving(chat_stream()) as server:
            targets = dict.fromkeys(("baseline", "candidate"), a_target(server.url))
            await conduct(plan, targets, folder)

    run(go())
    health = folder.read_manifest().health
    assert not health.valid
    assert "candidate/sweep/c16" in health.reasons[0]


def test_a_server_without_a_metrics_page_is_asked_once(tmp_path):
    async def go():
        script = json_reply({"error": "no such page"}, 404)
        async with serving(script) as server:
            target = a_target(server.url, adapter=CountingAdapter())
            folder = RunFolder.create(tmp_path / "r")
            sampler = Sampler({"baseline": target}, folder, Origin(0, 0.0))
            for _ in range(3):
                await sampler.sample("baseline")
            sampler.flush()
            return len(server.seen), folder

    asked, folder = run(go())
    assert asked == 1
    arms = {a for part in folder.telemetry() for a in part.text("arm")}
    assert arms == {"client"}


def test_a_server_that_is_gone_is_not_asked_for_ever(tmp_path):
    async def go():
        target = a_target("http://127.0.0.1:9/v1", adapter=CountingAdapter())
        folder = RunFolder.create(tmp_path / "r")
        sampler = Sampler({"baseline": target}, folder, Origin(0, 0.0))
        for _ in range(3):
            await sampler.sample("baseline")
        async with serving(
            [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nrunning 2"]
        ) as up:
            back = a_target(up.url, adapter=CountingAdapter())
            sampler.targets = {"baseline": back}
            await sampler.sample("baseline")
            return len(up.seen)

    assert run(go()) == 0


class FakeNvml:
    """As much of NVML as is read: one device, two processes, no power reading."""

    class NVMLError(Exception):
        pass

    class _Struct:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    def __init__(self, pid):
        self._pid = pid

    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetMemoryInfo(self, handle):
        return self._Struct(used=5_000)

    def nvmlDeviceGetPowerUsage(self, handle):
        raise self.NVMLError("not supported")

    def nvmlDeviceGetUtilizationRates(self, handle):
        return self._Struct(gpu=40)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        mine = self._Struct(pid=self._pid, usedGpuMemory=3_000)
        return [mine, self._Struct(pid=-1, usedGpuMemory=1_000)]


def test_device_memory_is_that_of_the_arms_own_process(tmp_path):
    async def go():
        target = a_target("http://127.0.0.1:9/v1", pid=os.getpid())
        folder = RunFolder.create(tmp_path / "r")
        sampler = Sampler(
            {"candidate": target}, folder, Origin(0, 0.0), FakeNvml(os.getpid())
        )
        await sampler.sample("candidate", thorough=True)
        sampler.flush()
        return folder

    (part,) = run(go()).telemetry()
    rows = dict(
        zip(
            zip(part.text("arm"), part.text("name"), strict=True),
            part.number("value").values,
            strict=True,
        )
    )
    assert rows["candidate", "device_memory_bytes"] == 3_000
    assert rows["candidate", "device0_memory_used_bytes"] == 5_000
    assert rows["candidate", "device0_busy_share"] == pytest.approx(0.4)
    assert ("candidate", "device0_power_w") not in rows
    assert rows["candidate", "process_rss_bytes"] > 1_000_000


def test_the_checks_survive_json():
    health = judged(cpu_share=1.0)
    assert msgspec.json.decode(msgspec.json.encode(health), type=type(health)) == health


def health_of(tmp_path, plan, script, *, progress=None):
    """What the client says of itself after a run against this script."""

    async def go():
        async with serving(script) as server:
            folder = RunFolder.create(tmp_path / "r")
            folder.write_manifest(a_manifest())
            target = {"baseline": a_target(server.url)}
            await conduct(plan, target, folder, progress=progress)
            return folder.read_manifest().health

    return run(go())


def one_level(**arrivals):
    workload = a_workload("sweep", load={"warmup_requests": 0}, **arrivals)
    return build_plan(some_cases(8), workload, arms=("baseline",), phases=("sweep",))


@pytest.mark.slow
def test_a_client_that_is_held_up_makes_the_run_invalid(tmp_path):
    def busy(_):
        ends = time.monotonic() + 0.2
        while time.monotonic() < ends:
            pass

    plan = one_level(concurrency=(2,), duration_s=1.5)
    script = chat_stream(["a", "b"], wait_s=0.002)
    health = health_of(tmp_path, plan, script, progress=busy)
    assert not health.valid
    assert any("event loop" in reason for reason in health.reasons)


@pytest.mark.slow
def test_a_proxy_that_holds_streams_back_is_named(tmp_path):
    words = [event(delta(f"w{i}")) for i in range(12)]
    held = [*stream_head(via="1.1 corp"), 0.02, b"".join(words)]
    script = [*held, event(delta(finish="stop")), *stream_end()]
    health = health_of(tmp_path, one_level(concurrency=(1,), requests=8), script)
    assert any("proxy that buffers" in note for note in health.notes)
    assert any("via: 1.1 corp" in note for note in health.notes)
