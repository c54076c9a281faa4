"""Commands reach a running gateway however it listens, and with a spoilt file too."""

import asyncio
import contextlib
import shutil
import socket
import subprocess

import pytest
from canary_cases import SHORT, run
from fakes.openai_server import json_reply
from fakes.openai_server import serving as upstream

from routeproof.canary.admin.app import Admin
from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.canary.serve import serving
from routeproof.errors import ConfigError
from routeproof.jobs.canary import ask, key_of

pytestmark = pytest.mark.slow


def a_free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.asynccontextmanager
async def running(folder, admin, more=""):
    """A gateway whose file names its admin listener; yields the file and it."""
    async with upstream(json_reply({})) as one, upstream(json_reply({})) as two:
        file = folder / "canary.yaml"
        text = SHORT.replace("admin: 127.0.0.1:0", f"admin: '{admin}'")
        file.write_text(
            text.format(sample="5%", fast=two.url, trusted=one.url, more=more)
        )
        config = load_canary(file)
        gateway = Gateway(config)
        async with serving(gateway, Admin(gateway, key_of(config))):
            yield file, gateway


def commanded(folder, admin, more="", spoil=None):
    """Phases after a start and a rollback by command."""

    async def go():
        async with running(folder, admin, more) as (file, gateway):
            phases = [
                (await asyncio.to_thread(ask, file, "POST", "/v1/start"))["phase"]
            ]
            if spoil is not None:
                spoil(file)
            back = await asyncio.to_thread(ask, file, "POST", "/v1/rollback")
            return [*phases, back["phase"]], gateway.lease.weight_ppm()

    return run(go())


GONE_BACK = (["stepping", "rolling_back"], 0)


def test_over_a_port_with_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("ADMIN_KEY", "right-key")
    more = "  traffic: {admin_key_env: ADMIN_KEY}\n"
    assert commanded(tmp_path, f"127.0.0.1:{a_free_port()}", more) == GONE_BACK


def test_over_a_unix_socket(tmp_path):
    assert commanded(tmp_path, f"unix:{tmp_path}/admin.sock") == GONE_BACK


def test_a_unix_socket_is_not_for_everybody_and_not_taken_from_who_has_it(tmp_path):
    path = tmp_path / "admin.sock"

    async def go():
        async with running(tmp_path, f"unix:{path}") as (file, gateway):
            mode = path.stat().st_mode & 0o777
            again = Gateway(load_canary(file))
            with pytest.raises(ConfigError, match="somebody listens"):
                async with serving(again, Admin(again, None)):
                    pass
            phase = (await asyncio.to_thread(ask, file, "POST", "/v1/start"))["phase"]
            return mode, phase, gateway.lease.weight_ppm()

    mode, phase, weight = run(go())
    assert (mode, phase) == (0o660, "stepping") and weight > 0


def test_over_tls_by_the_certificate_of_the_file_and_no_other(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    for name in ("own", "other"):
        made = [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"),
            *("-subj", "/CN=canary.example"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
        ]
        subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    more = "  traffic: {tls_certificate: own.pem, tls_private_key: own.key}\n"
    assert commanded(tmp_path, f"127.0.0.1:{a_free_port()}", more) == GONE_BACK

    def another(file):
        file.write_text(file.read_text().replace("own.", "other."))

    again = tmp_path / "again"
    again.mkdir()
    for each in tmp_path.glob("*.[kp]e[ym]"):
        shutil.copy(each, again)
    with pytest.raises(ConfigError, match="no gateway answers"):
        commanded(again, f"127.0.0.1:{a_free_port()}", more, spoil=another)


def test_a_file_that_was_spoilt_meanwhile_does_not_stand_in_the_way(tmp_path):
    def spoil(file):
        file.write_text(file.read_text() + "  alpha: 99\n  lunch: noon\n")

    assert commanded(tmp_path, f"127.0.0.1:{a_free_port()}", spoil=spoil) == GONE_BACK


def test_a_refusal_comes_in_the_gateways_own_words(tmp_path):
    async def go():
        admin = f"127.0.0.1:{a_free_port()}"
        async with running(tmp_path, admin) as (file, _):
            await asyncio.to_thread(ask, file, "POST", "/v1/promote")

    with pytest.raises(ConfigError) as caught:
        run(go())
    assert caught.value.message.startswith(
        "the gateway refuses: cannot promote a canary that is ready"
    )


def test_nobody_there_and_somebody_else_there_are_said(tmp_path):
    file = tmp_path / "canary.yaml"
    port = a_free_port()
    text = SHORT.replace("admin: 127.0.0.1:0", f"admin: 127.0.0.1:{port}")
    routes = {"fast": "http://127.0.0.1:1", "trusted": "http://127.0.0.1:2"}
    file.write_text(text.format(sample="5%", more="", **routes))
    with pytest.raises(ConfigError, match="no gateway answers"):
        ask(file, "GET", "/v1/status")
