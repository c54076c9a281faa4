"""What people said of a run in `routeproof review`, as evidence like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from routeproof.errors import StoredRunError
from routeproof.gates.facts import JudgeRow
from routeproof.jobs.reviewing.session import Item, Question, Review
from routeproof.records.store import RunFolder
from routeproof.scorers.answer_of import RowKey
from routeproof.scorers.judge.agreement import Calibration, calibrate
from routeproof.scorers.label_files import ABSTAINED, Label, majority, read_labels
from routeproof.scorers.score_rows import ScoreRow, scores_from
from routeproof.scorers.scored import Scores
from routeproof.workloads.case import Case

PEOPLE: dict[str, Question] = {
    "people_preference": "preference",
    "people_correct": "correct",
}
"""Metrics that people give, and the question of a review each comes from."""

POINTS = {"candidate": 1.0, "baseline": 0.0, "tie": 0.5}
DRAW = 0.5
EVERY_ITEM = 10**9
_KEY = ("request_id", "arm", "phase", "level", "case_id", "trial")


@dataclass(frozen=True, slots=True)
class People:
    """The labels of a run.

    Attributes:
        scores: Rows of the metrics in ``PEOPLE``; empty without labels.
        rows: One for each metric with labels.
        won: By question, the label most people gave each item.
        items: By question, what could be labelled.
    """

    scores: tuple[Scores, ...]
    rows: tuple[JudgeRow, ...]
    won: Mapping[str, Mapping[str, str]]
    items: Mapping[str, Mapping[str, Item]]

    def against(self, scores: Scores, scorer: str) -> Calibration | None:
        """A judge model held against these people; ``None`` without labels of them."""
        question = "preference" if scorer == "preference" else "correct"
        won = self.won.get(question)
        if not won:
            return None
        return judge_against(scores, scorer, won, self.items[question])


def people_of(folder: RunFolder, cases: Sequence[Case]) -> People:
    """Read the labels of a run, if it has any.

    Two rows for each pair that people preferred in: the candidate's points and 0.5 for
    the baseline. One row for each single answer they called right or wrong. Where they
    are divided there is no row.

    Raises:
        FormatError: The file of labels is damaged.
    """
    path = folder.path / "review" / "labels.jsonl"
    labels = read_labels(path) if path.exists() else ()
    scores, rows = [], []
    won: dict[str, dict[str, str]] = {}
    items: dict[str, dict[str, Item]] = {}
    by_id = {case.id: case for case in cases}
    for metric, question in PEOPLE.items():
        own = [one for one in labels if one.question == question]
        if not own:
            continue
        items[question] = _items(folder, question)
        said = majority(own, question)
        won[question] = {k: v for k, v in said.items() if k in items[question]}
        found = _rows(folder, question, won[question], items[question])
        scores.append(scores_from(found, by_id, metric))
        rows.append(_row(metric, found, own))
    return People(tuple(scores), tuple(rows), won, items)


def _items(folder: RunFolder, question: Question) -> dict[str, Item]:
    try:
        review = Review(folder.path, question=question, most=EVERY_ITEM)
    except StoredRunError:
        return {}
    return {item.item_id: item for item in review.items}


def _rows(
    folder: RunFolder,
    question: Question,
    won: Mapping[str, str],
    items: Mapping[str, Item],
) -> list[ScoreRow]:
    wanted = {request for name in won for request in items[name].requests}
    keys = _keys(folder, wanted)
    rows = []
    for name, label in sorted(won.items()):
        item = items[name]
        if question == "correct":
            key, value = keys[item.requests[0]], float(label == "right")
            rows.append(ScoreRow(key, value, "correct" if value else "wrong", label))
            continue
        for request, value in zip(item.requests, (DRAW, POINTS[label]), strict=True):
            rows.append(ScoreRow(keys[request], value, "graded", label))
    return rows


def _keys(folder: RunFolder, wanted: set[str]) -> dict[str, RowKey]:
    found = {}
    for part in folder.parts(only=frozenset(_KEY)):
        trial = part.number("trial").values
        texts = [part.text(name) for name in _KEY[:-1]]
        for at, request in enumerate(texts[0]):
            if request in wanted:
                own = [str(column[at] or "") for column in texts]
                found[str(request)] = RowKey(
                    request_id=own[0],
                    arm=own[1],
                    phase=own[2],
                    level=own[3],
                    case_id=own[4],
                    trial=int(trial[at]),
                )
    return found


def _row(metric: str, rows: Sequence[ScoreRow], labels: Sequence[Label]) -> JudgeRow:
    values = [
        row.value
        for row in rows
        if row.key.arm == "candidate" and row.value is not None
    ]
    agreed = between(labels)
    kappas = [one.kappa for one in agreed if one.kappa is not None]
    shares = [one.agreed_share for one in agreed if one.agreed_share is not None]
    notes = (
        ("only pairs whose texts differ were shown",)
        if metric == "people_preference"
        else ()
    )
    return JudgeRow(
        scorer=metric,
        who="people",
        n=len(values),
        mean=sum(values) / len(values) if values else None,
        labels=sum(one.label != ABSTAINED for one in labels),
        agreed_share=min(shares, default=None),
        kappa=min(kappas, default=None),
        notes=notes,
    )


def between(labels: Sequence[Label]) -> tuple[Calibration, ...]:
    """How each two people agree over what both of them labelled."""
    by_person: dict[str, dict[str, str]] = {}
    for one in labels:
        if one.label != ABSTAINED:
            by_person.setdefault(one.reviewer, {})[one.item_id] = one.label
    return tuple(
        calibrate(f"{left} and {right}", by_person[left], by_person[right])
        for left, right in combinations(sorted(by_person), 2)
    )


def judge_against(
    scores: Scores, scorer: str, won: Mapping[str, str], items: Mapping[str, Item]
) -> Calibration | None:
    """The labels a judge gave held against those of people, item by item.

    Returns:
        ``None`` when the judge gave no scores at all.
    """
    is_pairs = scorer == "preference"
    own = scores.of(scorer, arm="candidate") if is_pairs else scores.of(scorer)
    if not own.n:
        return None
    label = _preferred if is_pairs else _right
    said = {
        str(request): label(float(value))
        for request, value, known in zip(
            own.request_id, own.value.values, own.value.known, strict=True
        )
        if known
    }
    judged = {name: said.get(items[name].requests[-1]) for name in won if name in items}
    return calibrate("judge and people", judged, won)


def _preferred(value: float) -> str:
    if value == DRAW:
        return "tie"
    return "candidate" if value > DRAW else "baseline"


def _right(value: float) -> str:
    return "right" if value == 1 else "wrong"
