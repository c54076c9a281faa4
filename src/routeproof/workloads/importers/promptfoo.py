"""promptfoo: prompts with variables, tests with assertions."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from routeproof.errors import FormatError
from routeproof.workloads.case import Case
from routeproof.workloads.importers.lines import Imported, read_text, user

VARIABLE = re.compile(r"\{\{\s*(.*?)\s*\}\}")
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*\Z")

Check = tuple[str, Any, dict[str, Any]]
"""Scorer, reference, options."""


def _contains(mode: str) -> Callable[[Any], Check]:
    def check(value: Any) -> Check:
        listed = value if isinstance(value, list) else [value]
        return "contains", [str(one) for one in listed], {"mode": mode}

    return check


def _schema(value: Any) -> Check:
    return "json_schema", None, {"schema": value if isinstance(value, dict) else {}}


CHECKS: dict[str, Callable[[Any], Check]] = {
    "equals": lambda value: ("exact_match", str(value), {"strict": True}),
    "contains": _contains("any"),
    "icontains": _contains("any"),
    "contains-any": _contains("any"),
    "icontains-any": _contains("any"),
    "contains-all": _contains("all"),
    "icontains-all": _contains("all"),
    "regex": lambda value: ("regex", str(value), {}),
    "is-json": _schema,
    "is-refusal": lambda value: ("refusal", None, {"should_refuse": True}),
    "not-is-refusal": lambda value: ("refusal", None, {"should_refuse": False}),
}
"""Assertion of promptfoo to scorer; every other one is left out and counted."""


def promptfoo(path: Path) -> Imported:
    """Cases of a promptfoo file: every prompt with the variables of every test.

    Assertions that need JavaScript, Python or a model are left out and counted; a
    prompt that uses a template expression other than a plain ``{{name}}`` is refused,
    since it would be sent wrong.
    """
    whole = _load(path)
    prompts = [_prompt(one, path) for one in _listed(whole, "prompts", path)]
    tests = _listed(whole, "tests", path)
    shared = whole.get("defaultTest")
    left: Counter[str] = Counter()
    cases = []
    for t, test in enumerate(tests, 1):
        if not isinstance(test, dict):
            raise FormatError(f"test {t} is no mapping", path=path)
        merged = _merged(shared, test)
        for p, prompt in enumerate(prompts, 1):
            name = f"promptfoo-{t:03d}" + (f"-{p}" if len(prompts) > 1 else "")
            cases.append(_case(name, prompt, merged, left, path))
    return Imported(tuple(cases), dict(left))


def _load(path: Path) -> Mapping[str, Any]:
    try:
        whole = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        raise FormatError(
            f"not YAML: {getattr(error, 'problem', error)}", path=path, line=line
        ) from error
    if not isinstance(whole, dict):
        raise FormatError("not a promptfoo file: no mapping", path=path, line=1)
    return whole


def _listed(whole: Mapping[str, Any], key: str, path: Path) -> list[Any]:
    value = whole.get(key)
    if isinstance(value, str) and key == "tests":
        raise FormatError(
            f"`{key}` names another file: {value}",
            path=path,
            hint="put the tests into this file",
        )
    listed = value if isinstance(value, list) else [value]
    if value is None or not listed:
        raise FormatError(
            f"not a promptfoo file: no `{key}`",
            path=path,
            hint=f"it has {', '.join(map(str, whole))}",
        )
    return listed


def _prompt(value: Any, path: Path) -> str:
    text = value.get("raw") if isinstance(value, dict) else value
    if not isinstance(text, str):
        raise FormatError("a prompt is no text", path=path)
    if not text.startswith("file://"):
        return text
    return read_text(path.parent / text.removeprefix("file://"))


def _merged(shared: Any, test: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(shared, dict):
        return dict(test)
    return {
        **shared,
        **test,
        "vars": {**(shared.get("vars") or {}), **(test.get("vars") or {})},
        "assert": [*(shared.get("assert") or ()), *(test.get("assert") or ())],
    }


def _case(
    name: str, prompt: str, test: Mapping[str, Any], left: Counter[str], path: Path
) -> Case:
    scorers: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for one in test.get("assert") or ():
        kind = str(one.get("type")) if isinstance(one, dict) else "none"
        if kind not in CHECKS:
            left[f"assertion `{kind}`"] += 1
            continue
        scorer, reference, more = CHECKS[kind](one.get("value"))
        if scorer in scorers:
            left[f"a second assertion for `{scorer}` in one test"] += 1
            continue
        scorers[scorer] = reference
        options[scorer] = {**more, "reference": reference}
    return Case(
        id=name,
        class_=str((test.get("metadata") or {}).get("class", "promptfoo")),
        messages=(user(_filled(prompt, test.get("vars") or {}, path)),),
        reference=next(iter(scorers.values()), None),
        scorers=tuple(scorers) or ("degeneration",),
        options=options,
    )


def _filled(prompt: str, variables: Mapping[str, Any], path: Path) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if not PLAIN_NAME.match(name):
            raise FormatError(
                f"the prompt holds the expression `{name}`",
                path=path,
                hint="only plain variables such as {{name}} can be filled in",
            )
        if name not in variables:
            raise FormatError(f"no variable `{name}` in the test", path=path)
        return str(variables[name])

    if "{%" in prompt:
        raise FormatError("the prompt holds template statements", path=path)
    return VARIABLE.sub(value, prompt)
