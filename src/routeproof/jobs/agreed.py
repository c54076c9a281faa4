"""Whether what a proof asks can be answered by its cases at all."""

from collections.abc import Sequence

from routeproof.errors import ConfigError
from routeproof.gates.questions import ALIASES, HEADLINE
from routeproof.proof.nearest import nearest
from routeproof.proof.proof import Proof
from routeproof.scorers.table import SCORERS
from routeproof.workloads.case import Case


def check_questions(proof: Proof, cases: Sequence[Case]) -> None:
    """Refuse scorers nobody knows and questions no case can answer.

    Found before anything is sent, so that no run ends in a question without pairs.

    Raises:
        ConfigError: Names the case or the question, and what there is instead.
    """
    for case in cases:
        for name in case.scorers:
            if name not in SCORERS:
                near = nearest(name, SCORERS)
                raise ConfigError(
                    f"case `{case.id}` names the scorer `{name}`, which is not there",
                    key="workload.cases",
                    hint=f"did you mean `{near}`?"
                    if near
                    else f"known: {', '.join(SCORERS)}",
                )
    for i, gate in enumerate(proof.quality):
        _check_question(i, ALIASES.get(gate.metric, gate.metric), gate.slice, cases)


def _check_question(
    i: int, metric: str, where: dict[str, str], cases: Sequence[Case]
) -> None:
    place = f"quality[{i}]"
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
    named = {name for case in inside for name in case.scorers}
    if metric != HEADLINE and metric not in named:
        near = nearest(metric, [HEADLINE, *named])
        raise ConfigError(
            f"no case{' of this slice' if where else ''} is scored by `{metric}`",
            key=f"{place}.metric",
            hint=f"did you mean `{near}`?"
            if near
            else f"these cases have {', '.join(sorted(named))}; `{HEADLINE}` is the "
            "first scorer of each case",
        )
