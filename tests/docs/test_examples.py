"""The examples do what their pages say they do."""

import json
import shutil
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from doc_blocks import EXAMPLES, ROOT, blocks, run_in_shell

pytestmark = [pytest.mark.slow, pytest.mark.alone]

BUSY = "the client was the bottleneck"
"""What a run on a machine with other work says; it gives no verdict then."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(EXAMPLES, folder / "examples")
    return folder


def follow(home, name, **environment):
    """Run the commands of an example's page; returns what they printed."""
    page = home / "examples" / name / "README.md"
    said = ""
    for block in blocks_of(page):
        done = run_in_shell(block.text, home, **environment)
        assert done.returncode in {0, 1, 3}, f"{block}\n{done.stdout}{done.stderr}"
        if done.returncode == 3:
            assert BUSY in done.stdout + done.stderr, done.stdout + done.stderr
        said += done.stdout
    return said


def blocks_of(page):
    original = EXAMPLES / page.parent.name / "README.md"
    return [b for b in blocks(original) if b.language == "bash" and not b.not_run]


def judged(home, number):
    return json.loads((home / "runs" / number / "judgement.json").read_text())


def gate(judgement, name):
    return next(g["status"] for g in judgement["gates"] if g["gate"] == name)


def changed(judgement):
    return [c["field"] for c in judgement["evidence"]["routes"]["changes"]]


def decision_is(judgement, *expected):
    """The verdict of the page, or none where the machine had no time to measure."""
    verdict = judgement["verdict"]
    if verdict["decision"] == "no_verdict":
        assert any(BUSY in reason for reason in verdict["reasons"])
    else:
        assert verdict["decision"] in expected


EXPECTED = {
    "02-fp8-weights": (["weights"], "passed", ("pilot", "wait")),
    "03-fp8-kv-cache": (["kv_cache"], "failed", ("avoid",)),
    "05-engine-upgrade": (["engine.version"], "passed", ("avoid", "wait")),
    "06-chat-template": (
        ["tokenizer.chat_template", "tokenizer.chat_template_digest"],
        "failed",
        ("avoid",),
    ),
    "07-trace-replay": (["weights"], "passed", ("wait",)),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_ends_as_its_page_says(home, name):
    fields, correctness, decisions = EXPECTED[name]
    follow(home, name)
    judgement = judged(home, name[:2])
    assert changed(judgement) == fields
    assert gate(judgement, "inventory") == gate(judgement, "parity") == "passed"
    assert gate(judgement, "correctness") == correctness
    decision_is(judgement, *decisions)


def test_the_action_of_the_repository_holds_a_build_to_its_verdict(home):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    [step] = [s for s in action["runs"]["steps"] if s.get("id") == "proof"]
    folder = home / "examples" / "08-ci-gate"
    given = {
        name.upper(): str(entry.get("default", ""))
        for name, entry in action["inputs"].items()
    }
    given |= {"PROOF": "proof.yaml", "REQUIRE": "wait", "INCONCLUSIVE": "skipped"}
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        (home / name).touch()
        given[name] = str(home / name)
    done = run_in_shell(step["run"], folder, **given)
    judgement = json.loads((folder / "runs/ci/judgement.json").read_text())
    decision = judgement["verdict"]["decision"]
    decision_is(judgement, "pilot", "wait")
    assert done.returncode == (3 if decision == "no_verdict" else 0), done.stderr
    output = (home / "GITHUB_OUTPUT").read_text().splitlines()
    assert output == [f"verdict={decision}", "report=runs/ci/report.html"]
    assert "routeproof" in (home / "GITHUB_STEP_SUMMARY").read_text()
    suites = ElementTree.parse(folder / "runs/ci/junit.xml").getroot()
    assert len(suites) == 8
    gitlab = yaml.safe_load((folder / "gitlab.yml").read_text())["route"]
    done = run_in_shell("\n".join(gitlab["after_script"]), folder)
    assert done.returncode == 0, done.stderr
    assert (folder / gitlab["artifacts"]["reports"]["junit"]).exists()


def test_a_proof_sits_in_a_test_suite(home):
    folder = home / "examples" / "08-ci-gate"
    done = run_in_shell(
        "python -m pytest -q -p no:cacheprovider --rootdir . test_route.py", folder
    )
    if BUSY in done.stdout:
        pytest.skip("this machine has no time to measure")
    assert done.returncode == 0, done.stdout
    assert "verdict      " in done.stdout


def test_the_search_for_a_draft_length_has_a_row_for_each(home):
    said = follow(home, "04-draft-length")
    found = json.loads((home / "runs" / "04" / "tune.json").read_text())
    assert [row["draft_tokens"] for row in found["rows"]] == [1, 3]
    one, three = (row["tokens_per_pass"] for row in found["rows"])
    assert three > one > 1.3
    assert "at 1 streams" in said


def test_the_canary_is_drilled(home, tmp_path):
    folder = home / "examples" / "09-canary"
    for path in (folder / "run.sh", folder / "canary.yaml"):
        text = path.read_text()
        for port, free in zip(("8000", "8001"), free_ports(2), strict=True):
            text = text.replace(port, free)
        path.write_text(text)
    said = follow(home, "09-canary")
    assert "evidence: " in said


PORTS = {}


def free_ports(count):
    """Free ports, the same ones on every call."""
    import socket

    if not PORTS:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        PORTS["free"] = [str(each.getsockname()[1]) for each in sockets]
        for each in sockets:
            each.close()
    return PORTS["free"]


def test_a_scorer_of_ones_own_is_a_question_of_the_proof(home, tmp_path):
    page = home / "examples" / "10-own-scorer"
    there = tmp_path / "site"
    install = f"python -m pip install -q --no-deps --no-build-isolation -t {there} ."
    done = run_in_shell(install, page)
    assert done.returncode == 0, done.stderr
    done = run_in_shell(
        "routeproof qualify proof.yaml --out ../../runs/10 --require wait",
        page,
        PYTHONPATH=str(there),
    )
    assert done.returncode in {0, 1, 3}, done.stderr
    judgement = judged(home, "10")
    correctness = next(g for g in judgement["gates"] if g["gate"] == "correctness")
    assert "ticket" in {check["name"] for check in correctness["checks"]}


def test_a_scorer_that_is_not_installed_is_named(home):
    page = home / "examples" / "10-own-scorer"
    done = run_in_shell("routeproof qualify proof.yaml --out ../../runs/none", page)
    assert "ticket" in done.stderr
