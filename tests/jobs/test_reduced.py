"""A large run reduced by two processes is the run reduced by one."""

import msgspec
import numpy as np
import pytest
from builders import Plan, a_case, a_run

from routeproof.errors import StoredRunError
from routeproof.jobs.gathering.reduced import Split, reduced_parts
from routeproof.jobs.judge import judge
from routeproof.records.store import RunFolder


@pytest.fixture
def folder(tmp_path):
    """A run in three parts."""
    cases = tuple(a_case(i) for i in range(24))
    path = a_run(tmp_path / "run", plan=Plan(cases=cases))
    for name in ("a", "b"):
        other = a_run(tmp_path / name, plan=Plan(cases=cases))
        number = {"a": 2, "b": 3}[name]
        part = next((other / "records").iterdir())
        part.rename(path / "records" / f"part-000-{number:06d}.parquet")
    return RunFolder.open(path)


@pytest.mark.slow
def test_two_processes_give_what_one_gives(folder):
    alone = list(reduced_parts(folder, Split(worth_bytes=10**12)))
    both = list(reduced_parts(folder, Split(worth_bytes=0, processors=2)))
    assert len(alone) == len(both) == 3
    for one, other in zip(alone, both, strict=True):
        assert one.requests.n == other.requests.n
        for name, column in one.requests.numbers.items():
            seen = other.requests.numbers[name]
            assert np.array_equal(column.known, seen.known)
            assert np.array_equal(column.values, seen.values)
        assert [stage for stage, _ in one.gaps] == [stage for stage, _ in other.gaps]


@pytest.mark.slow
def test_a_broken_part_is_said_whoever_finds_it(folder):
    last = folder.part_paths()[-1]
    last.write_bytes(last.read_bytes()[:100])
    with pytest.raises(StoredRunError, match=last.name):
        list(reduced_parts(folder, Split(worth_bytes=0, processors=2)))


def test_the_judgement_is_the_same_again(folder):
    judge(folder.path)
    first = (folder.path / "judgement.json").read_bytes()
    judge(folder.path)
    assert (folder.path / "judgement.json").read_bytes() == first
    assert msgspec.json.decode(first)["provenance"]["requests"] == 3 * 144
