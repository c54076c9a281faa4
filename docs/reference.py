"""Write the generated parts of the reference pages: `python docs/reference.py`.

A generated part stands between two comments, ``<!-- begin NAME -->`` and
``<!-- end NAME -->``; everything else on a page is written by hand. With ``--check``
nothing is written, and stale pages are named.
"""

import ast
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

import routeproof.errors as errors
from routeproof.cli.app import app
from routeproof.cli.table import COMMANDS
from routeproof.gates.catalogue import checks_page
from routeproof.metrics.reference import metrics_page
from routeproof.proof.schema import json_schema as proof_schema
from routeproof.reports.json_report import json_schema as report_schema

HOME = Path(__file__).parent
WIDTH = 96

API: tuple[tuple[str, str], ...] = (
    ("routeproof.jobs.probe", "probe"),
    ("routeproof.jobs.init", "init_proof"),
    ("routeproof.jobs.diff", "diff"),
    ("routeproof.jobs.plan", "plan"),
    ("routeproof.jobs.qualify", "qualify"),
    ("routeproof.jobs.judge", "judge"),
    ("routeproof.jobs.report", "report"),
    ("routeproof.jobs.report", "load_judgement"),
    ("routeproof.jobs.show", "show"),
    ("routeproof.jobs.compare", "compare"),
    ("routeproof.jobs.history", "history"),
    ("routeproof.jobs.load", "load"),
    ("routeproof.jobs.tune", "tune"),
    ("routeproof.jobs.acceptance", "acceptance"),
    ("routeproof.jobs.monitor", "monitor"),
    ("routeproof.jobs.selftest", "selftest"),
    ("routeproof.jobs.drill", "drill"),
    ("routeproof.proof.file", "load_proof"),
)
"""Functions a program calls: one for each command, and the reader of proof files."""


def cli_page() -> str:
    """The help of every command, as the command line prints it."""
    whole = click.Context(app, info_name="routeproof", **app.context_settings)
    return "\n".join(_commands(whole))


def _commands(group: click.Context) -> Iterator[str]:
    command = group.command
    assert isinstance(command, click.Group)
    for name in command.list_commands(group):
        found = command.get_command(group, name)
        assert found is not None
        inner = click.Context(
            found,
            info_name=name,
            parent=group,
            terminal_width=WIDTH,
            max_content_width=WIDTH,
        )
        level = "##" if group.parent is None else "###"
        yield f"{level} {inner.command_path}\n"
        if group.parent is None:
            yield f"{COMMANDS[name].summary}\n"
        yield f"```text\n{found.get_help(inner)}\n```\n"
        if isinstance(found, click.Group):
            yield from _commands(inner)


def errors_page() -> str:
    """The tree of errors, and what each is."""
    tree = (errors.__doc__ or "").split("::\n\n")[1].split("\n\n")[0]
    lines = ["```text", inspect.cleandoc(tree), "```", ""]
    lines += ["| error | exit code | what happened |", "|---|---|---|"]
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.RouteproofError):
            first = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
            what = " ".join(first.split())
            lines.append(f"| `{kind.__name__}` | {kind.exit_code} | {what} |")
    return "\n".join(lines)


def api_page() -> str:
    """Signature, words and errors of each function of the API."""
    return "\n".join(part for where, name in API for part in _function(where, name))


def _function(where: str, name: str) -> Iterator[str]:
    module = importlib.import_module(where)
    tree = ast.parse(inspect.getsource(module))
    node = next(
        each
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name == name
    )
    given = ast.unparse(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    yield f"## {name}\n"
    yield f"```text\nfrom {where} import {name}\n\n{name}({given}){returns}\n```\n"
    yield f"{ast.get_docstring(node) and _prose(ast.get_docstring(node) or '')}\n"


def _prose(docstring: str) -> str:
    """A Google-style docstring as Markdown: its sections become short lists."""
    lines = []
    for paragraph in docstring.split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head in {"Args:", "Returns:", "Raises:"}:
            lines.append(f"**{head[:-1]}**\n")
            lines += [f"{_item(each)}" for each in _items(rest)]
            lines.append("")
        elif head != "Example:" and not head.startswith(">>>"):
            lines.append(" ".join(paragraph.split()) + "\n")
    return "\n".join(lines).replace("``", "`")


def _items(rest: str) -> list[str]:
    """Entries of a section: a line at the first indent begins one."""
    items: list[str] = []
    for line in rest.splitlines():
        if line.startswith("    ") and not line.startswith("     "):
            items.append(line.strip())
        elif items:
            items[-1] += " " + line.strip()
    return items


def _item(text: str) -> str:
    name, colon, what = text.partition(": ")
    is_named = colon and re.fullmatch(r"[\w, ]+", name)
    return f"- `{name}`: {what}" if is_named else f"- {text}"


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "checks": ("gates.md", checks_page),
    "metrics": ("metrics.md", metrics_page),
    "cli": ("cli.md", cli_page),
    "errors": ("errors.md", errors_page),
    "api": ("api.md", api_page),
}

SCHEMAS = {"proof.json": proof_schema, "report.json": report_schema}


def rewritten(text: str, name: str, part: str) -> str:
    """A page with one generated part replaced."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    body = f"{begin}\n\n{part.strip()}\n\n{end}"
    return re.sub(pattern, lambda _: body, text, flags=re.DOTALL)


def shape(schema: object) -> object:
    """A schema without its prose, which differs between versions of msgspec."""
    if isinstance(schema, dict):
        return {k: shape(v) for k, v in schema.items() if k != "description"}
    return [shape(each) for each in schema] if isinstance(schema, list) else schema


def stale() -> list[str]:
    """Pages and schemas that are not what they would be written as now."""
    found = []
    for name, (page, part) in PARTS.items():
        text = (HOME / page).read_text()
        if rewritten(text, name, part()) != text:
            found.append(page)
    for name, make in SCHEMAS.items():
        path = HOME / "schemas" / name
        kept = json.loads(path.read_text()) if path.exists() else None
        if shape(kept) != shape(json.loads(json.dumps(make()))):
            found.append(f"schemas/{name}")
    return found


def main() -> None:
    """Rewrite every page and schema, or name the stale ones."""
    if "--check" in sys.argv:
        old = stale()
        sys.exit(f"stale: {', '.join(old)}; run docs/reference.py" if old else 0)
    for name, (page, part) in PARTS.items():
        path = HOME / page
        path.write_text(rewritten(path.read_text(), name, part()))
    for name, make in SCHEMAS.items():
        text = json.dumps(make(), indent=2, sort_keys=True)
        (HOME / "schemas" / name).write_text(text + "\n")


if __name__ == "__main__":
    main()
