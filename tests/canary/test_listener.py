"""The data listener and upstreams by TLS; the access log; requests sent ahead."""

import asyncio
import json
import shutil
import ssl
import subprocess

import pytest
from canary_cases import SHORT, a_gateway, run
from fakes.openai_server import chat_stream, json_reply
from fakes.openai_server import serving as upstream

from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.canary.serve import serving
from routeproof.errors import ConfigError

pytestmark = pytest.mark.slow

PLANTED = "sk-plantedKEY1234567890abcdef"
ASKED = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    f"Authorization: Bearer {PLANTED}\r\nContent-Length: 2\r\n"
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A throw-away certificate for localhost and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
        *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", "/CN=localhost", "-addext"),
        *("subjectAltName=DNS:localhost,IP:127.0.0.1",),
        *("-keyout", "key.pem", "-out", "cert.pem"),
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


async def asked(url, context=None):
    host, port = url.split("//")[1].split(":")
    name = "localhost" if context else None
    reader, writer = await asyncio.open_connection(
        host, int(port), ssl=context, server_hostname=name
    )
    writer.write(ASKED.encode() + b"Connection: close\r\n\r\n{}")
    answer = await reader.read()
    writer.close()
    return answer


def test_clients_are_served_by_tls_and_by_nothing_else(tmp_path, pair):
    more = (
        f"  traffic: {{tls_certificate: '{pair[0]}', tls_private_key: '{pair[1]}'}}\n"
    )

    async def go():
        async with a_gateway(
            tmp_path, trusted=chat_stream(), fast=[], more=more
        ) as stand:
            trusts = ssl.create_default_context(cafile=pair[0])
            answer = await asked(stand.url, trusts)
            with pytest.raises(ssl.SSLCertVerificationError):
                await asked(stand.url, ssl.create_default_context())
            return stand.url, answer

    url, answer = run(go())
    assert url.startswith("https://") and b"[DONE]" in answer


@pytest.mark.parametrize("is_known", [True, False])
def test_an_upstream_is_verified_against_the_authorities_of_the_file(
    tmp_path, pair, is_known
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    more = f"  traffic: {{upstream_ca: '{pair[0]}'}}\n" if is_known else ""

    async def go():
        reply = json_reply({"ok": 1})
        async with upstream(reply, ssl=context) as one, upstream([]) as two:
            file = tmp_path / "canary.yaml"
            text = SHORT.format(sample="5%", fast=two.url, trusted=one.url, more=more)
            file.write_text(text)
            async with serving(Gateway(load_canary(file))) as running:
                return await asked(running.data_url)

    assert (b" 200 " if is_known else b" 502 ") in run(go()).split(b"\r\n")[0]


def test_a_certificate_that_is_not_there_is_said(tmp_path):
    more = "  traffic: {tls_certificate: no.pem, tls_private_key: no.key}\n"

    async def go():
        async with a_gateway(tmp_path, trusted=[], fast=[], more=more):
            pass

    with pytest.raises(ConfigError, match="cannot use"):
        run(go())


def test_the_access_log_has_a_line_per_request_and_no_key(tmp_path):
    more = "  traffic: {access_log: access.log}\n"

    async def go():
        async with a_gateway(
            tmp_path, trusted=chat_stream(), fast=[], more=more
        ) as stand:
            await asked(stand.url)
            await asked(stand.url)

    run(go())
    text = (tmp_path / "access.log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["status"] for line in lines] == [200, 200]
    assert {line["outcome"] for line in lines} == {"completed"}
    assert PLANTED not in text


def test_requests_sent_ahead_are_answered_in_their_order(tmp_path):
    async def go():
        async with a_gateway(
            tmp_path, trusted=lambda seen: json_reply({"n": seen.number}), fast=[]
        ) as stand:
            host, port = stand.url.split("//")[1].split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            one = f"{ASKED}\r\n{{}}".encode()
            last = f"{ASKED}Connection: close\r\n\r\n{{}}".encode()
            writer.write(one * 6 + last)
            answer = await reader.read()
            writer.close()
            return answer

    answer = run(go())
    places = [answer.index(b'"n": %d' % n) for n in range(7)]
    assert places == sorted(places)
