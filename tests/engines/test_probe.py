import asyncio
import contextlib
import json
import shutil
import ssl
import subprocess

import pytest
from engine_pages import answers
from hypothesis import given, settings
from hypothesis import strategies as st
from page_server import Page, serving

from routeproof.engines.adapters import ADAPTERS
from routeproof.engines.endpoint import Endpoint, endpoint_of
from routeproof.engines.http import fetch
from routeproof.engines.probe import metrics_page, probe, served_name
from routeproof.errors import ConfigError
from routeproof.proof.route import AuthSpec, RouteSpec
from routeproof.routes.read_back import ReadBack


def models(*ids: str, owner: str = "somebody", **more: object) -> Page:
    rows = [{"id": name, "object": "model", "owned_by": owner, **more} for name in ids]
    return Page(json.dumps({"object": "list", "data": rows}))


def probed(pages: dict[str, Page], suffix: str = "/v1", **options) -> ReadBack:
    async def run() -> ReadBack:
        async with serving(pages) as served:
            return await probe(Endpoint(served.url + suffix), **options)

    return asyncio.run(run())


def refused(pages: dict[str, Page], suffix: str = "/v1", **options) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        probed(pages, suffix, **options)
    return caught.value


def test_a_plain_openai_server_gives_what_the_protocol_tells():
    found = probed({"/v1/models": models("m", max_model_len=4096)})
    assert (found.engine, found.models) == ("openai", ("m",))
    assert found.fields == {"model.served": "m", "context_limit_tokens": "4096"}
    assert "kv_cache" in found.cannot_tell


@pytest.mark.parametrize(
    ("page", "says", "hint"),
    [
        (Page(status=401), "HTTP 401: an API key is needed", "api_key_env"),
        (Page(status=403), "HTTP 403", "api_key_env"),
        (Page("x", status=404), "no list of models", "host and port"),
        (Page("x", status=503), "still loading", "wait"),
        (Page("the boiler is cold", status=500), "the boiler is cold", "log"),
        (
            Page(status=307, headers={"Location": "https://other/v1"}),
            "redirects to https://other/v1",
            "final URL",
        ),
        (Page("<!doctype html><html>hi"), "an HTML page instead of JSON", "/v1"),
        (Page(""), "nothing instead of JSON", "/v1"),
        (Page("hello"), "`hello` instead of JSON", "/v1"),
        (Page("[1]"), "no list of models", "/v1"),
        (Page('{"data": 3}'), "no list of models", "/v1"),
        (Page(raw=b"SSH-2.0-server\r\n"), "does not speak HTTP", "port"),
        (Page(raw=b""), "closed the connection", "log"),
        (Page("{}", length=99), "closed the connection", "log"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "page",
)
def test_an_endpoint_that_is_not_right_gives_one_clear_error(page, says, hint):
    error = refused({"/v1/models": page})
    assert says in error.message
    assert hint in error.hint


def test_a_base_url_without_v1_is_told_so():
    error = refused({"/v1/models": models("m")}, suffix="")
    assert error.hint.endswith("/v1?")


def test_an_endpoint_that_hangs_is_given_up():
    error = refused({"/v1/models": Page(hangs=True)}, deadline_s=0.05)
    assert "did not answer within 0.05 s" in error.message


def test_nothing_listening_and_an_unknown_host_are_told_apart():
    with pytest.raises(ConfigError, match="connection refused"):
        asyncio.run(probe(Endpoint("http://127.0.0.1:1/v1")))
    with pytest.raises(ConfigError, match="cannot be (resolved|reached)"):
        asyncio.run(probe(Endpoint("http://no-such-host.invalid/v1")))


def test_a_body_over_the_limit_is_refused():
    async def run() -> None:
        async with serving({"/x": Page("a" * 5000)}) as served:
            endpoint = Endpoint(served.url)
            await fetch(endpoint, endpoint.at("/x"), max_bytes=1000)

    with pytest.raises(ConfigError, match="more than 1000 bytes"):
        asyncio.run(run())


def test_a_chunked_answer_and_a_post_arrive_whole():
    async def run() -> None:
        async with serving({"/x?y=1": Page('{"a": 1}', chunked=True)}) as served:
            endpoint = Endpoint(served.url, headers={"X-Team": "t"}, api_key="k")
            reply = await fetch(endpoint, endpoint.at("/x?y=1"), body={"q": "é"})
            assert reply.json() == {"a": 1}
            line, headers, body = served.requests[0]
            assert line == "POST /x?y=1 HTTP/1.1"
            assert headers["authorization"] == "bearer k"
            assert headers["x-team"] == "t"
            assert json.loads(body) == {"q": "é"}

    asyncio.run(run())


def test_an_unknown_model_names_the_ones_served():
    error = refused({"/v1/models": models("llama-8b", "qwen-7b")}, model="qwen-7")
    assert "serves llama-8b, qwen-7b" in error.message
    assert "model: qwen-7b" in error.hint
    assert error.key == "model"


def test_a_hub_id_is_served_under_the_alias_of_its_files():
    found = ReadBack(
        engine="vllm",
        fields={"model": "/models/Qwen3-8B"},
        cannot_tell=(),
        models=("chat",),
    )
    assert served_name(found, "Qwen/Qwen3-8B") == "chat"
    assert served_name(found, "chat") == "chat"
    assert served_name(found, "Qwen/Qwen3-4B") is None


@pytest.mark.parametrize(
    ("pages", "engine"),
    [
        ({"/v1/models": models("m", owner="vllm")}, "vllm"),
        ({"/v1/models": models("m", owner="llamacpp")}, "llama.cpp"),
        ({"/v1/models": models("m", owner="tensorrt_llm")}, "tensorrt-llm"),
        (
            {"/v1/models": models("m"), "/props": Page('{"build_info": "b1"}')},
            "llama.cpp",
        ),
        ({"/v1/models": models("m"), "/server_info": Page('{"tp_size": 1}')}, "sglang"),
        (
            {
                "/v1/models": models("m"),
                "/prometheus/metrics": Page("# TYPE x\ntrtllm_request_success_total 1"),
            },
            "tensorrt-llm",
        ),
        (
            {
                "/v1/models": models("m"),
                "/metrics": Page("vllm:num_requests_running 0"),
            },
            "vllm",
        ),
        ({"/v1/models": models("m", owner="my company")}, "openai"),
    ],
)
def test_the_engine_is_told_from_what_it_serves(pages, engine):
    assert probed(pages).engine == engine


def test_the_queues_of_tensorrt_llm_are_never_read():
    async def run() -> list[str]:
        pages = {"/v1/models": models("m", owner="tensorrt_llm")}
        async with serving(pages) as served:
            endpoint = Endpoint(f"{served.url}/v1")
            await probe(endpoint)
            await metrics_page(endpoint, ADAPTERS["tensorrt-llm"])
            return served.paths()

    assert not {"/metrics", "/perf_metrics"} & set(asyncio.run(run()))


def test_a_recorded_llamacpp_answers_over_a_socket():
    recorded = answers(
        "engine_captures_llamacpp", "spec-draft-q2_k", "/v1/models", "/props", "/slots"
    )
    found = probed({path: Page(text) for path, text in recorded.items()})
    assert found.engine == "llama.cpp"
    assert found.fields["speculation.method"] == "draft-simple"
    assert found.raw["/props"] == recorded["/props"]


def test_a_unix_socket_is_reached(tmp_path):
    path = str(tmp_path / "engine.sock")
    spec = RouteSpec(endpoint=f"unix://{path}")

    async def run() -> ReadBack:
        async with serving({"/v1/models": models("m")}, unix=path):
            return await probe(endpoint_of(spec, {}))

    assert asyncio.run(run()).models == ("m",)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*command.split(), "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


@pytest.mark.slow
def test_a_certificate_nobody_signed_is_refused_unless_told_otherwise(certificate):
    async def run(verify: bool) -> ReadBack:
        async with serving({"/v1/models": models("m")}, tls=certificate) as served:
            return await probe(Endpoint(f"{served.url}/v1", verify_tls=verify))

    with pytest.raises(ConfigError, match="certificate .* is not trusted") as caught:
        asyncio.run(run(verify=True))
    assert "verify_tls: false" in caught.value.hint
    assert asyncio.run(run(verify=False)).models == ("m",)


def test_tls_towards_a_plain_server_says_so():
    async def run() -> None:
        plain = Page(raw=b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        async with serving({"*": plain}) as served:
            await probe(Endpoint(served.url.replace("http", "https") + "/v1"))

    with pytest.raises(ConfigError, match="no TLS connection") as caught:
        asyncio.run(run())
    assert "http://" in caught.value.hint


def test_a_key_is_taken_from_its_variable_and_never_shown():
    spec = RouteSpec(endpoint="http://h/v1", auth=AuthSpec(api_key_env="KEY"))
    endpoint = endpoint_of(spec, {"KEY": "s3cret"})
    assert endpoint.sent_headers()["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(endpoint)
    with pytest.raises(ConfigError, match="KEY is not set"):
        endpoint_of(spec, {})
    with pytest.raises(ConfigError, match="no endpoint"):
        endpoint_of(RouteSpec(), {})


def test_an_interim_answer_is_not_the_answer():
    real = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"

    async def run() -> int:
        async with serving({"*": Page(raw=hint + real)}) as served:
            reply = await fetch(Endpoint(served.url), f"{served.url}/x")
            assert reply.json() == {}
            return reply.status

    assert asyncio.run(run()) == 200


HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02",
    ]
)


@pytest.mark.slow
@given(HEADS, st.binary(max_size=40))
@settings(max_examples=80, deadline=None)
def test_whatever_a_server_sends_is_an_answer_or_one_error(head, rest):
    async def run() -> None:
        async with serving({"*": Page(raw=head + rest)}) as served:
            with contextlib.suppress(ConfigError):
                await fetch(Endpoint(served.url), f"{served.url}/x", deadline_s=2.0)

    asyncio.run(run())
