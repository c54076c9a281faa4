"""Reasoning text is not the answer: taken out by declared rules.

Engines with a reasoning parser deliver it apart; the rules here are for those
without. A rule is a pair of marks. Text between them is reasoning; a closing mark
without an opening one (the template had opened it in the prompt) makes all text
before it reasoning; an opening mark at the start that is never closed makes all of
it reasoning: the answer was cut before it began.
"""

import re
from functools import lru_cache
from typing import Any

RULES: dict[str, tuple[str, str]] = {
    "think": ("<think>", "</think>"),
    "thinking": ("<thinking>", "</thinking>"),
    "thought": ("<thought>", "</thought>"),
    "reasoning": ("<reasoning>", "</reasoning>"),
    "seed": ("<seed:think>", "</seed:think>"),
    "magistral": ("[THINK]", "[/THINK]"),
    "kimi": ("◁think▷", "◁/think▷"),
    "harmony": (
        "<|channel|>analysis<|message|>",
        "<|start|>assistant<|channel|>final<|message|>",
    ),
}
"""Marks that are stripped unless a case says otherwise. Sources: the chat templates of
Qwen3 and DeepSeek-R1 (think), Seed-OSS (seed), Magistral, Kimi, gpt-oss (harmony)."""


@lru_cache(maxsize=64)
def _tokens(names: tuple[str, ...]) -> re.Pattern[str]:
    marks = (
        f"(?P<o{i}>{re.escape(RULES[name][0])})|(?P<c{i}>{re.escape(RULES[name][1])})"
        for i, name in enumerate(names)
    )
    return re.compile("|".join(marks))


ALL = tuple(RULES)
_MARKS = tuple(mark for pair in RULES.values() for mark in pair)


def strip_reasoning(text: str, rules: Any = None) -> tuple[str, str]:
    """The answer without its reasoning, and one phrase saying what was taken out.

    Idempotent and linear in the length of the text.

    Args:
        text: As the server sent it.
        rules: ``None`` for all of ``RULES``, ``"none"`` for no stripping, or the
            names of the rules to use. Unknown names are ignored.

    Returns:
        The rest, and ``""`` when nothing was taken out.
    """
    if rules is None:
        return _strip(text, ALL)
    wanted = (rules,) if isinstance(rules, str) else tuple(rules)
    return _strip(text, tuple(name for name in ALL if name in wanted))


@lru_cache(maxsize=4)
def _strip(text: str, names: tuple[str, ...]) -> tuple[str, str]:
    if not names or not any(mark in text for mark in _MARKS):
        return text, ""
    kept: list[str] = []
    start = 0
    opened: tuple[str, int] | None = None
    is_changed = False
    for token in _tokens(names).finditer(text):
        kind = token.lastgroup or "o0"
        family = kind[1:]
        if opened is None and kind[0] == "o":
            opened = (family, token.start())
        elif opened is None:
            kept, start, is_changed = [], token.end(), True
        elif kind[0] == "c" and family == opened[0]:
            kept.append(text[start : opened[1]])
            start, opened, is_changed = token.end(), None, True
    if opened is not None and not "".join(kept + [text[start : opened[1]]]).strip():
        return "", "reasoning never closed"
    if not is_changed:
        return text, ""
    return "\n".join([*kept, text[start:]]), "reasoning stripped"
