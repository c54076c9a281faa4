"""`routeproof review`: people judge sampled answers without knowing whose they are."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from routeproof.errors import ConfigError, StoredRunError
from routeproof.records.store import RunFolder
from routeproof.scorers.answer_of import COLUMNS, RowKey, answers_of
from routeproof.scorers.degeneration import prompt_text
from routeproof.scorers.label_files import (
    ABSTAINED,
    Label,
    read_labels,
    write_labels,
)
from routeproof.scorers.reasoning import strip_reasoning
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.scored import UNSCORED_PHASES
from routeproof.workloads.case import Case
from routeproof.workloads.cases import read_cases

Question = Literal["preference", "correct"]
CHOICES: dict[str, frozenset[str]] = {
    "preference": frozenset({"left", "right", "tie", ABSTAINED}),
    "correct": frozenset({"right", "wrong", ABSTAINED}),
}
"""What a person may answer; ``left`` and ``right`` are turned into arms on arrival."""

SHOWN_CHARACTERS = 20_000

PHASES = ("quality", "latency", "sweep", "soak")
"""The first of these that ran is the one whose answers are judged."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to judge, blind.

    Attributes:
        item_id: Says nothing of the arm; the same in every session over a run.
        left, right: The answers shown; ``right`` is ``None`` for a single answer.
        left_arm: Never leaves this process.
        requests: Request ids of (baseline, candidate), or of the one answer.
    """

    item_id: str
    prompt: str
    reference: str | None
    left: str
    right: str | None
    left_arm: str
    requests: tuple[str, ...]


class Review:
    """A session over a run: its items and the labels so far.

    Attributes:
        items: In the order in which they are shown.
        path: ``review/labels.jsonl`` of the run.
    """

    def __init__(
        self,
        run: Path,
        *,
        question: Question = "preference",
        most: int = 50,
        seed: int = 20261130,
        reviewer: str = "",
    ) -> None:
        """Sample what is to be judged.

        Args:
            run: The run folder.
            question: ``preference`` shows pairs, ``correct`` single answers.
            most: Items at most, drawn by the seed over all classes alike.
            seed: Of the draw, the order and the sides.
            reviewer: Who judges; stored with each label.

        Raises:
            StoredRunError: No run, or nothing in it that can be reviewed.
            FormatError: The label file of an earlier session is damaged.
        """
        folder = RunFolder.open(run)
        cases = {case.id: case for case in _cases(folder)}
        self.question: Question = question
        self.reviewer = reviewer
        self.path = run / "review" / "labels.jsonl"
        self.items = _items(_answers(folder), cases, question, most, seed)
        if not self.items:
            raise StoredRunError(
                f"{run} holds no answers to review",
                hint="pairs whose two texts are equal need no person; a run needs "
                "answers of both arms to a same case",
            )
        self._by_id = {item.item_id: item for item in self.items}
        stored = read_labels(self.path) if self.path.exists() else ()
        self._labels = {
            (one.item_id, one.question, one.reviewer): one for one in stored
        }

    def answer_of(self, item: Item) -> str | None:
        """What this reviewer said of an item, as it was shown; ``None`` if nothing."""
        found = self._labels.get((item.item_id, self.question, self.reviewer))
        if found is None or self.question != "preference":
            return found.label if found else None
        if found.label in ("baseline", "candidate"):
            return "left" if found.label == item.left_arm else "right"
        return found.label

    def take(self, item_id: str, answer: str, note: str = "") -> None:
        """Store one answer; a later one for the same item replaces it.

        Raises:
            ConfigError: No such item, or no such answer.
        """
        item = self._by_id.get(item_id)
        if item is None:
            raise ConfigError(f"no item {item_id!r} in this review")
        if answer not in CHOICES[self.question]:
            known = ", ".join(sorted(CHOICES[self.question]))
            raise ConfigError(f"{answer!r} is no answer, known: {known}")
        label = answer
        if self.question == "preference" and answer in ("left", "right"):
            other = "candidate" if item.left_arm == "baseline" else "baseline"
            label = item.left_arm if answer == "left" else other
        key = (item_id, self.question, self.reviewer)
        self._labels[key] = Label(
            item_id=item_id,
            question=self.question,
            label=label,
            reviewer=self.reviewer,
            note=note[:2_000],
        )
        self.save()

    def bring_in(self, labels: Iterable[Label]) -> int:
        """Take labels of another session over the same run; how many were new.

        Raises:
            ConfigError: One is for an item this run does not have.
        """
        count = 0
        for label in labels:
            if label.question == self.question and label.item_id not in self._by_id:
                raise ConfigError(
                    f"label for {label.item_id!r}, which is not in this review",
                    hint="use the run, --question, --seed and --items it was made with",
                )
            key = (label.item_id, label.question, label.reviewer)
            count += self._labels.get(key) != label
            self._labels[key] = label
        self.save()
        return count

    @property
    def labels(self) -> tuple[Label, ...]:
        """Everything stored, of all reviewers, in a fixed order."""
        return tuple(self._labels[key] for key in sorted(self._labels))

    def done(self) -> int:
        """Items this reviewer has answered."""
        return sum(self.answer_of(item) is not None for item in self.items)

    def save(self) -> None:
        """Write the labels.

        Raises:
            StoredRunError: The disk is full or the folder is read-only.
        """
        self.path.parent.mkdir(exist_ok=True)
        write_labels(self.path, self.labels)

    def shown(self) -> list[dict[str, Any]]:
        """What a browser is told: no arm, no case id, no request id."""
        return [
            {
                "id": item.item_id,
                "prompt": item.prompt,
                "reference": item.reference,
                "left": item.left,
                "right": item.right,
                "answer": self.answer_of(item),
            }
            for item in self.items
        ]


def _cases(folder: RunFolder) -> tuple[Case, ...]:
    if not folder.cases_path.exists():
        raise StoredRunError(f"{folder.path} has no cases.jsonl: nothing to review")
    return read_cases(folder.cases_path)


_Place = tuple[str, int, str, str]
_Sides = Mapping[str, tuple[RowKey, ScoredAnswer]]


def _answers(folder: RunFolder) -> dict[_Place, dict[str, tuple[RowKey, ScoredAnswer]]]:
    found: dict[_Place, dict[str, tuple[RowKey, ScoredAnswer]]] = {}
    for part in folder.parts(only=COLUMNS):
        for key, answer in answers_of(part):
            if key.phase not in UNSCORED_PHASES and answer.outcome == "completed":
                place = (key.case_id, key.trial, key.phase, key.level)
                found.setdefault(place, {})[key.arm] = (key, answer)
    ran = {place[2] for place in found}
    judged = next((phase for phase in PHASES if phase in ran), None)
    return {place: sides for place, sides in found.items() if place[2] == judged}


def _items(
    answers: Mapping[_Place, _Sides],
    cases: Mapping[str, Case],
    question: Question,
    most: int,
    seed: int,
) -> tuple[Item, ...]:
    made = [
        (case.class_, item)
        for place, sides in sorted(answers.items())
        if (case := cases.get(place[0])) is not None
        for item in _items_of(place, sides, case, question, seed)
    ]
    rng = random.Random(seed)
    rng.shuffle(made)
    by_class: dict[str, list[Item]] = {}
    for class_, item in made:
        by_class.setdefault(class_, []).append(item)
    picked: list[Item] = []
    while len(picked) < most and any(by_class.values()):
        picked += [left.pop() for left in by_class.values() if left]
    picked = picked[:most]
    rng.shuffle(picked)
    return tuple(picked)


def _items_of(
    place: _Place, sides: _Sides, case: Case, question: Question, seed: int
) -> list[Item]:
    arms = [arm for arm in ("baseline", "candidate") if arm in sides]
    texts = {arm: _visible(sides[arm][1], case) for arm in arms}
    prompt = prompt_text(case)[-SHOWN_CHARACTERS:]
    reference = None if case.reference is None else str(case.reference)[:2_000]
    if question == "correct":
        return [
            Item(
                _item_id(seed, *place, arm),
                prompt,
                reference,
                texts[arm],
                None,
                arm,
                (sides[arm][0].request_id,),
            )
            for arm in arms
            if texts[arm]
        ]
    if len(arms) < 2 or texts["baseline"] == texts["candidate"]:
        return []
    name = _item_id(seed, *place, "pair")
    left = arms[int(name, 16) % 2]
    right = "candidate" if left == "baseline" else "baseline"
    requests = (sides["baseline"][0].request_id, sides["candidate"][0].request_id)
    return [Item(name, prompt, reference, texts[left], texts[right], left, requests)]


def _item_id(*parts: object) -> str:
    text = "\x1f".join(map(str, parts)).encode("utf-8", "replace")
    return blake2b(text, digest_size=8).hexdigest()


def _visible(answer: ScoredAnswer, case: Case) -> str:
    text = strip_reasoning(answer.text, case.options.get("reasoning"))[0].strip()
    if answer.tool_calls:
        text = f"{text}\n\n{answer.tool_calls}".strip()
    return text[:SHOWN_CHARACTERS]
