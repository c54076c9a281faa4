"""Carry out a plan: send its blocks one after the other and keep what comes back.

Only one arm is busy at a time. Records reach the disk every few seconds; what stops
the run (Ctrl-C, a full disk, too many failures) keeps every finished request, and the
same call with the same plan and folder sends only what is missing.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from routeproof.records.manifest import Threshold
from routeproof.records.record import Arm
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import CONTROL, Plan
from routeproof.runs.progress import Conducted, Progress
from routeproof.runs.request import Target
from routeproof.runs.session import Session
from routeproof.runs.shard import ALONE, Shard
from routeproof.runs.until import Until

__all__ = ["Conducted", "Progress", "conduct"]

_SWITCH_INTERVAL_S = 0.0005


async def conduct(
    plan: Plan,
    targets: Mapping[Arm, Target],
    folder: RunFolder,
    *,
    progress: Callable[[Progress], None] | None = None,
    before: Sequence[Threshold] = (),
    shard: Shard = ALONE,
    until: Until | None = None,
) -> Conducted:
    """Send every request of the plan that has no record yet.

    Args:
        plan: From ``build_plan``.
        targets: The route of each arm; ``control`` is the baseline's unless given.
        folder: Where records go; what is in it already is not sent again.
        progress: Called a few times a second.
        before: Checks of ``runs.selftest.self_test``, to be kept with the others.
        shard: This process's part of the load, when several send together.
        until: Decides between blocks what of the plan is still wanted.

    Returns:
        Counts. Everything else is in the folder; stages and the client's health are
        in its manifest, if it has one.

    Raises:
        MeasurementError: More failures than ``workload.load.max_failure_share``.
        StoredRunError: The folder cannot be written or read.
        asyncio.CancelledError: Interrupted; what had finished is in the folder.
    """
    routes = dict(targets)
    if CONTROL in plan.arms and CONTROL not in routes:
        routes[CONTROL] = routes["baseline"]
    session = Session(
        plan,
        routes,
        folder,
        progress=progress,
        before=before,
        shard=shard,
        until=until,
    )
    with _quiet():
        try:
            for stage in plan.stages:
                session.enter(stage)
                for block in stage.blocks:
                    await session.block(block)
                    if until is not None and until.is_due(block):
                        folder.flush()
                        await until.look()
                session.leave(stage)
        finally:
            await session.close()
    return session.tally.result()


@contextmanager
def _quiet() -> Iterator[None]:
    """No garbage collection on the clock, and short turns for the flushing thread.

    What exists already is frozen, so that the collections between blocks are short;
    it is not searched for garbage first, which would take longer than they do.
    """
    interval_s = sys.getswitchinterval()
    was_enabled = gc.isenabled()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)
        gc.unfreeze()
        if was_enabled:
            gc.enable()
