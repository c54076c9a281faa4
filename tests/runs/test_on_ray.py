"""The same run on a Ray cluster of two nodes, both on this machine."""

from collections import Counter

import pytest
from fakes.openai_server import chat_stream, json_reply, serving_in_thread
from record_cases import a_manifest
from run_cases import a_target, a_workload, run, some_cases

from routeproof.engines.adapters import adapter
from routeproof.errors import ConfigError
from routeproof.records.store import RunFolder
from routeproof.runs.on_ray import Meeting, conduct_on_ray
from routeproof.runs.plan import build_plan
from routeproof.runs.progress import Progress


def some_progress(**changes):
    given = {"phase": "sweep", "level": "c4", "arm": "baseline", "done": 0}
    given |= {"planned": 12, "failed": 0, "left_s": None}
    return Progress(**{**given, **changes})


def script(seen):
    if seen.method == "GET":
        return json_reply({"error": "no"}, 404)
    return chat_stream()


def test_a_meeting_waits_for_all_and_forgets_the_dead():
    import asyncio

    async def go():
        meeting = Meeting(3)
        first = asyncio.ensure_future(meeting.meet(1, 0))
        second = asyncio.ensure_future(meeting.meet(1, 1))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not first.done()
        await meeting.leave(2, "lost its machine")
        starts = await asyncio.gather(first, second)
        return starts, await meeting.gone()

    starts, gone = run(go())
    assert len(set(starts)) == 1
    assert gone[2][1] == "lost its machine"


def test_a_meeting_passes_on_how_far_each_shard_is():
    async def go():
        meeting = Meeting(2)
        await meeting.tell(0, some_progress(done=1))
        await meeting.tell(1, some_progress(done=4))
        await meeting.tell(0, some_progress(done=2))
        return await meeting.told()

    assert {i: told.done for i, told in run(go()).items()} == {0: 2, 1: 4}


def test_without_ray_the_way_to_it_is_told(tmp_path):
    try:
        import ray  # noqa: F401
    except ImportError:
        folder = RunFolder.create(tmp_path / "r")
        plan = build_plan(some_cases(1), a_workload())
        with pytest.raises(ConfigError, match="Ray is not installed"):
            run(conduct_on_ray(plan, {}, folder, shards=1))
    else:
        pytest.skip("Ray is installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_two_nodes_send_one_plan(tmp_path):
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    folder = RunFolder.create(tmp_path / "r")
    folder.write_manifest(a_manifest())
    plan = build_plan(some_cases(12), a_workload(concurrency=(1, 4)))
    shown = []
    try:
        with serving_in_thread(script) as server:
            target = a_target(server.url, adapter=adapter("openai"))
            targets = dict.fromkeys(("baseline", "candidate"), target)
            going = conduct_on_ray(
                plan,
                targets,
                folder,
                shards=2,
                address=cluster.address,
                progress=shown.append,
            )
            done = run(going)
    finally:
        ray.shutdown()
        cluster.shutdown()
    last = {told.level: told for told in shown}["c4"]
    assert last.done == last.planned == plan.stages[-1].planned
    planned = [
        p.request_id for s in plan.stages for b in s.blocks for p in b.requests()
    ]
    ids = [i for part in folder.parts() for i in part.text("request_id")]
    assert Counter(ids) == Counter(planned)
    assert (done.sent, done.failed) == (len(planned), 0)
    shards = {float(s) for part in folder.parts() for s in part.number("shard").values}
    assert shards == {0.0, 1.0}
    manifest = folder.read_manifest()
    assert all(stage.complete for stage in manifest.stages)
    assert "baseline/quality/c4" in manifest.health.by_level
