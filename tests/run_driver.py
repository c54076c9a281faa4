"""A run in a process of its own, to be killed: folder, baseline URL, candidate URL."""

import sys
from pathlib import Path

from run_cases import a_target, a_workload, run, some_cases

from routeproof.records.store import RunFolder
from routeproof.runs.conduct import conduct
from routeproof.runs.plan import build_plan


def the_plan():
    return build_plan(some_cases(60), a_workload(concurrency=(1, 4)))


def main(folder, baseline, candidate):
    path = Path(folder)
    exists = path.exists()
    opened = RunFolder.open(path) if exists else RunFolder.create(path)
    targets = {"baseline": a_target(baseline), "candidate": a_target(candidate)}
    return run(conduct(the_plan(), targets, opened))


if __name__ == "__main__":
    main(*sys.argv[1:])
