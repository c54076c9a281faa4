"""Small questions put to both routes before a run, and what follows from the answers.

Each asks one thing that has a right answer whatever the model knows: the stream says
what the whole answer says, the same seed gives the same text, a stop string stops.
Where the baseline does not keep it either (a field it looks away from), nothing is
held against the candidate.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import exp

import msgspec
import numpy as np

from routeproof.gates.answers import Rules, Sides, answered
from routeproof.gates.facts import QualityRow, Row
from routeproof.gates.questions import Question
from routeproof.metrics.score_table import PairedScores
from routeproof.records.columns import Column
from routeproof.stats.siblings import siblings_test

MAX_TOKENS = 3
MIN_TOKENS = 10
"""What the probes ``max_tokens`` and ``min_tokens`` ask for."""

SUM_TOLERANCE = 1e-3
LIKE_ITSELF = 0.5
"""Texts of one route may differ from themselves at near ties; a probe whose answer is
such a comparison fails when the candidate's do so significantly more often."""

Token = tuple[str, float | None, tuple[tuple[str, float | None], ...]]


class Answered(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer to a probe.

    Attributes:
        text: Of the first choice; ``None`` when the request was refused or failed.
        choices: Texts of all choices.
        tokens: As the server counts them.
        logprobs: ``(token, logprob, ((token, logprob), ...))`` per token.
        words: The server's words when there is no text.
    """

    text: str | None = None
    choices: tuple[str, ...] = ()
    finish: str | None = None
    tokens: int | None = None
    logprobs: tuple[Token, ...] = ()
    words: str = ""


class Probed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All answers: by arm, probe and prompt, in the order in which they were asked.

    Attributes:
        stop: The stop string that each prompt was asked with.
        banned: The token text that each prompt was forbidden to begin with.
    """

    answers: dict[str, dict[str, dict[str, tuple[Answered, ...]]]]
    stop: dict[str, str] = {}
    banned: dict[str, str] = {}

    def of(self, arm: str, probe: str, prompt: str) -> tuple[Answered, ...]:
        """The answers; empty when it was not asked."""
        return self.answers.get(arm, {}).get(probe, {}).get(prompt, ())

    def text(self, arm: str, probe: str, prompt: str) -> str | None:
        """The first answer's text."""
        found = self.of(arm, probe, prompt)
        return found[0].text if found else None

    def prompts(self, probe: str) -> list[str]:
        """Prompts that the baseline was asked."""
        return sorted(self.answers.get("baseline", {}).get(probe, {}))


Kept = Callable[[Probed, str, str, str], bool | None]
"""(all, arm, probe, prompt) to whether it is kept; ``None`` = cannot be told."""


def _like_plain(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    """The same text as the plain request of the same arm."""
    texts = [one.text for one in all_.of(arm, probe, prompt)]
    plain = all_.text(arm, "plain", prompt)
    if plain is None or not texts or None in texts:
        return None
    return all(text == plain for text in texts)


def _same_twice(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    """Two requests with one seed give one text."""
    texts = [one.text for one in all_.of(arm, probe, prompt)]
    if len(texts) < 2 or None in texts[:2]:
        return None
    return texts[0] == texts[1]


def _other_seed(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    """A third request with another seed gives another text."""
    texts = [one.text for one in all_.of(arm, "seed", prompt)]
    if len(texts) < 3 or None in texts:
        return None
    return texts[2] != texts[0]


def _stops(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    text, word = all_.text(arm, probe, prompt), all_.stop.get(prompt)
    return None if text is None or word is None else word not in text


def _at_most(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    found = all_.of(arm, probe, prompt)
    tokens = found[0].tokens if found else None
    return None if tokens is None else tokens <= MAX_TOKENS


def _at_least(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    found = all_.of(arm, probe, prompt)
    tokens = found[0].tokens if found else None
    return None if tokens is None else tokens >= MIN_TOKENS


def _not_banned(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    text, word = all_.text(arm, probe, prompt), all_.banned.get(prompt)
    return None if text is None or not word else not text.startswith(word)


def _has_effect(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    """Another text than without it: asked only where the baseline's changes."""
    text, plain = all_.text(arm, probe, prompt), all_.text(arm, "plain", prompt)
    return None if text is None or plain is None else text != plain


def _honest(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    """Log probabilities are those of a distribution and of the tokens said."""
    found = all_.of(arm, "plain", prompt)
    if not found or not found[0].logprobs:
        return None
    return all(_is_honest(token) for token in found[0].logprobs) and any(
        value for _, value, _ in found[0].logprobs
    )


def _is_honest(token: Token) -> bool:
    name, value, listed = token
    if value is None or not value <= SUM_TOLERANCE:
        return False
    known = {t: v for t, v in listed if v is not None}
    if sum(exp(min(v, 0.0)) for v in known.values()) > 1 + SUM_TOLERANCE:
        return False
    if name in known and abs(known[name] - value) > SUM_TOLERANCE:
        return False
    # Greedy: nothing listed is likelier than what was said.
    return all(v <= value + SUM_TOLERANCE for v in known.values())


def _same_logprobs(all_: Probed, arm: str, probe: str, prompt: str) -> bool | None:
    """Log probabilities of the tokens shared with the baseline, within 0.1 nats."""
    mine, theirs = all_.of(arm, "plain", prompt), all_.of("baseline", "again", prompt)
    if not mine or not theirs or not mine[0].logprobs or not theirs[0].logprobs:
        return None
    apart = []
    for one, other in zip(mine[0].logprobs, theirs[0].logprobs, strict=False):
        if one[0] != other[0] or one[1] is None or other[1] is None:
            break
        apart.append(abs(one[1] - other[1]))
    return float(np.mean(apart)) <= 0.1 if apart else None


CHECKS: tuple[tuple[str, str, Kept, bool], ...] = (
    ("stream", "stream", _like_plain, False),
    ("cache_warm", "again", _like_plain, False),
    ("together", "together", _like_plain, False),
    ("top_k", "top_k", _like_plain, False),
    ("top_p", "top_p", _like_plain, False),
    ("min_p", "min_p", _like_plain, False),
    ("seed", "seed", _same_twice, False),
    ("seed_differs", "seed", _other_seed, False),
    ("stop", "stop", _stops, True),
    ("max_tokens", "max_tokens", _at_most, True),
    ("min_tokens", "min_tokens", _at_least, True),
    ("logit_bias", "logit_bias", _not_banned, True),
    ("frequency_penalty", "frequency_penalty", _has_effect, False),
    ("presence_penalty", "presence_penalty", _has_effect, False),
    ("repetition_penalty", "repetition_penalty", _has_effect, False),
    ("logprobs", "plain", _honest, True),
)
"""Name of a check, the probe it reads, what must hold, and whether one new failure is
one too many (where nothing but a fault can break it)."""

LOSSLESS_ONLY: tuple[tuple[str, str, Kept, bool], ...] = (
    ("same_logprobs", "plain", _same_logprobs, False),
)
"""Asked of changes that claim to change no number."""


ROUTED_AROUND: Mapping[str, frozenset[str]] = {
    "logprobs": frozenset({"logprobs", "same_logprobs"}),
    "seed": frozenset({"seed", "seed_differs"}),
    "penalties": frozenset({"frequency_penalty", "presence_penalty"}),
}
"""Checks that a feature needs, where they have other names than it."""


def probe_rows(
    probed: Probed,
    *,
    alpha: float,
    is_lossless: bool,
    around: Collection[str] = (),
) -> tuple[QualityRow, ...]:
    """A row for each check that the baseline keeps often enough to ask it.

    Args:
        probed: What both routes said.
        alpha: One-sided error rate.
        is_lossless: The change claims to change no number.
        around: Features that are routed around the candidate: it is known not to have
            them, so they are not asked of it.
    """
    rows: list[QualityRow] = []
    left_out = {n for each in around for n in ROUTED_AROUND.get(each, {each})}
    for name, probe, kept, is_strict in (
        *CHECKS,
        *(LOSSLESS_ONLY if is_lossless else ()),
    ):
        if name in left_out:
            continue
        sides = _sides(probed, probe, kept, is_strict=is_strict)
        if sides is None:
            continue
        question = Question(
            f"probe[{name}]",
            0.0 if is_strict else LIKE_ITSELF,
            "outcome",
            is_required=False,
        )
        row = answered(question, sides, Rules(alpha=alpha))[0]
        if _says_something(row):
            rows.append(row)
    return tuple(rows)


def _says_something(row: QualityRow) -> bool:
    """Whether anything broke, or enough prompts asked for that to mean something."""
    is_open = row.answer is not None and row.answer.decision == "undecided"
    return bool(row.losses) or not is_open


def _sides(probed: Probed, probe: str, kept: Kept, *, is_strict: bool) -> Sides | None:
    """Only prompts at which the baseline keeps it: the others ask nothing.

    Where near ties can break it too, the baseline that was asked a second time stands
    on the other side: the first one kept everything by this very choice of prompts,
    and a route no worse than it would look worse.
    """
    prompts = [
        prompt
        for prompt in probed.prompts(probe)
        if kept(probed, "baseline", probe, prompt)
    ]
    candidate = [kept(probed, "candidate", probe, prompt) for prompt in prompts]
    if all(one is None for one in candidate):
        return None
    control = [kept(probed, "control", probe, prompt) for prompt in prompts]
    first: list[bool | None] = [True] * len(prompts)
    if all(one is None for one in control):
        return Sides(_pairs(first, candidate), None)
    beside = first if is_strict else [one is not False for one in control]
    return Sides(_pairs(beside, candidate), _pairs(first, control))


def _pairs(one: Sequence[bool | None], other: Sequence[bool | None]) -> PairedScores:
    """Prompts at which both are known."""
    told = [
        (a, b)
        for a, b in zip(one, other, strict=True)
        if a is not None and b is not None
    ]
    n = len(told)
    every, at = np.ones(n, dtype=np.bool_), np.arange(n, dtype=np.int64)
    left, right = np.array(told, dtype=np.float64).reshape(n, 2).T
    return PairedScores(at, at, Column(left, every), Column(right, every), at, at)


def sibling_row(probed: Probed, *, seed: int) -> Row | None:
    """Row (test, p_value, control_p_value, prompts, answers, power) for ``n > 1``."""
    seen, floor = (_choices(probed, arm) for arm in ("candidate", "baseline"))
    found = siblings_test(seen, seed=seed)
    if found.p_value is None:
        return None
    return {
        "test": "siblings",
        "p_value": found.p_value,
        "control_p_value": siblings_test(floor, seed=seed).p_value,
        "prompts": found.prompts,
        "answers": found.answers,
        "power": sibling_power(floor, seed=seed),
    }


def _choices(probed: Probed, arm: str) -> list[list[tuple[str, ...]]]:
    return [
        [one.choices for one in probed.of(arm, "choices", prompt)]
        for prompt in probed.prompts("choices")
    ]


def sibling_power(
    prompts: Sequence[Sequence[Sequence[str]]], *, seed: int, runs: int = 20
) -> str | None:
    """What the test sees when two choices in three repeat the first one of theirs."""
    if not any(len(requests) > 1 for requests in prompts):
        return None
    rng = np.random.default_rng(seed)
    seen = 0
    for run in range(runs):
        faulty = [
            [
                [each[0], *(each[0] if rng.random() < 2 / 3 else t for t in each[1:])]
                for each in requests
                if each
            ]
            for requests in prompts
        ]
        p = siblings_test(faulty, permutations=199, seed=seed + run).p_value
        seen += p is not None and p <= 0.05
    return f"sees repeated choices in {seen / runs:.0%} of simulated runs"


def decode_probed(body: bytes) -> Probed:
    """Stored answers.

    Raises:
        msgspec.MsgspecError: The body is something else.
    """
    return msgspec.json.decode(body, type=Probed)


def refused(probed: Probed) -> Mapping[str, str]:
    """Probes the candidate did not answer, with its words."""
    found = {}
    for probe, prompts in probed.answers.get("candidate", {}).items():
        for answers in prompts.values():
            words = next((one.words for one in answers if one.text is None), None)
            if words is not None:
                found[probe] = words
    return found
