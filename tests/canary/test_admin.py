"""The admin listener: who gets in, and what other tools read there."""

import asyncio
import json

import pytest
from canary_cases import SHORT

from routeproof.canary.admin.app import Admin
from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway
from routeproof.errors import ConfigError


@pytest.fixture
def gateway(tmp_path):
    file = tmp_path / "canary.yaml"
    routes = {"fast": "http://127.0.0.1:1", "trusted": "http://127.0.0.1:2"}
    file.write_text(SHORT.format(sample="5%", more="", **routes))
    return Gateway(load_canary(file))


def ask(admin, method, path, *, body=None, headers=()):
    """(status, body) of one request, without a socket."""
    sent = []
    data = json.dumps(body).encode() if body is not None else b""

    async def receive():
        return {"type": "http.request", "body": data, "more_body": False}

    async def send(event):
        sent.append(event)

    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    asyncio.run(admin({**scope, "query_string": query.encode()}, receive, send))
    text = b"".join(e.get("body", b"") for e in sent)
    try:
        return sent[0]["status"], json.loads(text)
    except ValueError:
        return sent[0]["status"], text.decode()


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Bearer wrong")],
        [(b"authorization", b"Bearer right"), (b"sec-fetch-site", b"cross-site")],
    ],
)
def test_without_the_right_key_nothing_is_shown_and_nothing_done(gateway, headers):
    admin = Admin(gateway, "right")
    for method, path in (("GET", "/v1/status"), ("POST", "/v1/rollback")):
        assert ask(admin, method, path, headers=headers)[0] == 401
    assert gateway.store.read("fast").phase == "ready"


def test_an_address_others_can_reach_needs_a_key(tmp_path):
    file = tmp_path / "canary.yaml"
    routes = {"fast": "http://127.0.0.1:1", "trusted": "http://127.0.0.1:2"}
    text = SHORT.format(sample="5%", more="", **routes)
    file.write_text(text.replace("admin: 127.0.0.1:0", "admin: 0.0.0.0:0"))
    open_to_all = Gateway(load_canary(file))
    with pytest.raises(ConfigError, match="has no key"):
        Admin(open_to_all, None)
    Admin(open_to_all, "key")


def test_a_command_is_obeyed_at_once_and_its_actor_is_in_the_audit(gateway):
    admin = Admin(gateway, None)
    status, state = ask(admin, "POST", "/v1/start", body={"actor": "ops"})
    assert (status, state["phase"]) == (200, "stepping")
    assert gateway.lease.weight_ppm() == 10_000
    ask(admin, "POST", "/v1/rollback", body={"actor": "ops", "reason": "why"})
    assert gateway.lease.weight_ppm() == 0
    _, audit = ask(admin, "GET", "/v1/audit?since=1")
    assert [(e["actor"], e["action"]) for e in audit] == [
        ("ops", "start"),
        ("ops", "rollback"),
    ]


def test_a_command_out_of_place_is_a_409_with_the_reason(gateway):
    status, said = ask(Admin(gateway, None), "POST", "/v1/resume", body={})
    assert status == 409 and "cannot resume" in said["error"]


@pytest.mark.parametrize("body", [[], "x", {"user": 3}])
def test_a_wrong_body_is_a_400(gateway, body):
    assert ask(Admin(gateway, None), "POST", "/v1/erase", body=body)[0] == 400


def test_analysis_without_evidence_is_not_ok(gateway):
    status, found = ask(Admin(gateway, None), "GET", "/v1/analysis/fast")
    assert status == 200
    assert found["data"]["ok"] is False
    assert found["data"]["outcome"] == "no_data"


def settle(gateway, *, bad_canary, n=2_000):
    """Live evidence of ``n`` answers per arm; the canary fails every ``bad``-th."""
    for i in range(n):
        for name, policy in gateway.config.policies.items():
            if not policy.is_paired:
                is_bad = bad_canary and i % bad_canary == 0
                for is_canary in (False, True):
                    gateway.taster.observe(
                        name,
                        is_canary=is_canary,
                        bad=bool(is_canary and is_bad),
                        stratum="s",
                    )


@pytest.mark.slow
def test_analysis_is_ok_when_every_required_signal_passes_and_only_then(gateway):
    admin = Admin(gateway, None)
    ask(admin, "POST", "/v1/start", body={})
    settle(gateway, bad_canary=0)
    _, found = ask(admin, "GET", "/v1/analysis/fast")
    assert found["data"]["ok"] is True and found["data"]["score"] == 1.0
    ask(admin, "POST", "/v1/rollback", body={})
    _, found = ask(admin, "GET", "/v1/analysis/fast")
    assert (found["data"]["ok"], found["data"]["outcome"]) == (False, "fail")


@pytest.mark.slow
def test_harm_makes_analysis_fail_and_flagger_go_back(gateway):
    admin = Admin(gateway, None)
    ask(admin, "POST", "/v1/start", body={})
    settle(gateway, bad_canary=10, n=600)
    _, found = ask(admin, "GET", "/v1/analysis/fast")
    assert found["data"]["outcome"] == "fail"
    assert "error" in found["data"]["failed"]
    assert ask(admin, "POST", "/hooks/flagger/rollback")[0] == 200
    assert ask(admin, "POST", "/hooks/flagger/rollout")[0] == 403


@pytest.mark.parametrize(
    ("hook", "status"),
    [
        ("rollback", 403),
        ("confirm-rollout", 200),
        ("confirm-promotion", 403),
        ("confirm-traffic-increase", 403),
        ("rollout", 200),
        ("event", 200),
        ("x", 404),
    ],
)
def test_hooks_say_yes_by_200_and_no_by_403(gateway, hook, status):
    assert ask(Admin(gateway, None), "POST", f"/hooks/flagger/{hook}")[0] == status


def test_flag_evaluation_gives_the_arm_the_relay_would_give(gateway):
    admin = Admin(gateway, None)
    path = "/ofrep/v1/evaluate/flags/fast"
    assert ask(admin, "POST", path, body={})[0] == 400
    body = {"context": {"targetingKey": "u1"}}
    status, found = ask(admin, "POST", path, body=body)
    assert (status, found["variant"], found["value"]) == (200, "baseline", False)
    assert ask(admin, "POST", "/ofrep/v1/evaluate/flags/other", body=body)[0] == 404
    status, found = ask(admin, "POST", "/ofrep/v1/evaluate/flags", body=body)
    assert [flag["key"] for flag in found["flags"]] == ["fast"]


@pytest.mark.parametrize("path", ["/alerts.yaml", "/grafana.json", "/metrics"])
def test_what_monitoring_needs_is_served(gateway, path):
    status, text = ask(Admin(gateway, None), "GET", path)
    assert status == 200 and text
