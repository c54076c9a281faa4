"""The script of a simulated route: right and wrong answers to known cases.

Candidates are made from a case's reference, then scored by the case's own headline
scorer; what scores best is the right answer, what scores worst the wrong one. So the
script is right by the very rule that a run is judged by.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from routeproof.scorers.refusal import should_refuse
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.table import SCORERS
from routeproof.scorers.text_match import as_texts
from routeproof.scorers.tool_call import read_expected
from routeproof.simulator import draws, skills
from routeproof.simulator.ask import prompt_key
from routeproof.simulator.book import Book, Entry, Said
from routeproof.simulator.instances import instance
from routeproof.workloads.case import Case

_REFUSE = "I'm sorry, but I can't help with that."
_OTHER_REFUSAL = "I cannot help with this request."


def book_of(cases: Iterable[Case]) -> Book:
    """A script that knows a right and a wrong answer to each case, where one exists.

    Prompts that the simulated engine can answer by a skill (counting, repeating) are
    left to it, so that stop strings and token limits have something to cut.
    """
    known = (case for case in cases if not skills.knows(_last_text(case)))
    return Book({key_of(case): entry_of(case) for case in known})


def _last_text(case: Case) -> str:
    if case.messages is None:
        return case.prompt or ""
    content = case.messages[-1].get("content")
    return content if isinstance(content, str) else ""


def key_of(case: Case) -> str:
    """The name under which a case's prompt is in the book."""
    return prompt_key(case.messages, case.prompt)


def entry_of(case: Case) -> Entry:
    """Right, reworded and wrong answers of one case, told apart by its scorer."""
    name = case.scorers[0]
    scored = [(said, _value(case, name, said)) for said in _candidates(case, name)]
    known = [(said, value) for said, value in scored if value is not None]
    best = max((v for _, v in known), default=None)
    worst = min((v for _, v in known), default=None)
    if best is None or worst is None:
        return Entry(case.class_, scored[0][0], ())
    right = [said for said, value in known if value == best]
    wrong = tuple(said for said, value in known if value < best and value == worst)
    other = next((said for said in right[1:] if said != right[0]), None)
    return Entry(case.class_, right[0], wrong, other)


def _value(case: Case, name: str, said: Said) -> float | None:
    """The score, turned so that more is better."""
    scorer = SCORERS.get(name)
    if scorer is None:
        return None
    calls = tuple({"name": n, "arguments": a} for n, a in said.calls)
    answer = ScoredAnswer(
        text=said.text,
        tool_calls=calls,
        finish_reason="tool_calls" if calls else "stop",
    )
    value = scorer.of(case, answer).value
    return None if value is None else value if scorer.higher_is_better else -value


def _candidates(case: Case, name: str) -> list[Said]:
    made = _MAKERS.get(name, _prose)(case)
    return [*made, *_prose(case)] if name in ("instruction", "regex") else made


def _lead(case: Case, variant: int) -> str:
    """Some sentences before the answer proper: the same case, the same sentences."""
    rng = draws.generator("lead", case.id, variant)
    return skills.filler(18 + rng.randrange(28), rng)


def _prose(case: Case) -> list[Said]:
    rng = draws.generator("prose", case.id)
    length = 90 + rng.randrange(60)
    first = skills.filler(length, rng)
    # The other wording parts from the first one half way, as a near tie would.
    half = first[: first.find(". ", len(first) // 2) + 2]
    return [Said(first), Said(half + skills.filler(length // 2, rng)), Said("!" * 90)]


def _exact(case: Case) -> list[Said]:
    texts = as_texts(case.reference) or ("yes",)
    said = [Said(t) for t in texts] + [Said(f"{t}.") for t in texts]
    return [*said, Said("none of these"), Said("unknown")]


def _contains(case: Case) -> list[Said]:
    texts = as_texts(case.reference) or ("yes",)
    every = " and ".join(texts)
    lead = _lead(case, 0)
    return [
        Said(f"{lead} So the answer is {every}."),
        Said(f"{lead} Therefore it must be {every}."),
        Said(f"{lead} So the answer is not known."),
        Said(f"{lead} Nothing in the question says so."),
    ]


def _numeric(case: Case) -> list[Said]:
    value = str(case.reference).rsplit("####", 1)[-1].strip()
    lead = _lead(case, 0)
    wrong = [f"{lead} The answer is {w}." for w in _near_numbers(value)]
    right = [f"{lead} The answer is {value}.", f"{lead} In all, the answer is {value}."]
    return [Said(t) for t in (*right, *wrong)]


def _near_numbers(value: str) -> tuple[str, ...]:
    try:
        number = float(value.replace(",", ""))
    except ValueError:
        return ("0", "1")
    return tuple(f"{number + step:g}" for step in (1, -1, 10))


def _choice(case: Case) -> list[Said]:
    lead = _lead(case, 0)
    letters = "ABCD"
    right = str(case.reference)
    said = [f"{lead} The answer is {right}.", f"{lead} So the right option is {right}."]
    return [Said(t) for t in (*said, *(f"{lead} The answer is {x}." for x in letters))]


def _json(case: Case) -> list[Said]:
    wanted = case.parameters.get("response_format") or {}
    schema = (wanted.get("json_schema") or {}).get("schema") or case.options.get(
        "schema"
    )
    rng = draws.generator("json", case.id)
    right = case.reference if _is_instance(case) else instance(schema or {}, rng)
    text = json.dumps(right, ensure_ascii=False)
    broken = [Said('{"unexpected": [1, 2'), Said('{"unexpected": [1, 2]}')]
    return [Said(text), Said(json.dumps(right, indent=1)), *broken]


def _is_instance(case: Case) -> bool:
    return isinstance(case.reference, dict) and "properties" not in case.reference


def _calls(case: Case) -> list[Said]:
    expected = read_expected(case.reference)
    if not expected:
        return [
            Said("No tool is needed for this; it can be answered at once."),
            Said(calls=((_tool_name(case), "{}"),)),
        ]
    calls = []
    for call in expected:
        arguments = {
            name: accepted[0]
            for name, accepted in call.accepted.items()
            if name not in call.optional
        }
        calls.append((call.name, json.dumps(arguments, ensure_ascii=False)))
    return [
        Said(calls=tuple(calls)),
        Said(calls=tuple((n, '{"wrong": true}') for n, _ in calls)),
        Said("I would look that up with a tool."),
    ]


def _tool_name(case: Case) -> str:
    tools: Sequence[dict[str, Any]] = case.parameters.get("tools") or ({},)
    return str(tools[0].get("function", {}).get("name", "tool"))


def _refusal(case: Case) -> list[Said]:
    refuses = should_refuse(case)
    comply = f"Here is how it is usually done. {_lead(case, 0)}"
    other = f"Of course. {_lead(case, 1)}"
    said = [Said(_REFUSE), Said(_OTHER_REFUSAL), Said(comply), Said(other)]
    return said if refuses else said[::-1]


_MAKERS: dict[str, Callable[[Case], list[Said]]] = {
    "exact_match": _exact,
    "contains": _contains,
    "regex": _contains,
    "numeric": _numeric,
    "choice": _choice,
    "json_schema": _json,
    "json_schema_fenced": _json,
    "json_fields": _json,
    "tool_call": _calls,
    "refusal": _refusal,
    "over_refusal": _refusal,
    "under_refusal": _refusal,
}
