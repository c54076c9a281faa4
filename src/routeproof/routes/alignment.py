"""Do a target and its draft speak of the same tokens?

A draft proposes token ids. Where the two vocabularies differ the target rejects what
the draft meant well, or takes a token the draft never meant.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from routeproof.routes.tokenizer_files import TokenizerFacts

PROBES: dict[str, str] = {
    "latin": "Seven brave otters quietly crossed the frozen river at 6:45.",
    "diacritics": "Žluťoučký kůň, señor Müller et l'été à Łódź.",
    "cyrillic": "Вечером поезд пришёл на станцию вовремя.",
    "greek": "Η θάλασσα ήταν ήρεμη το πρωί.",
    "arabic": "وصل القطار في الموعد صباح اليوم.",
    "hebrew": "הרכבת הגיעה בזמן הבוקר.",
    "devanagari": "आज सुबह ट्रेन समय पर आई।",
    "thai": "รถไฟมาถึงตรงเวลาเมื่อเช้านี้",
    "chinese": "今天早上火车准时到达了车站。",
    "japanese": "今朝、電車は時間どおりに着きました。",
    "korean": "오늘 아침 기차가 제시간에 도착했다.",
    "emoji": "👍🏽 family 👩‍👩‍👧 flag 🇪🇺 done ✅",
    "combining": "e\u0301 n\u0303 a\u030a zero\u200bwidth nbsp\u00a0end",
    "numbers": "1234567890 3.14159 1,000,000 0x1F 1e-9",
    "spaces": "a  b   c    d\te\n\nf\r\ng ",
    "code": "def f(x):\n    return {k: v[1:-1] for k, v in x.items()}\n",
    "json": '{"name": "Ada", "tags": ["x", "y"], "n": null}',
    "markup": "<div class='a'>&amp; <!-- note --></div> **bold** `tick`",
    "specials": "<|im_start|>user <s> </s> [INST] <|endoftext|>",
}
"""Texts on which two tokenizers most often part."""


class AlignmentProblem(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One way in which a target and its draft do not fit.

    Attributes:
        severity: ``error``: drafts mean other tokens than the target reads.
            ``warning``: works, and acceptance may suffer.
    """

    severity: Literal["error", "warning"]
    field: str
    target: str
    draft: str
    why: str


class TokenDifference(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Where two tokenizations of one text part.

    Attributes:
        at: Index of the first token that differs.
        one, other: The ids there; ``None`` past the end.
    """

    probe: str
    text: str
    at: int
    one: int | None
    other: int | None


def alignment_problems(
    target: TokenizerFacts, draft: TokenizerFacts
) -> tuple[AlignmentProblem, ...]:
    """Compare two tokenizers by their files; empty when they fit."""
    found = []
    if target.vocabulary_size != draft.vocabulary_size:
        found.append(
            _problem(
                "error",
                "tokenizer.vocabulary_size",
                target.vocabulary_size,
                draft.vocabulary_size,
                "the vocabularies have different sizes",
            )
        )
    elif target.digest != draft.digest:
        found.append(
            _problem(
                "error",
                "tokenizer.digest",
                target.digest[:12],
                draft.digest[:12],
                "some token ids stand for different tokens",
            )
        )
    for name in sorted(target.special.keys() & draft.special.keys()):
        if target.special[name] != draft.special[name]:
            found.append(
                _problem(
                    "error",
                    f"tokenizer.{name}",
                    target.special[name],
                    draft.special[name],
                    f"the {name.upper()} token differs",
                )
            )
    found += _softer(target, draft)
    return tuple(found)


def _softer(target: TokenizerFacts, draft: TokenizerFacts) -> list[AlignmentProblem]:
    found = []
    if target.stop_ids and draft.stop_ids and target.stop_ids != draft.stop_ids:
        found.append(
            _problem(
                "warning",
                "tokenizer.stop_ids",
                list(target.stop_ids),
                list(draft.stop_ids),
                "the draft stops at other tokens, so its last drafts are lost",
            )
        )
    if None not in (target.adds_bos, draft.adds_bos):
        if target.adds_bos != draft.adds_bos:
            found.append(
                _problem(
                    "warning",
                    "tokenizer.adds_bos",
                    target.adds_bos,
                    draft.adds_bos,
                    "only one of the two was trained with a BOS in front",
                )
            )
    if target.template_digest != draft.template_digest and draft.template_digest:
        found.append(
            _problem(
                "warning",
                "tokenizer.chat_template_digest",
                (target.template_digest or "none")[:12],
                draft.template_digest[:12],
                "the draft was made for another chat template",
            )
        )
    return found


def _problem(
    severity: Literal["error", "warning"],
    field: str,
    target: object,
    draft: object,
    why: str,
) -> AlignmentProblem:
    return AlignmentProblem(
        severity=severity, field=field, target=str(target), draft=str(draft), why=why
    )


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """Index of the first token that differs; ``None`` when all are equal.

    Example:
        >>> first_difference([1, 2, 3], [1, 2]), first_difference([1], [1])
        (2, None)
    """
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return None if len(one) == len(other) else min(len(one), len(other))


def token_differences(
    one: Mapping[str, Sequence[int]], other: Mapping[str, Sequence[int]]
) -> tuple[TokenDifference, ...]:
    """Probes that two engines tokenize differently, with where they part.

    Args:
        one: Name of a probe in `PROBES` to its token ids.
        other: The same; probes that either side lacks are left out.
    """
    found = []
    for name in PROBES:
        if name not in one or name not in other:
            continue
        at = first_difference(one[name], other[name])
        if at is not None:
            found.append(
                TokenDifference(
                    probe=name,
                    text=PROBES[name],
                    at=at,
                    one=one[name][at] if at < len(one[name]) else None,
                    other=other[name][at] if at < len(other[name]) else None,
                )
            )
    return tuple(found)
