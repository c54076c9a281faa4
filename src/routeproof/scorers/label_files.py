"""Labels that people gave: our own files, and four public sets for calibration."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import FormatError
from routeproof.records.files import write_atomically

ABSTAINED = "skip"


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one person said of one thing; a line of a JSONL file.

    Attributes:
        item_id: Of the reviewed pair or answer.
        question: ``preference``, ``correct``, ``groundedness`` ...
        label: The answer; ``skip`` when the person did not want to say.
        reviewer: A name of the person's choosing; may be empty.
        note: Free words.
    """

    item_id: str
    question: str
    label: str
    reviewer: str = ""
    note: str = ""


def write_labels(path: Path, labels: Iterable[Label]) -> None:
    """Write labels as JSONL, atomically.

    Raises:
        StoredRunError: The disk is full or the folder is read-only.
    """
    lines = [msgspec.json.encode(label) + b"\n" for label in labels]
    write_atomically(path, b"".join(lines))


def read_labels(path: Path) -> tuple[Label, ...]:
    """Labels of a JSONL file; the last one of a person for a question counts.

    Raises:
        FormatError: A line is no label.
    """
    found: dict[tuple[str, str, str], Label] = {}
    for number, row in _json_lines(path):
        try:
            label = msgspec.convert(row, Label)
        except msgspec.ValidationError as error:
            raise FormatError(str(error), path=path, line=number) from None
        found[label.item_id, label.question, label.reviewer] = label
    return tuple(found.values())


def majority(labels: Iterable[Label], question: str) -> dict[str, str]:
    """The label most people gave, by item; items with a draw are left out."""
    votes: dict[str, list[str]] = {}
    for label in labels:
        if label.question == question and label.label != ABSTAINED:
            votes.setdefault(label.item_id, []).append(label.label)
    return {item: won for item, cast in votes.items() if (won := _winner(cast))}


def _winner(cast: list[str]) -> str | None:
    counts = {label: cast.count(label) for label in cast}
    best = max(counts.values())
    leaders = [label for label, count in counts.items() if count == best]
    return leaders[0] if len(leaders) == 1 else None


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A recorded verdict of a judge in both orders, beside a person's label.

    Attributes:
        order_ab, order_ba: The winning output; ``None`` when it gave no verdict.
    """

    item_id: str
    judge: str
    human: str
    order_ab: str | None
    order_ba: str | None

    @property
    def both(self) -> str | None:
        """The winner when both orders agree, else ``tie``; ``None`` when incomplete."""
        if self.order_ab is None or self.order_ba is None:
            return None
        return self.order_ab if self.order_ab == self.order_ba else "tie"


def read_llmbar_verdicts(path: Path) -> tuple[JudgeVerdict, ...]:
    """Verdicts of a CSV with the columns of LLMBar's judge runs.

    Raises:
        FormatError: A column is missing.
    """
    return tuple(
        JudgeVerdict(
            item_id=row["id"],
            judge=f"{row['judge']} {row['prompting']}",
            human=row["human_label"],
            order_ab=row["winner_order_ab"] or None,
            order_ba=row["winner_order_ba"] or None,
        )
        for row in _csv_rows(
            path,
            needs=("id", "judge", "prompting", "human_label"),
            more=("winner_order_ab", "winner_order_ba"),
        )
    )


def read_begin(path: Path) -> tuple[dict[str, str], ...]:
    """Rows of a BEGIN file: ``id``, ``knowledge``, ``response``, ``label``.

    Raises:
        FormatError: A line lacks one of them.
    """
    return tuple(_texts(path, ("id", "knowledge", "response", "label")))


def read_factscore(path: Path) -> dict[str, tuple[int, int]]:
    """(supported, checked) facts of each answer of a FActScore file, as people say.

    Irrelevant facts are left out of both; an answer without facts has (0, 0).

    Raises:
        FormatError: A line has no facts with labels.
    """
    found = {}
    for number, row in _json_lines(path):
        try:
            labels = [str(fact["label"]) for fact in row["facts"] or ()]
            name = str(row["id"])
        except (KeyError, TypeError):
            raise FormatError("no facts with labels", path=path, line=number) from None
        supported = labels.count("S")
        found[name] = (supported, supported + labels.count("NS"))
    return found


def read_refusal_labels(path: Path, route: str) -> dict[str, bool]:
    """Whether people say a route refused each prompt, from an XSTest label file.

    A partial refusal counts as one.

    Raises:
        FormatError: The route has no column.
    """
    column = f"{route}_final"
    rows = _csv_rows(path, needs=("id", column))
    return {row["id"]: not row[column].startswith("1") for row in rows}


def _csv_rows(
    path: Path, *, needs: tuple[str, ...], more: tuple[str, ...] = ()
) -> Iterator[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = {*needs, *more} - set(reader.fieldnames or ())
        if missing:
            columns = ", ".join(sorted(missing))
            raise FormatError(f"no column {columns}", path=path, line=1)
        yield from reader


def _texts(path: Path, names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for number, row in _json_lines(path):
        if not all(isinstance(row.get(name), str) for name in names):
            wanted = ", ".join(names)
            raise FormatError(f"not all of {wanted}", path=path, line=number)
        yield {name: row[name] for name in names}


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise FormatError(f"no JSON: {error}", path=path, line=number) from None
            if not isinstance(row, dict):
                raise FormatError("no JSON object", path=path, line=number)
            yield number, row
