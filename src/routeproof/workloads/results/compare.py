"""Two imported runs against each other, or the reasons why not."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from routeproof.errors import ConfigError
from routeproof.workloads.results.definitions import DEFINITIONS
from routeproof.workloads.results.result import Measured, Result, Sample

RATE_TOLERANCE = 0.05
"""Achieved rates further apart than this share are different loads."""

NEEDED = {"p90": 29, "p95": 59, "p99": 299}
"""Values from which a percentile has a 95 % upper limit: 1 - q^n >= 0.95."""

ABSENT = "(not said)"


class Refusal(NamedTuple):
    """One reason why two results cannot be compared."""

    field: str
    baseline: str
    candidate: str

    def __str__(self) -> str:
        return f"`{self.field}`: {self.baseline} and {self.candidate}"


class Row(NamedTuple):
    """One number on both sides, of one definition."""

    load: str
    metric: str
    definition_id: str
    statistic: str
    unit: str
    baseline: float
    candidate: float

    @property
    def ratio(self) -> float | None:
        """Candidate over baseline; ``None`` when the baseline is 0."""
        return self.candidate / self.baseline if self.baseline else None


class Pairs(NamedTuple):
    """Scores of one scorer paired by case and trial.

    Attributes:
        losses, gains: Pairs in which the candidate is worse, better.
        unscored: Pairs in which one side has no score.
        missing: Cases only one side has.
        equal_texts: Pairs whose answers are the same text; ``None`` when unknown.
        differences: Candidate minus baseline of each scored pair, by case and trial.
    """

    scorer: str
    n: int
    baseline_mean: float | None
    candidate_mean: float | None
    losses: int
    gains: int
    unscored: int
    missing: int
    equal_texts: int | None
    differences: tuple[float, ...]


class Comparison(NamedTuple):
    """What two sets of results say of each other.

    Attributes:
        unmatched: Loads that have no counterpart on the other side.
        withheld: Percentiles of too few values to mean anything.
    """

    rows: tuple[Row, ...]
    pairs: tuple[Pairs, ...]
    unmatched: tuple[str, ...]
    withheld: tuple[str, ...] = ()


def compare_results(
    baseline: Sequence[Result],
    candidate: Sequence[Result],
    *,
    changes: Iterable[str] = (),
) -> Comparison:
    """Numbers of the same definition at the same load, and scores case by case.

    Loads are matched by concurrency, or by the rate that was achieved (within 5 %),
    never by the number of a stage. Load results are aggregates here: ratios, no test.

    Args:
        baseline: Results of the trusted route.
        candidate: Results of the other one.
        changes: Conditions under test (such as ``args.speculative_config``).

    Raises:
        ConfigError: The two are not comparable; names every difference.
    """
    refused = refusals(baseline, candidate, changes=changes)
    if refused:
        raise ConfigError(
            "these results cannot be compared:\n"
            + "\n".join(f"  - {one}" for one in refused),
            hint="compare runs that differ only in what is being tested, and name "
            "that with `--change`",
        )
    matched, unmatched = _match(baseline, candidate)
    both = [pair for b, c in matched for pair in _common(b, c)]
    rows = tuple(_row(*pair) for pair in both if not _too_few(*pair[2:]))
    withheld = tuple(
        dict.fromkeys(
            f"{one.name} {one.statistic} of {min(one.n or 0, other.n or 0)} values"
            for _, _, one, other in both
            if one.statistic in NEEDED and _too_few(one, other)
        )
    )
    return Comparison(rows, _pairs(baseline, candidate), unmatched, withheld)


def refusals(
    baseline: Sequence[Result],
    candidate: Sequence[Result],
    *,
    changes: Iterable[str] = (),
) -> tuple[Refusal, ...]:
    """Every reason why two sets of results may not be compared, once each."""
    if not baseline or not candidate:
        return (Refusal("results", str(len(baseline)), str(len(candidate))),)
    found: list[Refusal] = []
    allowed = frozenset(changes)
    first, second = baseline[0], candidate[0]
    for field in ("tool", "kind", "tool_version", "model"):
        left, right = getattr(first, field), getattr(second, field)
        if left != right and field not in allowed:
            found.append(Refusal(field, _said(left), _said(right)))
    for key in dict.fromkeys((*first.conditions, *second.conditions)):
        if key in LOAD_CONDITIONS or key in allowed or key == "model":
            continue
        left, right = first.conditions.get(key), second.conditions.get(key)
        if left != right:
            found.append(Refusal(key, _said(left), _said(right)))
    found += [Refusal("fault", f, ABSENT) for f in _faults(baseline)]
    found += [Refusal("fault", ABSENT, f) for f in _faults(candidate)]
    if first.kind == second.kind == "load" and not _match(baseline, candidate)[0]:
        found.append(Refusal("load", _loads(baseline), _loads(candidate)))
    return tuple(found)


LOAD_CONDITIONS = frozenset({"max_concurrency", "request_rate", "num_prompts"})
"""Conditions that ``_match`` looks at, not equality."""


def _match(
    baseline: Sequence[Result], candidate: Sequence[Result]
) -> tuple[list[tuple[Result, Result]], tuple[str, ...]]:
    left = list(candidate)
    matched, alone = [], []
    for one in baseline:
        other = next((c for c in left if _is_same_load(one, c)), None)
        if other is None:
            alone.append(f"baseline {one.label}: {_load(one)}")
        else:
            left.remove(other)
            matched.append((one, other))
    alone += [f"candidate {one.label}: {_load(one)}" for one in left]
    return matched, tuple(alone)


def _is_same_load(one: Result, other: Result) -> bool:
    if one.kind == "quality":
        return True
    a, b = one.level, other.level
    if a.asked_rate_per_s is None and b.asked_rate_per_s is None:
        return a.concurrency is not None and a.concurrency == b.concurrency
    if a.achieved_rate_per_s is None or b.achieved_rate_per_s is None:
        return False
    highest = max(a.achieved_rate_per_s, b.achieved_rate_per_s)
    apart = abs(a.achieved_rate_per_s - b.achieved_rate_per_s)
    return highest > 0 and apart <= RATE_TOLERANCE * highest


def _common(
    baseline: Result, candidate: Result
) -> list[tuple[Result, Result, Measured, Measured]]:
    known = {(m.definition_id, m.statistic): m for m in candidate.measured}
    pairs = []
    for one in baseline.measured:
        other = known.get((one.definition_id, one.statistic))
        if other is not None and one.value is not None and other.value is not None:
            pairs.append((baseline, candidate, one, other))
    return pairs


def _too_few(one: Measured, other: Measured) -> bool:
    """True for a spread, and for a percentile of too few values on either side."""
    if one.statistic in ("std", "min", "max"):
        return True
    needed = NEEDED.get(one.statistic, 0)
    return any(m.n is not None and m.n < needed for m in (one, other))


def _row(baseline: Result, candidate: Result, one: Measured, other: Measured) -> Row:
    return Row(
        load=_load(baseline),
        metric=DEFINITIONS[one.definition_id].metric,
        definition_id=one.definition_id,
        statistic=one.statistic,
        unit=one.unit,
        baseline=one.value if one.value is not None else float("nan"),
        candidate=other.value if other.value is not None else float("nan"),
    )


def _pairs(
    baseline: Sequence[Result], candidate: Sequence[Result]
) -> tuple[Pairs, ...]:
    left, right = _by_scorer(baseline), _by_scorer(candidate)
    return tuple(_pair(name, left[name], right[name]) for name in left if name in right)


def _by_scorer(results: Sequence[Result]) -> dict[str, dict[tuple[str, int], Sample]]:
    found: dict[str, dict[tuple[str, int], Sample]] = {}
    for result in results:
        for one in result.samples:
            found.setdefault(one.scorer, {})[(one.case_id, one.trial)] = one
    return found


def _pair(
    scorer: str,
    left: dict[tuple[str, int], Sample],
    right: dict[tuple[str, int], Sample],
) -> Pairs:
    both = [(left[key], right[key]) for key in left if key in right]
    scored = [
        (a.value, b.value)
        for a, b in both
        if a.value is not None and b.value is not None
    ]
    differences = tuple(b - a for a, b in scored)
    texts = [(a.text_digest, b.text_digest) for a, b in both]
    knows = all(a is not None and b is not None for a, b in texts)
    n = len(scored)
    return Pairs(
        scorer=scorer,
        n=n,
        baseline_mean=sum(a for a, _ in scored) / n if n else None,
        candidate_mean=sum(b for _, b in scored) / n if n else None,
        losses=sum(d < 0 for d in differences),
        gains=sum(d > 0 for d in differences),
        unscored=len(both) - n,
        missing=len(left.keys() ^ right.keys()),
        equal_texts=sum(a == b for a, b in texts) if knows and texts else None,
        differences=differences,
    )


def _faults(results: Sequence[Result]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fault for one in results for fault in one.faults))


def _load(result: Result) -> str:
    level = result.level
    if level.asked_rate_per_s is None and level.concurrency is not None:
        return f"concurrency {level.concurrency}"
    if level.achieved_rate_per_s is None:
        return "one load" if result.kind == "quality" else "unknown load"
    return f"{level.achieved_rate_per_s:.1f} requests/s"


def _loads(results: Sequence[Result]) -> str:
    return ", ".join(dict.fromkeys(_load(one) for one in results))


def _said(value: str | None) -> str:
    return ABSENT if value is None else value
