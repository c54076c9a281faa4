"""Logs of evaluation tools as cases: the same prompts, asked again of your routes."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from routeproof.workloads.case import Case
from routeproof.workloads.cases import case_problem
from routeproof.workloads.importers.lines import Imported, Line, read_lines, user
from routeproof.workloads.results.inspect_ai import attached, read_log
from routeproof.workloads.results.loose import count, mapping, objects, text

LIKELIHOOD = "documents scored by the likelihood of given answers, not by an answer"
ROLES = ("system", "developer", "user")
COMPARED = {
    "exact_match": "exact_match",
    "exact": "exact_match",
    "match": "contains",
    "includes": "contains",
    "contains": "contains",
    "choice": "choice",
}
"""Scorers of other tools to what comes nearest here; the rest is kept for a judge."""


def lm_eval_cases(path: Path) -> Imported:
    """Cases of a sample log of lm-evaluation-harness (``samples_*.jsonl``).

    Prompts, stops and lengths as they were sent. Documents whose given answers were
    ranked by likelihood ask for no answer and are left out.
    """
    left: Counter[str] = Counter()
    cases = []
    needs = ("doc_id", "target", "arguments", "metrics")
    for line in read_lines(path, "a sample log of lm-evaluation-harness", needs):
        case = _lm_eval(line, path.stem.removeprefix("samples_"))
        if case is None:
            left[LIKELIHOOD] += 1
        else:
            cases.append(case)
    return Imported(tuple(cases), dict(left))


def _lm_eval(line: Line, task: str) -> Case | None:
    first = mapping(line.mapping("arguments").get("gen_args_0"))
    asked, settings = first.get("arg_0"), first.get("arg_1")
    if isinstance(asked, list) and len(asked) == 1:
        asked = asked[0]
    if not isinstance(asked, str):
        raise line.error("`arguments` holds no prompt")
    if isinstance(settings, str):
        return None
    messages = _messages(asked)
    scorers = [COMPARED[n] for n in line.texts("metrics") if n in COMPARED]
    return _checked(
        line,
        Case(
            id=f"{task}-{line.name('doc_id')}",
            class_=task,
            messages=messages,
            prompt=asked if messages is None else None,
            parameters=_parameters(mapping(settings)),
            reference=line.row.get("target"),
            scorers=tuple(dict.fromkeys(scorers)) or ("degeneration",),
        ),
    )


def _messages(asked: str) -> tuple[dict[str, Any], ...] | None:
    """Chat messages, when the prompt is a JSON list of them."""
    if not asked.lstrip().startswith("["):
        return None
    try:
        found = msgspec.json.decode(asked, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return None
    return tuple(found) or None


def _parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"max_tokens": count(settings.get("max_gen_toks")) or 256}
    stops = settings.get("until")
    stops = [stops] if isinstance(stops, str) else stops
    if isinstance(stops, list) and (kept := [s for s in stops if text(s)]):
        found["stop"] = kept
    return found


def inspect_cases(path: Path) -> Imported:
    """Cases of an Inspect log: what was sent before the first answer of a sample.

    The epochs of a sample are one case: set ``trials`` to ask it several times.
    """
    header, samples = read_log(path)
    task = str(mapping(header.get("eval")).get("task") or "inspect")
    names = [str(one.get("name")) for one in _scores(header)]
    cases: dict[str, Case] = {}
    for number, sample in enumerate(samples, 1):
        line = Line(path, number, sample)
        case = _checked(line, _inspect(line, task, names))
        cases.setdefault(case.id, case)
    return Imported(tuple(cases.values()))


def _scores(header: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return objects(mapping(header.get("results")).get("scores"))


def _inspect(line: Line, task: str, names: list[str]) -> Case:
    target = line.row.get("target")
    choices = line.row.get("choices")
    scored = list(mapping(line.row.get("scores"))) or names
    scorers = tuple(dict.fromkeys(COMPARED[n] for n in scored if n in COMPARED))
    if "choice" in scorers and not isinstance(choices, list):
        scorers = ("contains",)
    return Case(
        id=f"{task}-{line.name('id')}",
        class_=task,
        messages=_before_answer(line),
        parameters={"max_tokens": 512},
        reference=target.strip() if isinstance(target, str) else target,
        scorers=scorers or ("degeneration",),
        options={"choices": choices} if "choice" in scorers else {},
    )


def _before_answer(line: Line) -> tuple[dict[str, Any], ...]:
    found = []
    for message in objects(line.row.get("messages")):
        if message.get("role") not in ROLES:
            break
        said = attached(_content(message), line.row)
        found.append({"role": message["role"], "content": said})
    if found:
        return tuple(found)
    return (user(line.text("input")),)


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in objects(content))
    return str(content or "")


def _checked(line: Line, case: Case) -> Case:
    if problem := case_problem(case):
        raise line.error(problem)
    return case
