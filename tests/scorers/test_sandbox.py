"""The sandbox, tried. Everything hostile runs in a throw-away namespace."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeproof.errors import ConfigError
from routeproof.scorers.sandbox import seccomp, syscall_numbers, wire
from routeproof.scorers.sandbox.pool import Job, Pool
from routeproof.scorers.sandbox.probes import CHEATS, PROBES
from routeproof.scorers.sandbox.self_test import choose_tier, self_test
from routeproof.scorers.sandbox.survey import can_throw_away, possible_tiers
from routeproof.scorers.sandbox.tiers import Limits

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the sandbox is Linux's"
)
TESTS = "def check(candidate):\n    assert candidate(2) == 4\n"
ADD = "def f(x):\n    return x + x\n"


def strong(tier):
    if tier not in possible_tiers():
        pytest.skip(f"this machine cannot do {tier}")
    return tier


@pytest.fixture(scope="module")
def pool():
    if not possible_tiers()[:1] or possible_tiers()[0] not in ("T3", "T2"):
        pytest.skip("this machine has no strong tier")
    with Pool(possible_tiers()[0], workers=2, is_apart=can_throw_away()) as opened:
        yield opened


def outcome(pool, program, tests=TESTS, *, name="f", context="", wall_s=20.0):
    limits = Limits(wall_s=wall_s)
    return pool.run([Job(program, tests, (name,), context, limits)])[0]


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["T3", "T2"])
def test_a_strong_tier_stops_every_probe_and_every_cheat(tier):
    if not can_throw_away():
        pytest.skip("no throw-away namespace here to try hostile programs in")
    found = self_test(strong(tier))
    assert found.open == {}
    assert set(found.held) == {*PROBES, *CHEATS}
    assert found.is_holding and not found.skipped


@pytest.mark.slow
def test_the_probes_can_get_through_where_nothing_holds_them():
    if not can_throw_away():
        pytest.skip("no throw-away namespace here to try hostile programs in")
    weak = self_test(strong("T0"))
    assert {
        "reading secrets",
        "writing outside",
        "TCP",
        "UDP",
        "signals",
        "running other programs",
        "fork bomb",
        "nested namespaces",
    } <= set(weak.open)
    assert set(CHEATS) <= set(weak.held), "comparison does not depend on the tier"
    assert not weak.is_holding


@pytest.mark.slow
def test_a_weak_tier_is_taken_only_when_named():
    assert choose_tier().tier in ("T3", "T2")
    with pytest.raises(ConfigError, match="not possible here"):
        choose_tier("T9")


@pytest.mark.slow
def test_outcomes(pool):
    assert outcome(pool, ADD).outcome == "passed"
    assert outcome(pool, "def f(x):\n    return 5").outcome == "failed"
    assert outcome(pool, "def f(x):\n    return None").outcome == "failed"
    assert outcome(pool, "def f(x):\n    raise ValueError('no')").outcome == "raised"
    assert outcome(pool, "def f(x:").outcome == "load_failed"
    assert outcome(pool, "x = 1").outcome == "load_failed"
    assert outcome(pool, "import os\ndef f(x):\n    os._exit(0)").outcome == "died"
    assert outcome(pool, "import sys\ndef f(x):\n    sys.exit(0)").outcome == "raised"
    assert outcome(pool, "def f(x):\n    return object()").outcome == "failed"
    assert outcome(pool, ADD, "def check(c):\n    pass").outcome == "test_error"
    assert outcome(pool, ADD, "def check(c:").outcome == "test_error"
    assert outcome(pool, ADD, context="1 / 0").outcome == "test_error"


@pytest.mark.slow
def test_a_program_that_loops_or_waits_runs_out_of_time(pool):
    for body in (
        "while True: pass",
        "import time; time.sleep(3600)",
        "import signal; signal.pause()",
    ):
        program = f"def f(x):\n    {body}"
        assert outcome(pool, program, wall_s=0.5).outcome == "timed_out"
    assert outcome(pool, ADD).outcome == "passed", "the cell still works"


@pytest.mark.slow
def test_a_program_may_import_compute_thread_and_print(pool):
    program = """
import asyncio, collections, dataclasses, decimal, email, math, re, sqlite3, threading
import unittest, xml.etree.ElementTree, zoneinfo
@dataclasses.dataclass
class P:
    x: int
async def half(x):
    await asyncio.sleep(0)
    return x
def f(x):
    print("noise" * 10_000)
    got = []
    thread = threading.Thread(target=lambda: got.append(P(x).x))
    thread.start()
    thread.join()
    return got[0] + asyncio.run(half(x))
"""
    ran = outcome(pool, program)
    assert ran.outcome == "passed", ran


@pytest.mark.slow
def test_a_program_cannot_find_its_tests_in_memory(pool):
    program = """
import gc, sys
def f(x):
    seen, frame = [], sys._getframe()
    while frame is not None:
        seen += [repr(frame.f_locals), repr(frame.f_globals)]
        frame = frame.f_back
    seen += [repr(one) for one in gc.get_objects() if isinstance(one, dict)]
    return 0 if any("assert candidate" + "(2)" in one for one in seen) else x + x
"""
    assert outcome(pool, program).outcome == "passed"


@pytest.mark.slow
def test_an_expected_exception_does_not_colour_a_later_failure(pool):
    tests = """
def check(candidate):
    try:
        candidate(-1)
    except ValueError:
        pass
    assert candidate(2) == 5
"""
    program = "def f(x):\n    if x < 0: raise ValueError\n    return x"
    assert outcome(pool, program, tests).outcome == "failed"


@pytest.mark.slow
def test_memory_is_limited_and_said_so(pool):
    ran = outcome(pool, "def f(x):\n    return len([0] * (1 << 40))")
    assert (ran.outcome, "MemoryError" in ran.detail) == ("raised", True)
    ran = outcome(pool, "def f(x):\n    s = 'x'\n    while True: s += s")
    assert ran.outcome in ("raised", "died")


@pytest.mark.slow
def test_exceptions_and_iterators_cross(pool):
    tests = """
def check(candidate):
    try:
        candidate(-1)
    except ValueError as error:
        assert str(error) == "no"
    else:
        raise AssertionError
    assert list(candidate(2)) == [0, 1]
"""
    program = """
def f(x):
    if x < 0:
        raise ValueError("no")
    return (i for i in range(x))
"""
    assert outcome(pool, program, tests).outcome == "passed"


@pytest.mark.slow
def test_endless_and_giant_values_do_not_hang(pool):
    for value in ("iter(int, 1)", "map(str, iter(int, 1))"):
        assert outcome(pool, f"def f(x):\n    return {value}").outcome != "passed"
    nested = "def f(x):\n    v = []\n    for _ in range(100000): v = [v]\n    return v"
    assert outcome(pool, nested).outcome != "passed"
    loop = "def f(x):\n    v = []\n    v.append(v)\n    return v"
    assert outcome(pool, loop).outcome != "passed"


@pytest.mark.slow
def test_an_orphan_by_double_fork_neither_hangs_nor_outlives_a_weak_tier():
    if not can_throw_away():
        pytest.skip("no throw-away namespace here to try hostile programs in")
    program = """
import os, time
def f(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(60)
        os._exit(0)
    return x + x
"""
    count = """
import os
def f(x):
    return sum(1 for p in os.listdir("/proc") if p.isdigit()) * 0 + x + x
"""
    with Pool(strong("T0"), workers=1, is_apart=True) as weak:
        ran = outcome(weak, program)
        assert ran.outcome == "passed" and ran.wall_s < 15
        assert outcome(weak, count).outcome == "passed"


@pytest.mark.slow
def test_a_cell_that_is_killed_is_replaced_and_the_job_run_again():
    with Pool(strong("T2"), workers=1) as pool:
        cell = pool._idle.get()
        cell._process.kill()
        pool._idle.put(cell)
        assert outcome(pool, ADD).outcome == "passed"


ORDINARY_USER = """
import json, subprocess, sys
sys.path.append(sys.argv[1])
from routeproof.scorers.sandbox.probes import CHEATS, PROBES, TESTS
from routeproof.scorers.sandbox.wire import receive, send
start = [sys.executable, "-s", "-S", "-P", "-B", "-c",
         f"import sys; sys.path.append({sys.argv[1]!r}); "]
def run(code, **pipes):
    return subprocess.Popen([*start[:-1], start[-1] + code], env={}, cwd="/",
                            stdout=subprocess.PIPE, **pipes)
asked = run("import json; from routeproof.scorers.sandbox.tiers import survey; "
            "print(json.dumps(survey()))")
has = json.loads(asked.communicate()[0])
found = {}
if has["namespaces"] and has["filters"]:
    cell = run("from routeproof.scorers.sandbox.cell import main; main(True)",
               stdin=subprocess.PIPE)
    for tier in ("T3", "T2"):
        for name, source in {**PROBES, **CHEATS}.items():
            to = cell.stdin.fileno()
            limits = {"wall_s": 20.0}
            send(to, {"tier": tier, "limits": limits, "program": source})
            send(to, {"tests": TESTS, "context": "", "entry_points": ["probe"]})
            ran = receive(cell.stdout.fileno())
            if (ran["outcome"] == "passed") != (name in PROBES):
                found[f"{tier} {name}"] = ran
    cell.stdin.close()
    cell.wait()
print(json.dumps({"has": has, "found": found}))
"""


@pytest.mark.slow
def test_an_ordinary_user_is_held_as_strongly():
    python, setpriv = "/usr/bin/python3", shutil.which("setpriv")
    lacking = os.geteuid() != 0 or setpriv is None or not os.path.exists(python)
    if lacking or not can_throw_away():
        pytest.skip("needs root, setpriv and a Python that other users may run")
    place = Path(tempfile.mkdtemp(prefix="routeproof-"))
    try:
        package = place / "routeproof" / "scorers"
        shutil.copytree(Path(wire.__file__).parent, package / "sandbox")
        for each in (package, package.parent):
            (each / "__init__.py").touch()
        for each in (place, *place.rglob("*")):
            each.chmod(0o755)
        ran = subprocess.run(
            [
                setpriv,
                "--reuid",
                "12345",
                "--regid",
                "12345",
                "--clear-groups",
                python,
                "-c",
                ORDINARY_USER,
                str(place),
            ],
            capture_output=True,
            text=True,
            cwd="/",
            timeout=120,
        )
    finally:
        shutil.rmtree(place)
    if "SyntaxError" in ran.stderr or "ImportError" in ran.stderr:
        pytest.skip("the system's Python is older than routeproof needs")
    told = json.loads(ran.stdout)
    if not told["has"]["namespaces"]:
        pytest.skip("ordinary users get no namespaces here")
    assert told["found"] == {}


def test_no_process_is_left_behind():
    mine = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="],
        capture_output=True,
        text=True,
    ).stdout
    assert mine.count("sandbox.cell") <= 2, "those of this module's own pool"


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.fractions()
    | st.decimals(allow_nan=False)
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
        | st.frozensets(st.integers(), max_size=3)
        | st.sets(st.text(max_size=2), max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(plain)
def test_values_cross_the_wire_with_their_types(value):
    again = wire.decode(wire.encode(value))
    assert type(again) is type(value)
    assert repr(again) == repr(value) or again == value


def test_an_unknown_type_equals_nothing_on_the_other_side():
    class Liar:
        __class__ = int

        def __eq__(self, other):
            return True

    got = wire.decode(wire.encode(Liar()))
    assert got != got and got != 1 and not got == 1


@pytest.mark.slow
@given(st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_a_broken_frame_is_an_error_and_nothing_else(data):
    try:
        wire.decode(data)
    except wire.WireError:
        pass


@pytest.mark.parametrize("machine", sorted(syscall_numbers.AUDIT_ARCH))
def test_the_filter_is_whole_and_lets_no_dangerous_call_in(machine):
    code = seccomp.program(1234, machine)
    assert len(code) % 8 == 0 and len(code) // 8 < 4096
    allowed = {*syscall_numbers.PLAIN.split(), *syscall_numbers.CONDITIONAL.split()}
    names = {entry.split(":")[0] for entry in allowed}
    assert not names & {
        "socket",
        "connect",
        "bind",
        "execve",
        "fork",
        "vfork",
        "ptrace",
        "mount",
        "unshare",
        "setns",
        "bpf",
        "io_uring_setup",
        "setuid",
        "memfd_create",
        "process_vm_readv",
        "keyctl",
        "pidfd_open",
    }


def test_call_numbers_are_those_of_this_machines_header():
    header = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
    if platform.machine() != "x86_64" or not os.path.exists(header):
        pytest.skip("no kernel headers here")
    with open(header) as lines:
        pairs = (line.split() for line in lines if line.startswith("#define __NR_"))
        known = {name[5:]: int(number) for _, name, number in pairs}
    for table in (
        syscall_numbers.PLAIN,
        syscall_numbers.CONDITIONAL,
        syscall_numbers.OWN,
    ):
        for name, number in syscall_numbers.numbers(table, "x86_64").items():
            assert known[name] == number
