"""Fenced blocks of the documentation, and how each kind is put to the test."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import yaml
from click.testing import CliRunner

from routeproof.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
FENCE = re.compile(
    r"^(?:<!-- *(?P<mark>[^\n]*?) *-->\n\n?)?"
    r"(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<text>.*?)^ *```$",
    re.M | re.S,
)
HEAD = re.compile(r" (?:\|\||&&|[|&;]|> )")
SHELL_SIGNS = re.compile(r"[|&;<>$`*(]")


@dataclass(frozen=True)
class Block:
    """One fenced block; ``mark`` is the comment right above it."""

    page: Path
    line: int
    language: str
    text: str
    mark: str | None

    @property
    def not_run(self):
        return (self.mark or "").startswith("not run: ")

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages():
    """Every page whose blocks are promises: docs, readme, contributing, examples."""
    found = [*sorted(DOCS.rglob("*.md")), *sorted(EXAMPLES.rglob("*.md"))]
    return [*found, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, match.start("language")) + 1,
            language=match["language"].strip(),
            text=match["text"],
            mark=match["mark"],
        )
        for match in FENCE.finditer(text)
    ]


def commands(text):
    """The commands of a shell block, up to a pipe or the like; comments left out."""
    joined = re.sub(r"\$\(.*\)", "VALUE", text.replace("\\\n", " "))
    heads = [HEAD.split(line)[0] for line in joined.splitlines()]
    lines = [shlex.split(line, comments=True) for line in heads]
    return [words for words in lines if words]


def check_words(words):
    """Parse a ``routeproof`` command without running it: rotten options fail."""
    command, arguments, context = app, words[1:], None
    name = "routeproof"
    while True:
        context = command.make_context(name, list(arguments), parent=context)
        if not isinstance(command, click.Group):
            return
        rest = [*context._protected_args, *context.args]
        name, command, arguments = command.resolve_command(context, rest)


def checked(words):
    """``None``, or what click says; a file that is not there is no rot."""
    try:
        check_words(words)
    except click.UsageError as error:
        if "does not exist" not in error.format_message():
            return error.format_message()
    except click.exceptions.Exit:
        pass
    return None


def is_plain(block):
    """Whether a shell block is nothing but routeproof commands."""
    lines = commands(block.text)
    return not SHELL_SIGNS.search(block.text) and all(
        words[0] == "routeproof" for words in lines
    )


def run_here(block):
    """Run plain commands in this process; returns all they printed."""
    said = []
    for words in commands(block.text):
        result = CliRunner().invoke(app, words[1:])
        said.append(result.output)
        assert result.exit_code in {0, 1}, (
            f"{block}: {shlex.join(words)}: exit {result.exit_code}\n"
            f"{result.output}\n{result.exception!r}"
        )
    return "".join(said)


GOES_ON = "set -uEo pipefail; trap 'code=$?; [ $code -le 1 ] || exit $code' ERR\n"
"""An exit code of 1 is a verdict below what was required, not a broken command."""


def run_in_shell(text, folder, **environment):
    """Run a shell block as a reader would, with this environment's commands."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", GOES_ON + text],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def yaml_scripts(document):
    """Shell lines of a CI file: ``run`` and ``script`` entries, wherever they are."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in {"run", "script", "after_script", "before_script"}:
                yield from value if isinstance(value, list) else value.splitlines()
            else:
                yield from yaml_scripts(value)
    elif isinstance(document, list):
        for each in document:
            yield from yaml_scripts(each)


def yaml_uses(document):
    """Uses of the product's own action: what is given to it."""
    if isinstance(document, dict):
        if str(document.get("uses", "")).startswith("routeproof/"):
            yield document.get("with", {})
        for value in document.values():
            yield from yaml_uses(value)
    elif isinstance(document, list):
        for each in document:
            yield from yaml_uses(each)


def load_yaml(block):
    return yaml.safe_load(block.text)
