"""Planted keys: whatever goes wrong, they are in nothing that is kept, shown or sent.

Five keys with shapes no pattern knows (of both upstreams, of the caller, of the admin
and of a tester), one of a judge, and one of a known shape inside a prompt. The
upstreams are hostile: they repeat every header and the prompt in answers, errors, tool
calls and finish reasons.
"""

import asyncio
import contextlib
import json
import shutil
import ssl
import subprocess
import sys
from types import SimpleNamespace

import pytest
from canary_cases import SHORT, ask, run, split, until
from fakes.openai_server import (
    ABORT,
    CLOSE,
    event,
    json_reply,
    serving_in_thread,
    stream_end,
    stream_head,
)
from fakes.openai_server import serving as upstream

from routeproof.canary.admin.app import Admin
from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.canary.samples.signals import SIGNALS, Signal
from routeproof.canary.serve import serving
from routeproof.cli.app import main
from routeproof.errors import ConfigError
from routeproof.jobs.canary import weekly
from routeproof.jobs.drill import DrillOptions, drill

pytestmark = pytest.mark.slow

KEYS = {
    "UPSTREAM": "upstream.9f8e7d6c5b4a",
    "FAST": "fastroute.1122aabbcc44",
    "ADMIN": "adminperson.55667788",
    "TESTERS": "testers.99aa00bb11cc",
    "JUDGE": "judgement.dd22ee33ff44",
    "SEAL": "seal.4455667788990011",
}
CALLER = "caller.0a1b2c3d4e5f6a7b"
IN_PROMPT = "sk-plantedINprompt1234567890"
PLANTED = [*KEYS.values(), CALLER, IN_PROMPT]
MORE = """\
  steps: [0.5]
  admin: 127.0.0.1:0
  tolerances: {{invalid_structure: 0.05}}
  traffic:
    api_keys_env: {{trusted: UPSTREAM, fast: FAST}}
    admin_key_env: ADMIN
    override_key_env: TESTERS
    access_log: access.log
    first_byte_deadline_s: 5
    {more}
  privacy: {{replay: true, replay_in_flight_max: -1, replays_per_minute: 6000,
            keep_prompts: true{privacy}}}
  graders:
    judge: {{endpoint: "{judge}", model: judge, api_key_env: JUDGE}}
    embeddings: {{endpoint: "{judge}", model: e, api_key_env: JUDGE}}
    likelihood: true
    asks_per_minute: 6000
"""


def echo(seen):
    """All that a caller and the gateway sent, said back in some way or other."""
    said = json.dumps([seen.headers, seen.body.decode("utf-8", "replace")])
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": said}}
    message = {"role": "assistant", "content": said, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": f"stop {said}"}
    whole = {"id": f"c{seen.number}", "choices": [choice], "system_fingerprint": said}
    piece = {"choices": [{"index": 0, "delta": {"content": said}}]}
    error = {"error": {"message": said, "type": said}}
    ways = [
        json_reply(whole),
        [*stream_head(), event(piece), *stream_end()],
        [*stream_head(), event(piece), ABORT],
        [*stream_head(), event(error), *stream_end()],
        json_reply(error, status=401),
        json_reply(error, status=500),
        [said.encode() + b"\r\n\r\n", CLOSE],
        [*stream_head(), event({"choices": said}), *stream_end()],
    ]
    return ways[seen.number % len(ways)]


class Planted(Exception):
    """An error of somebody's scorer, full of what it read."""


def breaking_scorer(seen):
    raise Planted(f"{seen.text} {seen.prompt} {PLANTED}")


def a_body(i, **more):
    words = f"my key is {IN_PROMPT}, yours?"
    form = {"response_format": {"type": "json_object"}} if i % 3 == 0 else {}
    user = {"role": "user", "content": words}
    return json.dumps({"messages": [user], "user": f"u{i}", **form, **more}).encode()


PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings")


def request_of(i):
    return {
        "path": PATHS[i % 7 % 4],
        "headers": [
            f"Authorization: Bearer {CALLER}",
            f"X-Routeproof-Key: {KEYS['TESTERS']}",
            *(["X-Routeproof-Arm: canary"] if i % 11 == 0 else []),
        ],
    }


async def admin_page(url, method, path, body=b"", key=KEYS["ADMIN"]):
    """A page of the admin listener, head included."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
    head += f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    if path == "/v1/live":
        found = await reader.readuntil(b"\n\n")
        found += await reader.readuntil(b"\n\n")
    else:
        found = await reader.read()
    writer.close()
    return found


SPOKEN = json.dumps(
    {
        "actor": KEYS["ADMIN"],
        "reason": f"leaked {KEYS['FAST']} {KEYS['ADMIN']} {KEYS['JUDGE']} {IN_PROMPT}",
        "context": {"targetingKey": "u1"},
        "response_id": "c0",
        "thumb": "down",
    }
).encode()

PAGES = [
    ("POST", "/v1/feedback"),
    ("GET", "/"),
    ("GET", "/metrics"),
    ("GET", "/v1/status"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/history"),
    ("GET", "/v1/samples?limit=500"),
    ("GET", "/v1/samples?bad=any"),
    ("GET", "/v1/analysis/fast"),
    ("POST", "/hooks/flagger/rollout"),
    ("POST", "/ofrep/v1/evaluate/flags"),
    ("GET", "/alerts.yaml"),
    ("GET", "/grafana.json"),
    ("GET", "/v1/live"),
    ("POST", "/v1/pause"),
    ("POST", "/v1/start"),
    ("POST", "/v1/erase"),
    ("POST", "/v1/rollback"),
    ("GET", "/v1/audit?since=x"),
]


@contextlib.contextmanager
def keys_in(monkeypatch, collector):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url[: -len("/v1")])
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    yield


def write_file(folder, judge, *, fast, trusted, more="", privacy=""):
    file = folder / "canary.yaml"
    text = MORE.format(judge=judge, more=more, privacy=privacy)
    base = SHORT.replace("  admin: 127.0.0.1:0\n", "")
    file.write_text(base.format(sample="100%", fast=fast, trusted=trusted, more=text))
    return file


async def live(file, *, scorer=None, n=64):
    """Traffic, every page, a rollback; what was shown and what broke with it."""
    gateway = Gateway(load_canary(file))
    if scorer is not None:
        gateway.taster.signals = {**SIGNALS, "own": Signal("own", scorer)}
    admin = Admin(gateway, KEYS["ADMIN"])
    shown, answers = [], []
    async with serving(gateway, admin) as running:
        await asyncio.to_thread(gateway.command, "start", actor="test")
        for first in range(0, n, 16):
            asked = [
                ask(running.data_url, a_body(i, stream=i % 2 == 0), **request_of(i))
                for i in range(first, first + 16)
            ]
            answers += await asyncio.gather(*asked)
        await asyncio.to_thread(gateway.taster.stop)
        await asyncio.to_thread(gateway.side.asker.finish)
        gateway.taster.start()
        for method, path in PAGES:
            body = SPOKEN if method == "POST" else b""
            shown.append(await admin_page(running.admin_url, method, path, body))
        shown.append(await admin_page(running.admin_url, "GET", "/v1/status", key="x"))
        # A fault of ours in the middle of a request, and one in the control loop.
        working = gateway.relay.router
        gateway.relay.router = SimpleNamespace(route=fail, ended=working.ended)
        answers.append(await ask(running.data_url, a_body(0), **request_of(0)))
        gateway.relay.router = working
        look, gateway.controller.look = gateway.controller.look, fail
        await asyncio.to_thread(gateway._tick_safely)
        shown.append(await admin_page(running.admin_url, "GET", "/v1/status"))
        gateway.controller.look = look
        await until(lambda: gateway.rollback_s is not None)
    parts = [
        gateway,
        admin,
        gateway.router,
        gateway.relay,
        gateway.side,
        gateway.taster,
    ]
    shown += [repr(part).encode() for part in parts]
    return gateway, shown, answers


def fail(*_):
    raise Planted(" ".join(PLANTED))


def kept_in(folder, *, but=()):
    """Every byte of every file below a folder; key and certificate files aside."""
    files = [p for p in folder.rglob("*") if p.is_file() and p.name not in but]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def assert_clean(shown):
    for name, data in shown.items():
        for key in PLANTED:
            at = data.find(key.encode())
            assert at < 0, f"{key} in {name}: ...{data[max(0, at - 300) : at + 40]!r}"


def said(words, monkeypatch):
    """Run a command line, tracebacks shown; returns the exit code."""
    monkeypatch.setattr(sys, "argv", ["routeproof", *words])
    monkeypatch.setenv("ROUTEPROOF_DEBUG", "1")
    with pytest.raises(SystemExit) as exit_:
        main()
    return exit_.value.code


def outputs(file, shown, capfd, caplog, monkeypatch):
    """All there is to see of a canary that ran, by name."""
    markdown, page = weekly(file, since=None, now_s=4_000_000_000.0)
    found = {f"page {i}": data for i, data in enumerate(shown)}
    for words in (["check"], ["status"], ["weekly"], ["drill", "--how", "trigger"]):
        said(["--debug", "canary", *words, str(file)], monkeypatch)
    out, err = capfd.readouterr()
    return found | {
        "weekly.md": markdown.encode(),
        "weekly.html": page.encode(),
        "screen": (out + err).encode(),
        "log": caplog.text.encode(),
        **kept_in(file.parent),
    }


@pytest.mark.parametrize(
    ("scorer", "privacy"),
    [
        (None, ""),
        (breaking_scorer, ""),
        (None, ', hooks: ["json:loads"]'),
        (None, ", seal_key_env: SEAL"),
    ],
    ids=["plain", "a scorer breaks", "a hook breaks", "sealed"],
)
def test_no_planted_key_is_kept_shown_or_sent(
    tmp_path, monkeypatch, capfd, caplog, scorer, privacy
):
    if "seal" in privacy:
        pytest.importorskip("cryptography")
    caplog.set_level(0)
    with (
        serving_in_thread(json_reply({})) as collector,
        serving_in_thread(echo) as judge,
    ):
        with keys_in(monkeypatch, collector):

            async def go():
                async with upstream(echo) as one, upstream(echo) as two:
                    file = write_file(
                        tmp_path, judge.url, fast=two.url, trusted=one.url,
                        privacy=privacy,
                    )  # fmt: skip
                    found = await live(file, scorer=scorer)
                    drilled = await asyncio.to_thread(try_drill, file)
                    return file, found, drilled, (one, two)

            file, (gateway, shown, _), drilled, (one, two) = run(go())
            found = outputs(file, [*shown, drilled], capfd, caplog, monkeypatch)
    found |= {f"collector {s.path}": s.body for s in collector.seen}
    found |= {f"judge {s.path}": s.body for s in judge.seen}
    assert_clean(found)
    # The test would see nothing if nothing came by.
    seen = [*one.seen, *two.seen]
    assert any(KEYS["FAST"] in str(s.headers) for s in two.seen)
    assert any(IN_PROMPT.encode() in s.body for s in seen)
    assert not any(KEYS["TESTERS"] in str(s.headers) for s in seen)
    assert sum(gateway.taster.taken.values()) > 20 and judge.seen or "hooks" in privacy
    assert {s.path for s in collector.seen} >= {"/v1/metrics"}


def try_drill(file):
    try:
        found, kept = drill(file, DrillOptions(how="trigger", limit_s=5.0))
    except ConfigError as error:
        return f"{error.message} {error.hint}".encode()
    return repr(found).encode() + kept.read_bytes()


def made_by_us(answers):
    """Bodies that the gateway wrote itself: errors before any byte of an upstream."""
    return {
        f"answer {i}": answer
        for i, answer in enumerate(answers)
        if split(answer)[0] in (500, 502, 503, 504)
    }


def test_upstreams_that_are_down_or_not_to_be_trusted_show_no_key(
    tmp_path, monkeypatch, capfd, caplog
):
    pair = tmp_path / "tls"
    pair.mkdir()
    certificate = a_certificate(pair)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    caplog.set_level(0)
    with serving_in_thread(json_reply({})) as collector:
        with keys_in(monkeypatch, collector):

            async def go():
                async with upstream(echo, ssl=context) as one:
                    file = write_file(
                        tmp_path, "http://127.0.0.1:1/v1", fast="http://127.0.0.1:1",
                        trusted=one.url,
                    )  # fmt: skip
                    return file, await live(file, n=32), one

            file, (_, shown, answers), one = run(go())
            found = outputs(file, shown, capfd, caplog, monkeypatch)
    found |= {f"collector {s.path}": s.body for s in collector.seen}
    ours = made_by_us(answers)
    assert len(ours) == len(answers) == 33 and one.seen == []
    assert_clean(found | ours)


def a_certificate(folder):
    """A throw-away certificate nobody vouches for, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    made = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
        *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=x"),
        *("-keyout", "key.pem", "-out", "cert.pem"),
    ]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.parametrize(
    "line",
    [
        'routes: {{fast: "http://u:{k}@127.0.0.1:1", trusted: "http://127.0.0.1:2"}}',
        'routes: {{fast: "http://127.0.0.1:1?k={k}", trusted: "http://127.0.0.1:2"}}',
        'graders: {{judge: {{endpoint: "http://u:{k}@127.0.0.1:1", model: m}}}}',
        'graders: {{embeddings: {{endpoint: "http://127.0.0.1:1?{k}", model: m}}}}',
    ],
)
@pytest.mark.parametrize("in_a_proof", [False, True])
def test_a_key_inside_an_address_is_refused_and_not_repeated(
    tmp_path, line, in_a_proof, monkeypatch, capsys
):
    routes = '  routes: {fast: "http://127.0.0.1:1", trusted: "http://127.0.0.1:2"}\n'
    line = line.format(k=IN_PROMPT)
    proof = "baseline: {endpoint: 'http://127.0.0.1:2/v1'}\n"
    proof += "candidate: {endpoint: 'http://127.0.0.1:1/v1'}\n"
    file = tmp_path / "canary.yaml"
    file.write_text(
        (proof if in_a_proof else "")
        + "canary:\n  candidate: fast\n  baseline: trusted\n"
        + ("" if line.startswith("routes") else routes)
        + f"  {line}\n"
    )
    assert said(["canary", "check", str(file)], monkeypatch) == 2
    assert IN_PROMPT not in "".join(capsys.readouterr())
