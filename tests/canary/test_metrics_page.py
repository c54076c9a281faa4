"""The Prometheus page, its alerts with their twins, and the Grafana dashboard."""

import json
import re
import shutil
import subprocess
from importlib import resources

import msgspec
import pytest
from canary_cases import SHORT, a_gateway, ask, run
from fakes.openai_server import json_reply

from routeproof.canary.admin.app import page as served
from routeproof.canary.admin.metric_families import measured
from routeproof.canary.admin.metrics_page import metrics_page
from routeproof.canary.config import load_canary
from routeproof.canary.gateway import Gateway

ALERTS = served("alerts.yaml")
LINE = re.compile(r'^(routeproof_[a-z_]+)\{((?:[a-z]+="[^"\\]*",?)*)\} (-?[0-9.e+-]+)$')
ALLOWED = {"route", "arm", "gate", "outcome", "phase", "side", "status", "feature"}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    async def go():
        more = "  steps: [0.5]\n"
        answer = json_reply({"choices": [{"message": {"content": "x"}}]})
        folder = tmp_path_factory.mktemp("canary")
        async with a_gateway(folder, trusted=answer, fast=answer, more=more) as stand:
            stand.gateway.command("start", actor="test")
            for i in range(8):
                body = json.dumps({"messages": [], "user": f"secret-user-{i}"})
                await ask(stand.url, body.encode())
            stand.gateway.taster.stop()
            return metrics_page(measured(stand.gateway))

    return run(go())


@pytest.mark.slow
def test_every_line_is_of_the_format_and_has_help_and_type(page):
    families = set()
    for line in page.splitlines():
        if line.startswith("# TYPE"):
            families.add(line.split()[2])
        elif not line.startswith("#"):
            found = LINE.match(line)
            assert found, line
            assert found[1] in families


@pytest.mark.slow
def test_no_label_comes_from_a_caller(page):
    names = set(re.findall(r'([a-z]+)="', page))
    assert names <= ALLOWED
    assert "secret-user" not in page


@pytest.mark.slow
def test_a_failing_gate_is_on_the_page_with_the_phase_it_led_to(tmp_path):
    """Which gate and how far it went; the reason in words is in the audit."""
    file = tmp_path / "canary.yaml"
    routes = {"fast": "http://127.0.0.1:1", "trusted": "http://127.0.0.1:2"}
    file.write_text(SHORT.format(sample="5%", more="", **routes))
    gateway = Gateway(load_canary(file))
    gateway.command("start", actor="test")
    for i in range(600):
        for is_canary in (False, True):
            bad = is_canary and i % 10 == 0
            gateway.taster.observe("error", is_canary=is_canary, bad=bad, stratum="s")
    while gateway.store.read("fast").phase != "rolled_back":
        gateway.tick()
    lines = metrics_page(measured(gateway)).splitlines()
    failing = [line for line in lines if 'outcome="fail"' in line]
    assert [line.rpartition(" ")[2] for line in failing] == ["1"]
    assert 'gate="error"' in failing[0]
    assert any('phase="rolled_back"' in line and line.endswith(" 1") for line in lines)
    entry = gateway.store.since(0)[-2]
    assert (entry.reason, entry.numbers["signal.error"]) == (
        "signal error failed",
        "fail",
    )


@pytest.mark.slow
def test_what_was_served_is_counted_by_arm(page):
    rows = re.findall(r'requests_total\{.*arm="(\w+)".*\} (\d+)', page)
    assert sum(int(n) for _, n in rows) == 8
    assert {arm for arm, _ in rows} == {"canary", "control"}
    assert 'routeproof_canary_weight{route="fast"} 0.5' in page


def the_dashboard():
    folder = resources.files("routeproof.canary.admin").joinpath("page")
    return json.loads(folder.joinpath("grafana.json").read_text())


def metric_names():
    source = resources.files("routeproof.canary.admin").joinpath("metric_families.py")
    return set(re.findall(r'"(routeproof_[a-z_]+)"', source.read_text()))


def test_alerts_and_panels_ask_only_for_series_that_exist():
    asked = set(re.findall(r"routeproof_[a-z_]+", ALERTS))
    for panel in the_dashboard()["panels"]:
        for target in panel.get("targets", ()):
            asked |= set(re.findall(r"routeproof_[a-z_]+", target["expr"]))
    assert asked and asked <= metric_names()


def test_every_alert_on_a_series_has_a_twin_for_its_absence():
    rules = msgspec.yaml.decode(ALERTS)["groups"][0]["rules"]
    expressions = [rule["expr"] for rule in rules]
    missing = r"(?:absent\(|unless on \(route\) )(routeproof_[a-z_]+)"
    silent = set(re.findall(missing, "\n".join(expressions)))
    for expression in expressions:
        if re.search(missing, expression) is None:
            named = re.findall(r"routeproof_[a-z_]+", expression)
            assert set(named) <= silent, expression


def test_panels_have_a_title_a_place_and_their_own_id():
    panels = the_dashboard()["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    assert all(p["title"] and {"x", "y", "w", "h"} <= set(p["gridPos"]) for p in panels)


PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="needs promtool on PATH")


def promtool(*words, given=""):
    """What Prometheus' own checker says; fails the test when it finds fault."""
    done = subprocess.run(
        [PROMTOOL, *map(str, words)], input=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.slow
def test_prometheus_takes_the_page_the_rules_and_every_panel(page, tmp_path):
    promtool("check", "metrics", given=page)
    (tmp_path / "alerts.yaml").write_text(ALERTS)
    promtool("check", "rules", tmp_path / "alerts.yaml")
    rules = [
        {"record": f"panel:{panel['id']}:{n}", "expr": target["expr"]}
        for panel in the_dashboard()["panels"]
        for n, target in enumerate(panel.get("targets", ()))
    ]
    groups = {"groups": [{"name": "panels", "rules": rules}]}
    (tmp_path / "panels.yaml").write_text(json.dumps(groups))
    promtool("check", "rules", tmp_path / "panels.yaml")


FIRES = """\
rule_files: [alerts.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'routeproof_canary_state{route="r", phase="rolled_back"}'
        values: '1x60'
      - {series: 'routeproof_scorer_lag_seconds{route="r"}', values: '600x60'}
    alert_rule_test:
      - eval_time: 40m
        alertname: CanaryRolledBack
        exp_alerts:
          - exp_labels: {route: r, phase: rolled_back}
            exp_annotations: {summary: "r was rolled back"}
      - eval_time: 40m
        alertname: CanaryScorerLags
        exp_alerts:
          - exp_labels: {route: r}
            exp_annotations: {summary: "r scores answers late"}
      - eval_time: 40m
        alertname: CanarySilent
        exp_alerts: []
      - eval_time: 40m
        alertname: CanaryWeightSilent
        exp_alerts:
          - exp_annotations: {summary: "no canary reports its weight"}
      - eval_time: 40m
        alertname: CanaryRollbackSilent
        exp_alerts:
          - exp_labels: {route: r, phase: rolled_back}
            exp_annotations: {summary: "r went back and nobody knows how fast"}
"""


@needs_promtool
@pytest.mark.slow
def test_alerts_fire_on_what_is_wrong_and_their_twins_on_what_is_gone(tmp_path):
    (tmp_path / "alerts.yaml").write_text(ALERTS)
    (tmp_path / "fires.yaml").write_text(FIRES)
    promtool("test", "rules", tmp_path / "fires.yaml")
