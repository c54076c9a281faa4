import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from routeproof.engines.launch import launch, log_tail
from routeproof.errors import ConfigError, EngineError
from routeproof.proof.route import LaunchSpec

pytestmark = pytest.mark.slow

ENGINE = """
import http.server, json, os, subprocess, sys

port = int(sys.argv[1])
if "child" in sys.argv:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("child", child.pid, flush=True)

class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "m"}]}).encode()
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

print("listening", port, os.environ.get("FLAVOUR"), flush=True)
http.server.HTTPServer(("127.0.0.1", port), Pages).serve_forever()
"""


@pytest.fixture
def engine(tmp_path):
    path = tmp_path / "engine.py"
    path.write_text(ENGINE)
    return [sys.executable, "-I", "-S", str(path)]


def spec(*command: str, **options) -> LaunchSpec:
    return LaunchSpec(command=tuple(command), **options)


def has_ended(pid: int, within_s: float = 20.0) -> bool:
    """Whether a process that is not our child ends in time."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], within_s)[0])
    finally:
        os.close(fd)


def failed(made: LaunchSpec, folder: Path, **options) -> Exception:
    async def run() -> None:
        async with launch(made, name="candidate", log_path=folder / "l.log", **options):
            pytest.fail("must not come up")

    with pytest.raises((ConfigError, EngineError)) as caught:
        asyncio.run(run())
    return caught.value


def test_an_engine_is_up_inside_the_block_and_gone_after_it(engine, tmp_path):
    made = spec(*engine, "{port}", env={"FLAVOUR": "{taste}"})

    async def run() -> int:
        log = tmp_path / "logs" / "a.log"
        async with launch(
            made, name="baseline", log_path=log, fill={"taste": "salty"}
        ) as running:
            assert running.endpoint_url.endswith("/v1")
            assert not running.ended.done()
            assert "salty" in running.log_tail()
            return running.pid

    assert has_ended(asyncio.run(run()), 0)


def test_workers_in_sessions_of_their_own_are_ended_too(engine, tmp_path):
    made = spec(*engine, "{port}", "child")

    async def run() -> int:
        async with launch(made, name="a", log_path=tmp_path / "l") as running:
            return int(running.log_tail().split()[1])

    assert has_ended(asyncio.run(run()), 0)


def test_an_engine_that_dies_while_starting_shows_its_last_words(tmp_path):
    words = "import sys; print('loading', flush=True); sys.exit('no such model: /m')"
    error = failed(spec(sys.executable, "-c", words, "{port}"), tmp_path)
    assert isinstance(error, EngineError)
    assert "candidate ended with exit status 1 while starting" in error.message
    assert error.log_tail == "loading\nno such model: /m"
    assert "l.log" in error.hint


def test_an_illegal_instruction_gets_its_own_hint(tmp_path):
    words = f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})"
    error = failed(spec(sys.executable, "-c", words, "{port}"), tmp_path)
    assert "was ended by SIGILL" in error.message
    assert "generic processor" in error.hint


def test_an_engine_that_never_answers_is_stopped_at_its_deadline(tmp_path):
    made = spec("sleep", "600", "{port}", ready_timeout_s=0.3)
    error = failed(made, tmp_path)
    assert "was not ready after 0.3 s" in error.message
    assert "ready_timeout_s" in error.hint


@pytest.mark.parametrize(
    ("command", "says", "hint"),
    [
        (("no-such-engine-anywhere", "{port}"), "cannot be run", "PATH"),
        (("/etc/passwd", "{port}"), "cannot be run", "PATH"),
        (("sleep", "600"), "on which port", "{port}"),
        (("sleep", "{port}", "{modle}"), "`{modle}` is not filled", "`{model}`"),
    ],
)
def test_a_command_that_cannot_work_is_refused(tmp_path, command, says, hint):
    error = failed(spec(*command), tmp_path, fill={"model": "m.gguf"})
    assert isinstance(error, ConfigError)
    assert says in error.message
    assert hint in error.hint


def test_a_folder_that_is_not_there_is_named(tmp_path):
    error = failed(spec("sleep", "{port}", cwd=str(tmp_path / "gone")), tmp_path)
    assert "gone does not exist" in error.message


def test_a_log_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    error = failed(spec("sleep", "{port}"), tmp_path / "file")
    assert "log of the engine cannot be written" in error.message


def test_a_taken_port_is_found_before_anything_starts(tmp_path):
    async def run() -> None:
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            made = spec("sleep", "600", f"--port={port}")
            async with launch(made, name="a", log_path=tmp_path / "l"):
                pytest.fail("must not come up")
        finally:
            server.close()
            await server.wait_closed()

    with pytest.raises(ConfigError, match=r"port \d+ is taken") as caught:
        asyncio.run(run())
    assert "{port}" in caught.value.hint


def test_braces_of_json_are_left_alone(engine, tmp_path):
    config = '{"method": "ngram", "num_speculative_tokens": 4}'
    made = spec(*engine, "{port}", config)

    async def run() -> str:
        async with launch(made, name="a", log_path=tmp_path / "l") as running:
            return Path(f"/proc/{running.pid}/cmdline").read_text()

    assert config in asyncio.run(run())


def test_a_cancelled_task_stops_its_engine(engine, tmp_path):
    made = spec(*engine, "{port}")

    async def run() -> int:
        up: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            async with launch(made, name="a", log_path=tmp_path / "l") as running:
                up.set_result(running.pid)
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        pid = await up
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    assert has_ended(asyncio.run(run()), 0)


def test_an_engine_that_dies_in_the_middle_is_noticed(engine, tmp_path):
    made = spec(*engine, "{port}")

    async def run() -> EngineError:
        async with launch(made, name="a", log_path=tmp_path / "l") as running:
            os.kill(running.pid, signal.SIGKILL)
            assert await running.ended == "was ended by SIGKILL"
            return running.died("candidate")

    error = asyncio.run(run())
    assert "candidate was ended by SIGKILL in the middle of the run" in error.message
    assert "listening" in error.log_tail


HOLDER = """
import asyncio, sys
from pathlib import Path
from routeproof.engines.launch import launch
from routeproof.proof.route import LaunchSpec

async def main():
    spec = LaunchSpec(command=tuple(sys.argv[2:]))
    async with launch(spec, name="a", log_path=Path(sys.argv[1])) as running:
        print(running.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_engine_ends_however_its_starter_ends(engine, tmp_path, number):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "l"), *engine, "{port}", "child"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert holder.stdout is not None
    with holder.stdout:
        pid = int(holder.stdout.readline())
    child = int(log_tail(tmp_path / "l").split()[1])
    holder.send_signal(number)
    holder.wait(timeout=30)
    assert has_ended(pid)
    assert has_ended(child)


def test_a_log_tail_has_no_control_characters(tmp_path):
    path = tmp_path / "l"
    path.write_bytes(b"old\n" * 50 + b"\x1b[31mred\x1b[0m \xff\n\n" + b"x" * 1000)
    lines = log_tail(path, 2).splitlines()
    assert lines == ["red \ufffd", "x" * 400]
    assert log_tail(tmp_path / "none") == ""
