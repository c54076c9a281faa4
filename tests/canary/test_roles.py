"""Other tools' requests in the shapes their documentation gives them.

Argo Rollouts: docs/analysis/web.md. Flagger: docs/gitbook/usage/webhooks.md. OFREP:
service/openapi.yaml of open-feature/protocol.
"""

import asyncio
import json
import re

import pytest
from canary_cases import SHORT

from routeproof.canary.admin.app import Admin
from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway

HOOK = {
    "name": "podinfo",
    "namespace": "test",
    "phase": "Progressing",
    "metadata": {"test": "all", "token": "right"},
}
EVENT = {
    "name": "podinfo",
    "namespace": "test",
    "phase": "Progressing",
    "metadata": {
        "eventMessage": "Advance podinfo.test canary weight 10",
        "eventType": "Normal",
        "timestamp": "1578607635167",
        "token": "right",
    },
}
CONTEXT = {"context": {"targetingKey": "u1", "tier": "gold"}}
FLAG = "/ofrep/v1/evaluate/flags/fast"
FLAGS = "/ofrep/v1/evaluate/flags"


def a_gateway(folder, more=""):
    file = folder / "canary.yaml"
    routes = {"fast": "http://127.0.0.1:1", "trusted": "http://127.0.0.1:2"}
    file.write_text(SHORT.format(sample="5%", more=more, **routes))
    return Gateway(load_canary(file))


def ask(admin, method, path, body=b"", **headers):
    """(status, headers, body) of one request, without a socket."""
    sent = []
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def receive():
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(event):
        sent.append(event)

    given = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": given}
    asyncio.run(admin({**scope, "query_string": b""}, receive, send))
    text = b"".join(e.get("body", b"") for e in sent)
    found = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], found, json.loads(text) if text else None


def by_json_path(path, value):
    """What ``{$.a.b}`` finds, as far as Argo's documentation uses it."""
    for name in re.fullmatch(r"\{\$\.([\w.]+)\}", path)[1].split("."):
        value = value[name]
    return value


def test_argo_reads_a_boolean_and_an_object_at_its_documented_paths(tmp_path):
    admin = Admin(a_gateway(tmp_path), "right")
    key = {"authorization": "Bearer right"}
    status, headers, body = ask(admin, "GET", "/v1/analysis/fast", **key)
    assert status == 200 and headers["content-type"] == "application/json"
    assert by_json_path("{$.data.ok}", body) is False
    assert by_json_path("{$.data}", body)["outcome"] == "no_data"
    assert ask(admin, "GET", "/v1/analysis/other", **key)[0] == 404
    assert ask(admin, "GET", "/v1/analysis/fast")[0] == 401


@pytest.mark.parametrize(
    ("hook", "payload", "status"),
    [
        ("rollout", HOOK, 200),
        ("confirm-promotion", HOOK, 403),
        ("rollback", HOOK, 403),
        ("event", EVENT, 200),
    ],
)
def test_flagger_is_let_in_by_the_token_in_its_metadata(
    tmp_path, hook, payload, status
):
    admin = Admin(a_gateway(tmp_path), "right")
    path = f"/hooks/flagger/{hook}"
    assert ask(admin, "POST", path, payload)[0] == status
    wrong = {**payload, "metadata": {"token": "wrong"}}
    for body in (wrong, {**payload, "metadata": None}, {}, {"metadata": {"token": 3}}):
        assert ask(admin, "POST", path, body)[0] == 401


def test_the_token_opens_webhooks_and_nothing_else(tmp_path):
    gateway = a_gateway(tmp_path)
    admin = Admin(gateway, "right")
    assert ask(admin, "POST", "/v1/start", HOOK)[0] == 401
    assert gateway.store.read("fast").phase == "ready"
    no_key = Admin(gateway, None)
    cross = {"sec_fetch_site": "cross-site"}
    assert ask(no_key, "POST", "/hooks/flagger/rollout", HOOK, **cross)[0] == 401
    assert ask(no_key, "POST", "/hooks/flagger/rollout", HOOK)[0] == 200


@pytest.mark.parametrize(
    "key", [{"authorization": "Bearer right"}, {"x_api_key": "right"}]
)
def test_a_flag_has_the_documented_fields_under_both_kinds_of_key(tmp_path, key):
    admin = Admin(a_gateway(tmp_path), "right")
    status, _, found = ask(admin, "POST", FLAG, CONTEXT, **key)
    assert status == 200
    assert found == {
        "key": "fast",
        "value": False,
        "variant": "baseline",
        "reason": "SPLIT",
        "metadata": {"route": "fast"},
    }
    assert ask(admin, "POST", FLAG, CONTEXT, x_api_key="wrong")[0] == 401


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"context": {}}, "TARGETING_KEY_MISSING"),
        ({}, "TARGETING_KEY_MISSING"),
        ({"context": {"targetingKey": 3}}, "TARGETING_KEY_MISSING"),
        ({"context": "u1"}, "INVALID_CONTEXT"),
        (b"{", "PARSE_ERROR"),
    ],
)
def test_what_cannot_be_evaluated_has_a_code_and_details(tmp_path, body, code):
    admin = Admin(a_gateway(tmp_path), None)
    status, _, found = ask(admin, "POST", FLAG, body)
    assert (status, found["key"], found["errorCode"]) == (400, "fast", code)
    assert found["errorDetails"]
    status, _, found = ask(admin, "POST", FLAGS, body)
    assert (status, found["errorCode"], "key" in found) == (400, code, False)


def test_an_unknown_flag_is_not_found(tmp_path):
    status, _, found = ask(
        Admin(a_gateway(tmp_path), None), "POST", f"{FLAGS}/other", CONTEXT
    )
    assert (status, found["key"], found["errorCode"]) == (
        404,
        "other",
        "FLAG_NOT_FOUND",
    )


def test_a_split_a_client_cannot_know_is_one_failed_flag_among_all(tmp_path):
    admin = Admin(a_gateway(tmp_path, "  traffic: {sticky_by: prompt}\n"), None)
    assert ask(admin, "POST", FLAG, CONTEXT)[0] == 400
    status, _, found = ask(admin, "POST", FLAGS, CONTEXT)
    assert status == 200
    assert [flag["errorCode"] for flag in found["flags"]] == ["GENERAL"]


def test_an_unchanged_answer_is_not_sent_again_and_a_changed_one_is(tmp_path):
    gateway = a_gateway(tmp_path, "  steps: [0.999]\n")
    admin = Admin(gateway, None)
    status, headers, _ = ask(admin, "POST", FLAGS, CONTEXT)
    tag = headers["etag"]
    assert status == 200 and re.fullmatch(r'"\w+"', tag)
    status, headers, body = ask(
        admin, "POST", FLAGS, CONTEXT, if_none_match=f'"x", {tag}'
    )
    assert (status, body, headers["etag"]) == (304, None, tag)
    gateway.command("start", actor="test")
    status, headers, body = ask(admin, "POST", FLAGS, CONTEXT, if_none_match=tag)
    assert status == 200 and headers["etag"] != tag and body["flags"][0]["value"]
