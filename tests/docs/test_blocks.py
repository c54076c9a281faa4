"""Every fenced block of the documentation still works.

A block is run, loaded or parsed by its language. One that cannot be run here says why
in a comment right above it (``<!-- not run: reason -->``); its routeproof commands are
parsed all the same.
"""

import json
import shutil
import time
import urllib.request
from pathlib import Path

import msgspec
import pytest
import yaml
from doc_blocks import (
    DOCS,
    EXAMPLES,
    ROOT,
    blocks,
    checked,
    commands,
    is_plain,
    load_yaml,
    pages,
    run_here,
    run_in_shell,
    yaml_scripts,
    yaml_uses,
)
from stored_runs import a_run

from routeproof.canary.config import load_canary
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.simulator.route import SimulatedRoute

LANGUAGES = {"bash", "yaml", "json", "python", "sql", "text"}
ALL = [block for page in pages() for block in blocks(page)]
PROSE = [block for block in ALL if EXAMPLES not in block.page.parents]
RUN_PAGES = sorted(
    {b.page for b in PROSE if b.language in {"bash", "python"} and not b.not_run}
)
SMALL = """\
baseline: {endpoint: "http://127.0.0.1:8000/v1", model: my-model}
candidate: {like: baseline, endpoint: "http://127.0.0.1:8001/v1", changes: [kv_cache]}
"""


def of(language):
    return [block for block in ALL if block.language == language]


def page_id(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("block", ALL, ids=str)
def test_a_block_says_what_it_is(block):
    assert block.language in LANGUAGES
    if block.mark and block.mark.startswith("not run"):
        assert len(block.mark.removeprefix("not run: ")) > 10, "say why"


@pytest.mark.parametrize("block", of("bash"), ids=str)
def test_options_of_every_command_are_there(block):
    for words in commands(block.text):
        if words[0] == "routeproof":
            assert checked(words) is None, words


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_json_is_json(block):
    lines = block.text.splitlines()
    assert lines
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        for line in lines:
            json.loads(line)


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_yaml_is_a_file_that_is_accepted(block, tmp_path):
    document = load_yaml(block)
    if block.mark == "a simulated route":
        msgspec.convert(document, SimulatedRoute)
    elif document.keys() <= set(Proof.__struct_fields__):
        whole = {**yaml.safe_load(SMALL), **document}
        path = tmp_path / "proof.yaml"
        path.write_text(yaml.safe_dump(whole))
        load_proof(path)
        if "canary" in document:
            routes = tmp_path / "routes"
            routes.mkdir()
            for port, name in enumerate(("bf16", "fp8-kv-dflash"), start=8000):
                spec = f"endpoint: http://127.0.0.1:{port}/v1\nmodel: my-model\n"
                (routes / f"{name}.yaml").write_text(spec)
            load_canary(path)
    else:
        check_ci(document)


def check_ci(document):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    used = list(yaml_uses(document))
    lines = list(yaml_scripts(document))
    assert used or lines, "neither a proof file nor a CI file"
    for given in used:
        assert given.keys() <= action["inputs"].keys()
    for line in lines:
        for words in commands(line):
            if words[0] == "routeproof":
                assert checked(words) is None, words


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_the_ci_files_of_the_example_are_accepted(name):
    check_ci(yaml.safe_load((EXAMPLES / "08-ci-gate" / name).read_text()))


@pytest.fixture(scope="session")
def engines(tmp_path_factory):
    """Two simulated engines: what the pages call ports 8000 and 8001."""
    folder = tmp_path_factory.mktemp("engines")
    started, urls = [], []
    import subprocess
    import sys

    command = [sys.executable, "-m", "routeproof", "simulate", "--port", "0"]
    for more in ((), ("--draft-tokens", "4")):
        log = (folder / f"{len(started)}.log").open("w+")
        process = subprocess.Popen(
            [*command, *more, "--speed", "20"], stdout=log, stderr=log
        )
        started.append((process, log))
    try:
        for process, log in started:
            urls.append(_address(process, Path(log.name)))
        yield urls
    finally:
        for process, log in started:
            process.terminate()
            process.wait()
            log.close()


def _address(process, log):
    """The URL a starting engine prints, once it answers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        said = log.read_text()
        if "serving at " in said:
            url = said.split("serving at ")[1].split()[0].removesuffix("/v1")
            with urllib.request.urlopen(f"{url}/health"):
                return url
        assert process.poll() is None, said
    raise AssertionError("the simulated engine did not start")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder as a reader has it: examples, and two runs."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(EXAMPLES, folder / "examples")
    for name in ("yesterday", "today"):
        a_run(folder / "runs" / name, cases=60)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_PAGES, ids=page_id)
def test_commands_and_programs_of_a_page_run(page, world, engines, monkeypatch):
    monkeypatch.chdir(world)
    for block in blocks(page):
        if block.not_run:
            continue
        block = with_addresses(block, engines)
        if block.language == "bash":
            if is_plain(block):
                run_here(block)
            else:
                done = run_in_shell(block.text, world)
                assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        elif block.language == "python":
            run_program(block, world)


def with_addresses(block, engines):
    """The same block with the engines' real addresses."""
    from dataclasses import replace

    text = block.text
    for name, url in zip(("127.0.0.1:8000", "127.0.0.1:8001"), engines, strict=True):
        text = text.replace(name, url.removeprefix("http://"))
    return replace(block, text=text)


def run_program(block, world):
    if "def test_" not in block.text:
        exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})
        return
    path = world / "test_of_the_page.py"
    path.write_text(block.text)
    done = run_in_shell(
        f"python -m pytest -q -p no:cacheprovider --rootdir . {path.name}", world
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"


def test_pages_name_no_page_that_is_not_there():
    import re

    for page in pages():
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page_id(page)}: {target}"


def test_every_page_is_in_the_contents_of_the_site():
    site = (ROOT / "zensical.toml").read_text()
    for page in sorted(DOCS.rglob("*.md")):
        assert f'"{page.relative_to(DOCS)}"' in site, page
