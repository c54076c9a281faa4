"""The two commands, as they are typed."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from simulator import sim_client as client

from routeproof.cli.selftest import UNKNOWN, told
from routeproof.cli.simulate import command as simulate
from routeproof.jobs.selftest import Power, PowerRow, Tried
from routeproof.jobs.virtual.blind import blind_spots
from routeproof.proof.workload import ArrivalSpec, LoadSpec, WorkloadSpec
from routeproof.simulator.faults import FAULTS
from routeproof.workloads.case import Case


def test_every_fault_can_be_listed_for_people_and_for_programs():
    plain = CliRunner().invoke(simulate, ["--list-faults"])
    assert plain.exit_code == 0
    coded = CliRunner().invoke(simulate, ["--list-faults", "--json"])
    names = {row["name"] for row in json.loads(coded.output)}
    assert names == {name for name in FAULTS if not name.startswith("~")}
    assert all(name in plain.output for name in names)


@pytest.mark.slow
def test_the_command_serves_until_it_is_stopped():
    words = [sys.executable, "-m", "routeproof", "simulate", "--port", "0"]
    words += ["--engine", "sglang", "--fault", "http_500:1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        try:
            url = running.stdout.readline().split()[-1]
            port = int(url.rsplit(":", 1)[1].split("/")[0])
            status, _ = asyncio.run(client.post(port, client.chat()))
        finally:
            running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == 0
    assert status == 500


def power_row(name, smallest, tried, **changes):
    return PowerRow(
        fault=name,
        family="f",
        what="something breaks",
        reference="r",
        unit=changes.pop("unit", "share"),
        gate="correctness",
        smallest=smallest,
        seen_by=None if smallest is None else "correctness: headline",
        tried=tuple(
            Tried(strength=s, is_seen=seen, decision="avoid") for s, seen in tried
        ),
        **changes,
    )


def test_the_table_of_power_says_from_where_on_and_why_not():
    rows = (
        power_row("weak", 0.1, ((0.02, False), (0.1, True), (0.5, True))),
        power_row("there", 1.0, ((1.0, True),), unit="none"),
        power_row("blind", None, ((0.5, False),), lacks=("no case has tools",)),
        power_row("unknown", None, ((0.5, False),)),
    )
    power = Power(cases=9, requests=9, sound="pilot", sound_failures=(), rows=rows)
    lines = list(told(power))
    assert "seen, 2 of 4 (the smallest strength tried)" in lines[1]
    assert any("weak" in x and "0.1 share (not at 0.02)" in x for x in lines)
    assert any("there" in x and "present" in x for x in lines)
    assert any("no case has tools" in x for x in lines)
    assert any(UNKNOWN in x for x in lines)


CASES = (
    Case(id="plain", class_="a", messages=({"role": "user", "content": "hi"},)),
    Case(id="text", class_="a", prompt="hello"),
)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("schema_broken", "structured"),
        ("call_dropped", "tools"),
        ("multi_turn_loss", "second turn"),
        ("language_loss", "language"),
        ("long_context_collapse", "600 tokens"),
        ("leak_under_load", "it takes 4"),
        ("memory_leak", "soak"),
        ("n_ignored", "more than one choice"),
        ("stop_leak", "stop string"),
        ("zero_logprobs", "log probabilities"),
        ("greedy_verification", "temperature 0"),
    ],
)
def test_what_a_poor_proof_cannot_see_is_named(name, word):
    load = LoadSpec(quality=ArrivalSpec(concurrency=(2,)))
    found = blind_spots(FAULTS[name], CASES, WorkloadSpec(load=load))
    assert len(found) == 1
    assert word in found[0]


def test_a_proof_that_has_all_a_fault_needs_lacks_nothing():
    load = LoadSpec(quality=ArrivalSpec(concurrency=(8,)))
    assert blind_spots(FAULTS["wrong_at_peak"], CASES, WorkloadSpec(load=load)) != ()
    assert blind_spots(FAULTS["leak_under_load"], CASES, WorkloadSpec(load=load)) == ()
    assert blind_spots(FAULTS["slower"], CASES, WorkloadSpec(load=load)) == ()
