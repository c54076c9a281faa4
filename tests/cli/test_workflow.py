"""The repository's own workflow calls commands of its Makefile."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_every_step_is_a_target_of_the_makefile():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "run" in step:
                make, target = step["run"].split()
                assert make == "make" and target in targets
