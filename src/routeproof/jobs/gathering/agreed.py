"""Whether what a proof asks can be answered by its cases at all."""

from collections.abc import Sequence

from routeproof.errors import ConfigError
from routeproof.gates.questions import ALIASES, HEADLINE, PASS_RATES
from routeproof.jobs.gathering.judges import JUDGED, judge_of, with_judged
from routeproof.jobs.reviewing.people import PEOPLE
from routeproof.proof.nearest import nearest
from routeproof.proof.proof import Proof
from routeproof.scorers.likelihood import secondary_only
from routeproof.scorers.table import SCORERS
from routeproof.workloads.case import Case

KNOWN = (*SCORERS, "code", *JUDGED)
"""Scorers that a case may name."""

NOT_CASE_TAGS = frozenset({"phase", "level", "concurrency"})
"""Slice keys that say where a request was sent, not which case it is of."""


def check_questions(proof: Proof, cases: Sequence[Case]) -> None:
    """Refuse scorers nobody knows and questions no case can answer.

    Found before anything is sent, so that no run ends in a question without pairs.

    Raises:
        ConfigError: Names the case or the question, and what there is instead.
    """
    for case in cases:
        for name in case.scorers:
            _check_scorer(proof, case, name)
    wanted = with_judged(proof, cases)
    for i in range(len(proof.quality)):
        _check_question(i, proof, wanted)
    _check_not_only_likelihood(proof, cases)


def _check_scorer(proof: Proof, case: Case, name: str) -> None:
    if name not in KNOWN:
        near = nearest(name, KNOWN)
        raise ConfigError(
            f"case `{case.id}` names the scorer `{name}`, which is not there",
            key="workload.cases",
            hint=f"did you mean `{near}`?" if near else f"known: {', '.join(KNOWN)}",
        )
    if name in JUDGED and judge_of(proof, name) is None:
        raise ConfigError(
            f"case `{case.id}` is scored by `{name}`, and no judge is named",
            key="quality",
            hint=f"ask `{{metric: {name}, tolerance: 0.05, judge: {{endpoint: ..., "
            "model: ...}}}`",
        )


def _check_question(i: int, proof: Proof, cases: Sequence[Case]) -> None:
    place, gate = f"quality[{i}]", proof.quality[i]
    metric, where = ALIASES.get(gate.metric, gate.metric), gate.slice
    wanted_class = where.get("class")
    inside = [c for c in cases if wanted_class is None or c.class_ == wanted_class]
    if not inside:
        classes = sorted({c.class_ for c in cases})
        near = nearest(str(wanted_class), classes)
        raise ConfigError(
            f"no case has the class `{wanted_class}`",
            key=f"{place}.slice",
            hint=f"did you mean `{near}`?" if near else f"there are {classes}",
        )
    if metric in JUDGED and judge_of(proof, metric) is None:
        raise ConfigError(
            f"`{metric}` is what a judge says, and no judge is named",
            key=f"{place}.judge",
            hint="add `judge: {endpoint: http://127.0.0.1:8000/v1, model: NAME}`",
        )
    named = {name for case in inside for name in case.scorers}
    known = {HEADLINE, *PEOPLE, *named}
    if metric in PASS_RATES and "code" in named:
        known.add(metric)
    if metric not in known:
        near = nearest(metric, sorted(known))
        raise ConfigError(
            f"no case{' of this slice' if where else ''} is scored by `{metric}`",
            key=f"{place}.metric",
            hint=f"did you mean `{near}`?"
            if near
            else f"these cases have {', '.join(sorted(named))}; `{HEADLINE}` is the "
            "first scorer of each case",
        )


def _check_not_only_likelihood(proof: Proof, cases: Sequence[Case]) -> None:
    """Refuse a proof that ends up asking for likelihood alone, by whatever way.

    The headline of cases that name nothing else is likelihood too.
    """
    asked = {ALIASES.get(gate.metric, gate.metric) for gate in proof.quality}
    metrics = asked - {HEADLINE}
    if not asked or HEADLINE in asked:
        metrics |= {case.scorers[0] for case in cases if case.scorers}
    why = secondary_only(metrics)
    if why is not None:
        raise ConfigError(
            why,
            key="quality",
            hint="name another scorer first in the cases, or ask for one in `quality`",
        )
