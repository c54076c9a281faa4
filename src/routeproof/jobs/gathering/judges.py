"""The judges of a run: asked once, kept with the run, held against people.

``ask_judges`` is the one place that calls a judge. ``judged`` makes scores of what was
said, from the run folder alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from routeproof.gates.facts import JudgeRow
from routeproof.jobs.reviewing.session import PHASES
from routeproof.proof.policy import JudgeSpec
from routeproof.proof.proof import Proof
from routeproof.records.columns import Records
from routeproof.records.store import RunFolder
from routeproof.scorers.answer_of import COLUMNS
from routeproof.scorers.judge.agreement import COMPLETE_SHARE, Calibration, view
from routeproof.scorers.judge.claims import ClaimsJudge, Kind
from routeproof.scorers.judge.endpoint import ask_endpoint
from routeproof.scorers.judge.pairwise import PREFERENCE, score_preferences
from routeproof.scorers.judge.question import Ask
from routeproof.scorers.judge.stored import stored_ask
from routeproof.scorers.scored import Scores, concatenate, score_records
from routeproof.workloads.case import Case

CLAIMS: tuple[Kind, ...] = ("groundedness", "factuality")
JUDGED = (PREFERENCE, *CLAIMS)
"""Scorers that a judge model gives."""

ENOUGH_LABELS = 30
"""Labels of people a judge is held against before it may decide anything."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What judges said of a run.

    Attributes:
        scores: Rows of the judged scorers; ``None`` when no judge is asked anything.
        rows: One for each judged scorer, before it is held against people.
    """

    scores: Scores | None
    rows: tuple[JudgeRow, ...]


def judge_of(proof: Proof, scorer: str) -> JudgeSpec | None:
    """Who judges for a scorer: the judge of its own question, else the first one."""
    asked = [gate for gate in proof.quality if gate.judge is not None]
    own = [gate.judge for gate in asked if gate.metric == scorer]
    return next(iter([*own, *(gate.judge for gate in asked)]), None)


def with_judged(proof: Proof, cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases, each with the judged scorers that the proof asks of it.

    A question such as ``metric: preference`` that no case names is asked of every
    case of its class: any two answers can be held against each other.
    """
    named = {name for case in cases for name in case.scorers}
    further = [
        (gate.metric, gate.slice.get("class"))
        for gate in proof.quality
        if gate.metric in JUDGED and gate.metric not in named
    ]
    return tuple(
        msgspec.structs.replace(case, scorers=_more(case, further)) for case in cases
    )


def _more(case: Case, further: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    asked = (m for m, class_ in further if class_ in (None, case.class_))
    return tuple(dict.fromkeys((*case.scorers, *asked)))


def ask_judges(
    folder: RunFolder,
    proof: Proof,
    cases: Sequence[Case],
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    """Put the answers of a run before its judges; keeps what they say.

    A judge that is silent or answers prose raises nothing: its scores stay unknown,
    the question open, and the reason says so. Asked again, only what is still
    unanswered goes out.

    Args:
        folder: With the answers.
        proof: Names the judges.
        cases: Of the run.
        environ: Holds the keys that the proof names.
        say: Is told before and after.

    Raises:
        StoredRunError: The replies cannot be kept.
    """

    def live(spec: JudgeSpec) -> Ask:
        key = environ.get(spec.api_key_env) if spec.api_key_env else None
        return ask_endpoint(spec.endpoint, spec.model, api_key=key)

    wanted = with_judged(proof, cases)
    if not any(_seats(proof, wanted)):
        return
    say("asking the judge about the answers")
    for row in _judged(folder, proof, wanted, live).rows:
        share = row.completeness_share
        say(
            f"{row.who} gave a {row.scorer} for "
            f"{'none' if share is None else f'{share:.0%}'} of {row.n}"
        )


def judged(folder: RunFolder, proof: Proof | None, cases: Sequence[Case]) -> Judged:
    """Scores of what the judges of a run once said. Asks nobody.

    Raises:
        StoredRunError: The file of replies is damaged.
    """
    if proof is None:
        return Judged(None, ())
    return _judged(folder, proof, with_judged(proof, cases), None)


def _seats(proof: Proof, cases: Iterable[Case]) -> Iterator[tuple[str, JudgeSpec]]:
    named = {name for case in cases for name in case.scorers}
    for scorer in JUDGED:
        spec = judge_of(proof, scorer)
        if scorer in named and spec is not None:
            yield scorer, spec


def _judged(
    folder: RunFolder,
    proof: Proof,
    cases: Sequence[Case],
    live: Callable[[JudgeSpec], Ask] | None,
) -> Judged:
    seats = list(_seats(proof, cases))
    if not seats:
        return Judged(None, ())
    phase, seed = _phase(folder), proof.workload.seed
    scores, rows = [], []
    for scorer, spec in seats:
        ask = stored_ask(
            folder.path / "judge" / "replies.jsonl",
            spec.model,
            None if live is None else live(spec),
        )
        answers = _answers(folder, phase)
        if scorer == PREFERENCE:
            found, row = _preferences(cases, answers, ask, seed)
        else:
            kind: Kind = "factuality" if scorer == "factuality" else "groundedness"
            found, row = _claims(kind, cases, answers, ask, seed)
        scores.append(found)
        notes = (*row.notes, *_kinship(proof, spec.model))
        rows.append(msgspec.structs.replace(row, who=spec.model, notes=notes))
    return Judged(concatenate(scores), tuple(rows))


def _kinship(proof: Proof, judge: str) -> tuple[str, ...]:
    """A judge likes answers of its own kind; said where the names share a family."""
    own = _family(judge)
    for arm, route in (("baseline", proof.baseline), ("candidate", proof.candidate)):
        if own and route.model is not None and _family(route.model) == own:
            return (f"the judge is of the same family as the {arm} ({own})",)
    return ()


def _family(model: str) -> str:
    """The letters a model's name begins with: ``qwen`` of ``Qwen/Qwen3-8B``."""
    found = re.match(r"[a-z]{3,}", model.rsplit("/", 1)[-1].lower())
    return found[0] if found else ""


def _phase(folder: RunFolder) -> str:
    """The phase whose answers are judged: the first that ran."""
    present: set[str] = set()
    for part in folder.parts(only=("phase",)):
        present |= {str(name) for name in part.text("phase")}
    return next((phase for phase in PHASES if phase in present), PHASES[0])


def _answers(folder: RunFolder, phase: str) -> Iterator[Records]:
    for part in folder.parts(only=frozenset(COLUMNS)):
        yield part.where(part.is_in("phase", phase))


def _preferences(
    cases: Sequence[Case], answers: Iterator[Records], ask: Ask, seed: int
) -> tuple[Scores, JudgeRow]:
    scores, seen = score_preferences(cases, answers, ask, seed=seed)
    return scores, JudgeRow(
        scorer=PREFERENCE,
        who="",
        n=seen.n,
        completeness_share=seen.completeness_share if seen.n else None,
        mean=seen.mean,
        identical_share=seen.identical_share,
        inconsistency_share=seen.inconsistency_share,
        first_position_share=seen.first_position_share,
        length_adjusted=seen.length_adjusted,
        length_slope=seen.length_slope,
        placebo_mean=seen.placebo_mean,
        problems=seen.problems if seen.n else view(()).problems,
        notes=seen.notes,
    )


def _claims(
    kind: Kind, cases: Sequence[Case], answers: Iterator[Records], ask: Ask, seed: int
) -> tuple[Scores, JudgeRow]:
    scores = score_records(
        cases, answers, batch={kind: ClaimsJudge(kind, ask, seed=seed)}, only=(kind,)
    )
    asked = scores.where(scores.class_ != "failed")
    share = float(asked.value.known.mean()) if asked.n else None
    own = asked.of(kind, arm="candidate").value.where_known()
    problems: tuple[str, ...] = ()
    if share is None or share < COMPLETE_SHARE:
        told = "none" if share is None else f"only {share:.1%}"
        problems = (f"{told} of the answers could be judged",)
    return scores, JudgeRow(
        scorer=kind,
        who="",
        n=asked.n,
        completeness_share=share,
        mean=float(own.mean()) if own.size else None,
        problems=problems,
    )


def held_against(row: JudgeRow, people: Calibration | None) -> JudgeRow:
    """A judge with its agreement; one that people do not bear out decides nothing.

    Fewer than ``ENOUGH_LABELS`` labels, or a kappa below 0.4, and it only advises.
    """
    n = 0 if people is None else people.judged
    problems = row.problems
    if people is None or n < ENOUGH_LABELS:
        problems += (
            f"not held against people: {n} of {ENOUGH_LABELS} labels "
            "(`routeproof review` takes them)",
        )
    elif people.is_advisory:
        kappa = "unknown" if people.kappa is None else f"{people.kappa:.2f}"
        problems += (f"agrees too little with people: kappa {kappa} over {n} labels",)
    return msgspec.structs.replace(
        row,
        labels=n,
        agreed_share=None if people is None else people.agreed_share,
        kappa=None if people is None else people.kappa,
        problems=problems,
    )
