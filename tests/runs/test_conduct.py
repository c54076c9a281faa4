"""Carrying out a plan: nothing lost, nothing double, one arm at a time."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fakes.openai_server import (
    ABORT,
    chat_stream,
    json_reply,
    serving,
    serving_in_thread,
)
from record_cases import a_manifest
from run_cases import a_target, a_workload, run, some_cases
from run_driver import main as resume
from run_driver import the_plan

from routeproof.errors import MeasurementError, StoredRunError
from routeproof.records.store import RunFolder
from routeproof.runs.conduct import conduct
from routeproof.runs.plan import build_plan

TESTS = Path(__file__).parent.parent


def carry_out(path, plan, script, *, progress=None, open_again=False):
    """Run the plan against one server per arm; the counts and both servers."""

    async def go():
        async with serving(script) as one, serving(script) as two:
            targets = {"baseline": a_target(one.url), "candidate": a_target(two.url)}
            folder = RunFolder.open(path) if open_again else RunFolder.create(path)
            done = await conduct(plan, targets, folder, progress=progress)
            return done, one, two

    return run(go())


def column(path, name):
    return [v for part in RunFolder.open(path).parts() for v in part.text(name)]


def numbers(path, name):
    found = [part.number(name).values for part in RunFolder.open(path).parts()]
    return np.concatenate(found)


def planned_ids(plan):
    return [p.request_id for s in plan.stages for b in s.blocks for p in b.requests()]


@pytest.mark.slow
def test_every_planned_request_gets_one_record(tmp_path):
    plan = build_plan(some_cases(10), a_workload(concurrency=(1, 2)))
    done, one, two = carry_out(tmp_path / "r", plan, chat_stream())
    planned = planned_ids(plan)
    assert Counter(column(tmp_path / "r", "request_id")) == Counter(planned)
    assert len(set(planned)) == len(planned) == done.sent == plan.planned
    assert len(one.seen) + len(two.seen) == len(planned)
    assert set(column(tmp_path / "r", "outcome")) == {"completed"}
    again, *_ = carry_out(tmp_path / "r", plan, chat_stream(), open_again=True)
    assert (again.sent, again.skipped) == (0, len(planned))


@pytest.mark.slow
def test_only_one_arm_is_busy_at_a_time(tmp_path):
    plan = build_plan(some_cases(24), a_workload(concurrency=(4,)))
    carry_out(tmp_path / "r", plan, chat_stream(wait_s=0.001))
    start, end = (numbers(tmp_path / "r", n) for n in ("dispatched_s", "end_s"))
    block = numbers(tmp_path / "r", "block")
    order = sorted(set(block))
    spans = [(start[block == b].min(), end[block == b].max()) for b in order]
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))


def test_a_closed_level_keeps_to_its_concurrency(tmp_path):
    plan = build_plan(some_cases(16), a_workload(concurrency=(4,)))
    _, one, two = carry_out(tmp_path / "r", plan, chat_stream(wait_s=0.002))
    assert one.most_in_flight == two.most_in_flight == 4


@pytest.mark.slow
def test_an_open_level_sends_when_due_whatever_the_server_does(tmp_path):
    workload = a_workload(
        "sweep", load={"warmup_requests": 0}, request_rate=(200.0,), requests=40
    )
    plan = build_plan(some_cases(5), workload, phases=("sweep",))
    gate = asyncio.Event()
    arrived = []

    def script(seen):
        # Nobody is answered before everyone has arrived: a closed loop would hang.
        arrived.append(seen)
        if len(arrived) % 40 == 0:
            gate.set()
        return [gate, *chat_stream()]

    carry_out(tmp_path / "r", plan, script)
    path = tmp_path / "r"
    assert Counter(column(path, "outcome")) == {"completed": 120}
    intended, dispatched = numbers(path, "intended_s"), numbers(path, "dispatched_s")
    assert (dispatched >= intended).all()
    for arm in ("baseline", "candidate", "control"):
        mine = np.array(column(path, "arm")) == arm
        wanted = plan.stages[0].blocks[0].offsets_s
        gaps = np.sort(intended[mine]) - intended[mine].min()
        np.testing.assert_allclose(gaps, wanted - wanted[0], atol=2e-6)


def test_a_timed_block_starts_nothing_after_its_time(tmp_path):
    workload = a_workload(
        "sweep", load={"warmup_requests": 0}, concurrency=(2,), duration_s=0.05
    )
    plan = build_plan(
        some_cases(3), workload, phases=("sweep",), arms=("baseline", "candidate")
    )
    carry_out(tmp_path / "r", plan, chat_stream())
    ids = column(tmp_path / "r", "request_id")
    assert len(ids) == len(set(ids)) > 4
    names = [column(tmp_path / "r", name) for name in ("arm", "case_id")]
    keys = zip(*names, numbers(tmp_path / "r", "trial"), strict=True)
    assert max(Counter(keys).values()) == 1


def test_the_control_arm_goes_to_the_baseline(tmp_path):
    plan = build_plan(some_cases(3), a_workload(load={"warmup_requests": 0}))
    _, one, two = carry_out(tmp_path / "r", plan, chat_stream())
    assert (len(one.seen), len(two.seen)) == (6, 3)
    arms = Counter(column(tmp_path / "r", "arm"))
    assert arms == {"baseline": 3, "candidate": 3, "control": 3}


@pytest.mark.slow
def test_failures_are_records_and_the_run_goes_on(tmp_path):
    def script(seen):
        kinds = [chat_stream(), [ABORT], json_reply({"error": "busy"}, 503)]
        return kinds[seen.number % 3]

    plan = build_plan(some_cases(30), a_workload())
    done, *_ = carry_out(tmp_path / "r", plan, script)
    outcomes = Counter(column(tmp_path / "r", "outcome"))
    assert set(outcomes) == {"completed", "connection_error", "http_error"}
    assert outcomes.total() == plan.planned
    assert done.failed == outcomes.total() - outcomes["completed"]


def test_too_many_failures_stop_the_run_and_keep_its_records(tmp_path):
    workload = a_workload(load={"max_failure_share": 0.5})
    plan = build_plan(some_cases(60), workload)
    with pytest.raises(MeasurementError, match="key expired"):
        carry_out(tmp_path / "r", plan, json_reply({"error": "key expired"}, 401))
    assert 20 <= len(column(tmp_path / "r", "outcome")) < plan.planned


def test_a_folder_that_cannot_be_written_stops_the_run(tmp_path):
    plan = build_plan(some_cases(4), a_workload())

    def script(seen):
        records = tmp_path / "r" / "records"
        if records.exists():
            records.rename(tmp_path / "gone")
        return chat_stream()

    with pytest.raises(StoredRunError, match="cannot write"):
        carry_out(tmp_path / "r", plan, script)


@pytest.mark.slow
def test_a_server_that_cannot_be_asked_for_usage_is_not_asked_by_any_arm(tmp_path):
    path = tmp_path / "r"

    def fussy(seen):
        if "stream_options" in seen.json:
            return json_reply({"error": "unknown field stream_options"}, 400)
        return chat_stream(with_usage=False)

    plan = build_plan(some_cases(6), a_workload(load={"warmup_requests": 2}))

    async def go():
        async with serving(chat_stream()) as one, serving(fussy) as two:
            targets = {"baseline": a_target(one.url), "candidate": a_target(two.url)}
            folder = RunFolder.create(path)
            folder.write_manifest(a_manifest())
            await conduct(plan, targets, folder)
            return one, two

    one, _ = run(go())
    phases = column(path, "phase")
    ends = Counter(zip(phases, column(path, "outcome"), strict=True))
    assert set(ends) == {
        ("warmup", "completed"),
        ("warmup", "http_error"),
        ("quality", "completed"),
    }
    measured = [s for s in one.seen if "/quality/" in s.request_id]
    assert measured and all("stream_options" not in s.json for s in measured)
    notes = RunFolder.open(path).read_manifest().health.notes
    assert any("refuses `stream_options`" in note for note in notes)
    longer = build_plan(some_cases(8), a_workload(load={"warmup_requests": 2}))
    _, resumed, _ = carry_out(path, longer, fussy, open_again=True)
    assert resumed.seen
    assert all("stream_options" not in s.json for s in resumed.seen)


def test_progress_counts_up_to_the_plan(tmp_path):
    told = []
    plan = build_plan(some_cases(6), a_workload())
    carry_out(tmp_path / "r", plan, chat_stream(), progress=told.append)
    assert told[-1].done == told[-1].planned == plan.stages[-1].planned
    assert [t.done for t in told] == sorted(t.done for t in told)
    assert told[-1].left_s == 0.0


def test_an_interrupt_keeps_what_has_finished_and_resume_does_the_rest(tmp_path):
    plan = build_plan(some_cases(20), a_workload())
    path = tmp_path / "r"

    async def interrupted():
        async with serving(chat_stream(wait_s=0.001)) as server:
            targets = {a: a_target(server.url) for a in ("baseline", "candidate")}
            running = asyncio.ensure_future(
                conduct(plan, targets, RunFolder.create(path))
            )
            while len(server.seen) < 20 and not running.done():
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return running.cancelled(), server

    was_cancelled, server = run(interrupted())
    assert was_cancelled
    kept = column(path, "request_id")
    assert len(server.seen) - 1 <= len(kept) <= len(server.seen)
    assert set(column(path, "outcome")) == {"completed"}
    done, one, two = carry_out(path, plan, chat_stream(), open_again=True)
    assert done.skipped == len(kept)
    assert Counter(column(path, "request_id")) == Counter(planned_ids(plan))
    sent_again = {s.request_id for s in (*one.seen, *two.seen)}
    assert not sent_again & set(kept)


def test_a_resumed_run_goes_on_on_the_same_time_line(tmp_path):
    path = tmp_path / "r"
    short = build_plan(some_cases(4), a_workload(), arms=("baseline",))
    longer = build_plan(some_cases(8), a_workload(), arms=("baseline", "candidate"))
    carry_out(path, short, chat_stream())
    last_s = numbers(path, "end_s").max()
    carry_out(path, longer, chat_stream(), open_again=True)
    later = [p.number("intended_s").values for p in RunFolder.open(path).parts()][1:]
    assert np.concatenate(later).min() > last_s


@pytest.mark.slow
def test_kill_9_in_the_middle_and_resume_give_the_complete_run(tmp_path):
    path = tmp_path / "r"
    enough = threading.Event()

    def has_part():
        return any((path / "records").glob("part-*"))

    def script(seen):
        steps = chat_stream(wait_s=0.002)
        if has_part() and seen.number > 100:
            enough.set()
        return steps

    plan = the_plan()
    with serving_in_thread(script) as one, serving_in_thread(script) as two:
        command = [
            sys.executable,
            str(TESTS / "run_driver.py"),
            str(path),
            one.url,
            two.url,
        ]
        process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": str(TESTS)}
        )
        assert enough.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = [s.request_id for s in (*one.seen, *two.seen)]
        kept = column(path, "request_id")
        assert 0 < len(kept) < plan.planned
        done = resume(str(path), one.url, two.url)
        after = [s.request_id for s in (*one.seen, *two.seen)][:]
    assert Counter(column(path, "request_id")) == Counter(planned_ids(plan))
    assert done.skipped == len(kept)
    again = Counter(after)
    assert all(again[i] == 1 for i in kept)
    assert set(before) | set(after) == set(planned_ids(plan))
