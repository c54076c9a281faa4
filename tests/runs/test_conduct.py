"""Carrying out a plan: nothing lost, nothing double, one arm at a time."""

from collections import Counter

from fakes.openai_server import chat_stream, serving
from run_cases import a_target, a_workload, run, some_cases

from routeproof.records.store import RunFolder
from routeproof.runs.conduct import conduct
from routeproof.runs.plan import build_plan


def carried_out(tmp_path, plan, script, *, progress=None, again=False):
    async def go():
        async with serving(script) as one, serving(script) as two:
            targets = {"baseline": a_target(one.url), "candidate": a_target(two.url)}
            folder = RunFolder.create(tmp_path / "run")
            done = await conduct(plan, targets, folder, progress=progress)
            if again:
                again_done = await conduct(plan, targets, folder)
                assert again_done.sent == 0
            return done, one, two

    return run(go())


def stored(tmp_path):
    return list(RunFolder.open(tmp_path / "run").parts())


def test_every_planned_request_gets_one_record(tmp_path):
    plan = build_plan(some_cases(10), a_workload(concurrency=(1, 2)))
    done, one, two = carried_out(tmp_path, plan, chat_stream(), again=True)
    planned = [
        p.request_id for s in plan.stages for b in s.blocks for p in b.requests()
    ]
    ids = [i for part in stored(tmp_path) for i in part.text("request_id")]
    assert Counter(ids) == Counter(planned)
    assert len(set(planned)) == len(planned) == done.sent == plan.planned
    assert len(one.seen) + len(two.seen) == len(planned)
    outcomes = {o for part in stored(tmp_path) for o in part.text("outcome")}
    assert outcomes == {"completed"}
