"""Slices: which cases belong together when nobody asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from routeproof.scorers.degeneration import prompt_text
from routeproof.scorers.language import language_of
from routeproof.workloads.case import Case

FEWEST_CASES = 10
"""Smaller slices are not screened: nothing could be said of them."""

READ_CHARACTERS = 2_000
"""The end of a prompt, by which its language is told."""

MOST_VALUES = 12
"""A tag with more values than this is an identifier, not a slice."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What quality is sliced by: tags of each case, and its headline scorer."""

    tags: Mapping[str, Mapping[str, str]]
    headline: Mapping[str, str]

    def ids(self, wanted: Mapping[str, str]) -> frozenset[str]:
        """Cases that carry every tag of ``wanted``; all cases for an empty one."""
        return frozenset(
            case
            for case, tags in self.tags.items()
            if all(tags.get(key) == value for key, value in wanted.items())
        )

    def slices(self) -> list[dict[str, str]]:
        """Every single-tag slice that is worth a look, in a fixed order."""
        values: dict[str, dict[str, int]] = {}
        for tags in self.tags.values():
            for key, value in tags.items():
                counts = values.setdefault(key, {})
                counts[value] = counts.get(value, 0) + 1
        found = []
        for key in sorted(values):
            if not 2 <= len(values[key]) <= MOST_VALUES and key != "class":
                continue
            for value, count in sorted(values[key].items()):
                if count >= FEWEST_CASES and count < len(self.tags):
                    found.append({key: value})
        return found


def case_facts(
    cases: Iterable[Case],
    prompt_tokens: Mapping[str, float],
    output_tokens: Mapping[str, float],
) -> CaseFacts:
    """Tags of every case: its class, its own tags, its form and its lengths.

    Args:
        cases: The cases as sent.
        prompt_tokens: Tokens of the prompt by case, where the baseline tells.
        output_tokens: Median tokens of the baseline's answers by case.
    """
    tags: dict[str, dict[str, str]] = {}
    headline: dict[str, str] = {}
    lengths = (
        ("prompt_length", _thirds(prompt_tokens)),
        ("output_length", _thirds(output_tokens)),
    )
    for case in cases:
        found = {**_form(case), **case.tags, "class": case.class_}
        found |= {key: by[case.id] for key, by in lengths if case.id in by}
        tags[case.id] = found
        if case.scorers:
            headline[case.id] = case.scorers[0]
    return CaseFacts(tags, headline)


def _form(case: Case) -> dict[str, str]:
    users = sum(m.get("role") == "user" for m in case.messages or ())
    asked = case.parameters
    structured = any(key in asked for key in ("response_format", "tools", "grammar"))
    found = {
        "turns": "multi" if users > 1 else "single",
        "structured": "yes" if structured else "no",
    }
    found["tools"] = "yes" if asked.get("tools") else "no"
    if "temperature" in asked:
        found["temperature"] = f"{asked['temperature']:g}"
    language = language_of(prompt_text(case)[-READ_CHARACTERS:])
    return found if language is None else {"language": language, **found}


def _thirds(tokens: Mapping[str, float]) -> dict[str, str]:
    """Short, medium and long; nothing when lengths hardly differ."""
    values = np.array(list(tokens.values()))
    if values.size < 3 * FEWEST_CASES:
        return {}
    low, high = np.quantile(values, [1 / 3, 2 / 3])
    if high < 1.5 * max(low, 1.0):
        return {}
    names = {
        True: f"at most {low:.0f} tokens",
        False: f"over {high:.0f} tokens",
    }
    middle = f"{low:.0f} to {high:.0f} tokens"
    return {
        case: middle if low < n <= high else names[bool(n <= low)]
        for case, n in tokens.items()
    }
