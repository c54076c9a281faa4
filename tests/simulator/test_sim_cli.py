"""The two commands, as they are typed."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from simulator import sim_client as client

from routeproof.cli.simulate import command as simulate
from routeproof.simulator.faults import FAULTS


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
