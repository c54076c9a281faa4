"""Several load processes: one plan, one folder, nothing lost, nothing double."""

import asyncio
import os
import signal
from collections import Counter
from dataclasses import replace

import msgspec
import numpy as np
import psutil
import pytest
from fakes.openai_server import chat_stream, json_reply, serving
from record_cases import a_manifest
from run_cases import a_target, a_workload, run, some_cases

from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.errors import ConfigError, MeasurementError, StoredRunError
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Block
from routeproof.runs.conduct import conduct
from routeproof.runs.job import read_job, write_job
from routeproof.runs.plan import build_plan
from routeproof.runs.progress import Joined, Progress
from routeproof.runs.shard import FolderBarrier, Shard, every, mark_dead
from routeproof.runs.sharded import conduct_sharded
from routeproof.runs.worker import carry_out as work_alone
from routeproof.runs.worker import main as worker


def planned_ids(plan):
    return [p.request_id for s in plan.stages for b in s.blocks for p in b.requests()]


def column(folder, name):
    return [v for part in folder.parts() for v in part.text(name)]


def numbers(folder, name):
    return np.concatenate([part.number(name).values for part in folder.parts()])


@pytest.mark.parametrize("concurrency", [1, 2, 3, 5, 16, None])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_shares_of_a_block_make_the_whole_block(concurrency, count):
    block = Block(
        number=1,
        group=1,
        arm="baseline",
        phase="sweep",
        level="x",
        n_cases=7,
        count=23,
        concurrency=concurrency,
    )
    sent, slots = Counter(), 0
    for index in range(count):
        share = Shard(index, count).share(block)
        if share is not None:
            own, offset, step = share
            sent.update(p.request_id for p in every(block.requests(), offset, step))
            slots += own.concurrency or 0
    assert sent == Counter(p.request_id for p in block.requests())
    assert slots == (concurrency or 0)


def test_shards_wait_for_each_other_and_begin_together(tmp_path):
    async def go():
        barriers = [FolderBarrier(tmp_path, i, 3, 30.0) for i in range(3)]
        first = asyncio.ensure_future(barriers[0].meet(5))
        second = asyncio.ensure_future(barriers[1].meet(5))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not first.done() and not second.done()
        return await asyncio.gather(first, second, barriers[2].meet(5))

    assert len(set(run(go()))) == 1


def test_a_dead_shard_is_not_waited_for(tmp_path):
    async def go():
        mark_dead(tmp_path, 1, "signal 9")
        return await FolderBarrier(tmp_path, 0, 2, 30.0).meet(1)

    assert run(go()) > 0


def test_a_shard_that_does_not_come_is_given_up(tmp_path):
    assert run(FolderBarrier(tmp_path, 0, 2, 0.0).meet(1)) > 0
    assert (tmp_path / "dead.1").exists()


def test_a_job_brings_the_same_plan_and_no_secrets_on_disk(tmp_path):
    folder = RunFolder.create(tmp_path / "r")
    plan = build_plan(some_cases(9), a_workload(concurrency=(3,)), seed=3)
    endpoint = Endpoint("http://h/v1", {"X-Api-Key": "s1", "X-Team": "t"}, api_key="s2")
    target = a_target(
        "http://h/v1",
        endpoint=endpoint,
        adapter=adapter("openai"),
        adapter_fields={"timings": True},
    )
    secrets = write_job(folder, plan, {"baseline": target}, 5.0)
    again, targets, zero = read_job(folder, secrets)
    assert planned_ids(again) == planned_ids(plan)
    assert targets["baseline"] == target
    assert zero == 5.0
    stored = (folder.shards_path / "job.json").read_text()
    assert "s1" not in stored and "s2" not in stored and "X-Team" in stored


@pytest.mark.parametrize("shard", ["2/2", "x/2", "1", "-1/2"])
def test_a_worker_refuses_a_shard_that_cannot_be(tmp_path, shard):
    with pytest.raises(ConfigError, match="no shard"):
        work_alone(tmp_path, shard)


def test_a_worker_without_a_job_or_with_another_seed_says_so(tmp_path, capsys):
    assert worker([str(tmp_path / "none"), "0/1"]) == StoredRunError.exit_code
    folder = RunFolder.create(tmp_path / "r")
    assert worker([str(folder.path), "0/1"]) == StoredRunError.exit_code
    plan = build_plan(some_cases(2), a_workload(), seed=3)
    target = a_target("http://h/v1", adapter=adapter("openai"))
    write_job(folder, plan, {"baseline": target}, 0.0)
    with pytest.raises(ConfigError, match="seed 3, not 4"):
        work_alone(folder.path, "0/1", seed=4)


def carry_out(folder, plan, script, shards, during=None):
    async def go():
        async with serving(script) as server:
            target = a_target(server.url, adapter=adapter("openai"))
            targets = dict.fromkeys(("baseline", "candidate"), target)
            running = asyncio.ensure_future(
                conduct_sharded(plan, targets, folder, shards=shards)
            )
            if during is not None:
                await during(server, running)
            return await running, server

    return run(go())


def sleepless(script):
    def played(seen):
        if seen.method == "GET":
            return json_reply({"error": "no"}, 404)
        return script(seen) if callable(script) else script

    return played


def test_what_several_processes_tell_is_shown_as_one():
    shown = []
    joined = Joined(2, shown.append)
    one = Progress("sweep", "c4", "baseline", 1, 10, 0, 8.0)
    other = replace(one, done=3, failed=2, left_s=6.0)
    joined.hear(0, one)
    joined.hear(1, other)
    joined.hear(1, other)
    joined.hear(0, replace(one, level="c8", done=2))
    assert [(p.level, p.done, p.failed, p.left_s) for p in shown] == [
        ("c4", 1, 0, 4.0),
        ("c4", 4, 2, 4.0),
        ("c8", 2, 2, 4.0),
    ]


@pytest.mark.slow
def test_two_processes_send_one_plan(tmp_path):
    folder = RunFolder.create(tmp_path / "r")
    folder.write_manifest(a_manifest())
    plan = build_plan(some_cases(12), a_workload(concurrency=(1, 6)))
    done, _ = carry_out(folder, plan, sleepless(chat_stream(wait_s=0.001)), 2)
    assert done.sent == plan.planned
    assert Counter(column(folder, "request_id")) == Counter(planned_ids(plan))
    assert set(numbers(folder, "shard")) == {0.0, 1.0}
    block, start, end = (numbers(folder, n) for n in ("block", "dispatched_s", "end_s"))
    spans = [
        (start[block == b].min(), end[block == b].max()) for b in sorted(set(block))
    ]
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    manifest = folder.read_manifest()
    assert [s.complete for s in manifest.stages] == [True, True]
    assert "baseline/quality/c6" in manifest.health.by_level


@pytest.mark.slow
def test_a_process_that_dies_marks_the_run_and_resume_completes_it(tmp_path):
    folder = RunFolder.create(tmp_path / "r")
    folder.write_manifest(a_manifest())
    plan = build_plan(some_cases(40), a_workload(concurrency=(4,)))

    async def kill_one(server, running):
        while len(server.seen) < 40 and not running.done():
            await asyncio.sleep(0)
        for child in psutil.Process().children():
            if "1/2" in child.cmdline():
                os.kill(child.pid, signal.SIGKILL)

    script = sleepless(chat_stream(wait_s=0.002))
    done, _ = carry_out(folder, plan, script, 2, during=kill_one)
    assert 0 < done.sent < plan.planned
    manifest = folder.read_manifest()
    assert not manifest.health.valid
    (note,) = (n for n in manifest.health.notes if "shard 1 died" in n)
    (stage,) = (s for s in manifest.stages if s.level == "c4")
    assert f"quality/c4 ({note.split()[4]}" in note
    assert f"to {stage.ended_s:.1f} s)" in note
    assert any("shard_1_alive" in reason for reason in manifest.health.reasons)
    again, _ = carry_out(folder, plan, script, 2)
    assert again.sent == plan.planned - done.sent
    assert Counter(column(folder, "request_id")) == Counter(planned_ids(plan))


@pytest.mark.slow
def test_an_error_of_a_process_is_the_error_of_the_run(tmp_path):
    folder = RunFolder.create(tmp_path / "r")
    workload = a_workload(load={"max_failure_share": 0.2}, concurrency=(2,))
    plan = build_plan(some_cases(60), workload)
    script = sleepless(json_reply({"error": "key expired"}, 401))
    with pytest.raises(MeasurementError, match="key expired"):
        carry_out(folder, plan, script, 2)
    assert column(folder, "outcome")


def test_a_single_process_may_carry_out_a_job_too(tmp_path):
    folder = RunFolder.create(tmp_path / "r")
    plan = build_plan(some_cases(6), a_workload())

    async def go():
        async with serving(chat_stream()) as server:
            target = a_target(server.url)
            targets = dict.fromkeys(("baseline", "candidate"), target)
            for index in range(2):
                part = RunFolder.open(folder.path, shard=index)
                await conduct(plan, targets, part, shard=Shard(index, 2))

    run(go())
    assert Counter(column(folder, "request_id")) == Counter(planned_ids(plan))
    health = msgspec.json.decode(folder.shard_path(0).read_bytes())
    assert "baseline/quality/c1" in health["by_level"]
