"""A first proof file, from two addresses: asked at a terminal, or from options."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from fakes.openai_server import json_reply, serving_in_thread

from routeproof.cli.app import app
from routeproof.cli.init_questions import share
from routeproof.jobs.init import Choices, differing, init_proof
from routeproof.proof.file import load_proof
from routeproof.routes.read_back import ReadBack

MODELS = json_reply({"object": "list", "data": [{"id": "toy", "object": "model"}]})


def said(**fields):
    named = {name.replace("__", "."): value for name, value in fields.items()}
    return ReadBack(engine="vllm", fields=named, cannot_tell=(), models=("toy",))


def written(folder, baseline, candidate, **choices):
    path = folder / "proof.yaml"
    path.write_text(
        init_proof(
            baseline,
            candidate,
            baseline_url="http://127.0.0.1:1/v1",
            candidate_url="http://127.0.0.1:2/v1",
            choices=Choices(**choices),
        )
    )
    return path


def test_what_both_endpoints_tell_otherwise_is_what_is_under_test():
    baseline = said(kv_cache="bf16", weights="bf16", engine__version="1")
    candidate = said(kv_cache="fp8_e4m3", weights="torch.bfloat16")
    assert differing(baseline, candidate) == ("kv_cache",)
    drafting = said(speculation__method="eagle3", speculation__draft_tokens="4")
    assert differing(said(), drafting) == ("speculation",)
    assert differing(baseline, baseline) == ()


def test_the_file_pins_what_the_endpoints_tell_and_loads(tmp_path):
    baseline = said(revision="abc1234", weights="torch.bfloat16")
    candidate = said(
        speculation__method="eagle3",
        speculation__draft_tokens="3",
        speculation__draft__model="toy-draft",
        speculation__draft__revision="d1",
    )
    proof = load_proof(written(tmp_path, baseline, candidate, changes=("speculation",)))
    assert (proof.baseline.revision, proof.baseline.weights) == ("abc1234", "bf16")
    speculation = proof.candidate.speculation
    assert (speculation.method, speculation.draft_tokens) == ("eagle3", 3)
    assert (speculation.draft.model, speculation.draft.revision) == ("toy-draft", "d1")


def test_what_nobody_tells_is_a_line_to_fill_in(tmp_path):
    text = written(tmp_path, said(), said(), changes=("kv_cache",)).read_text()
    for name in ("revision", "weights", "tokenizer", "hardware"):
        assert f"  # {name}:   # the endpoint cannot tell" in text
    assert "kv_cache: ?   # please say" in text


@pytest.mark.parametrize(
    ("text", "value"), [("2", 0.02), ("0.02", 0.02), ("5%", 0.05), ("0.5 %", 0.005)]
)
def test_a_loss_is_read_in_points_or_as_a_share(text, value):
    assert share(text) == pytest.approx(value)


@contextlib.contextmanager
def two_endpoints():
    with serving_in_thread(MODELS) as one, serving_in_thread(MODELS) as two:
        yield one.url, two.url


@pytest.mark.slow
def test_without_a_terminal_nothing_is_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with two_endpoints() as (one, two):
        words = ["init", "--baseline", one, "--candidate", two]
        vague = CliRunner().invoke(app, words)
        assert vague.exit_code != 0 and "--changes" in str(vague.exception)
        done = CliRunner().invoke(
            app, [*words, "--changes", "weights", "--tolerance", "5"]
        )
    assert done.exit_code == 0, done.output
    text = (tmp_path / "proof.yaml").read_text()
    assert "tolerance: 0.05" in text and "changes: [weights]" in text


@pytest.mark.slow
def test_at_a_terminal_every_choice_is_asked_and_explained(tmp_path):
    with two_endpoints() as (one, two):
        answers = [one, two, "kv_cache", "", "many", "3", "0.7", ""]
        screen, code = at_a_terminal(["init", "-o", "asked.yaml"], answers, tmp_path)
    assert code == 0, screen
    for words in ("you trust", "Agreed before the run", "not a number"):
        assert words in screen
    text = (tmp_path / "asked.yaml").read_text()
    assert "tolerance: 0.03" in text
    assert "temperature: 0.7" in text and "trials: 4" in text


def at_a_terminal(words, answers, folder):
    """Run a command on a pseudo-terminal and answer each prompt in turn."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "routeproof", *words],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    waiting, screen = list(answers), b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                break
            if not data:
                break
            screen += data
        elif waiting and screen.rstrip(b" ").endswith(b":"):
            os.write(terminal, f"{waiting.pop(0)}\n".encode())
    code = process.wait()
    os.close(terminal)
    return screen.decode(), code
