"""A judge's replies on disk: asked once, read ever after.

A judge is slow, costs money and is not the same tomorrow. What it said is evidence of
the run like the answers themselves, so it is kept, and a run can be judged again
anywhere without asking anybody.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

from routeproof.errors import StoredRunError
from routeproof.scorers.judge.question import Ask, Question, request_body

AT_A_TIME = 64
"""Questions asked before their replies are put on disk."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a file of replies.

    Attributes:
        key: Of the question and the model, see ``question_key``.
        reply: The judge's words, as they came.
    """

    key: str
    reply: str


def question_key(question: Question, model: str) -> str:
    """What one question to one model is filed under; a second try has its own."""
    again = b"\x1fagain" if question.is_second_try else b""
    body = request_body(question, model) + again
    return blake2b(body, digest_size=16).hexdigest()


def read_replies(path: Path) -> dict[str, str]:
    """Replies by key; empty when there is no file.

    A last line that was cut off while it was written is left out: its question is
    asked again.

    Raises:
        StoredRunError: Another line is no reply.
    """
    if not path.exists():
        return {}
    lines = path.read_bytes().split(b"\n")
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            one = msgspec.json.decode(line, type=Reply)
        except msgspec.MsgspecError as error:
            if number == len(lines):
                break
            raise StoredRunError(
                f"{path}, line {number}: no reply of a judge: {error}",
                hint="remove that line and resume the run, to have it asked again",
            ) from None
        found[one.key] = one.reply
    return found


def stored_ask(path: Path, model: str, live: Ask | None = None) -> Ask:
    """A judge that answers from a file first.

    Args:
        path: The file of replies; grows by what ``live`` says.
        model: Replies of another model are not its own.
        live: Asked what the file lacks; without one that stays unanswered.

    Raises:
        StoredRunError: On asking, when the file is damaged or cannot be written.
    """
    known = read_replies(path)

    def ask(questions: Sequence[Question]) -> list[str | None]:
        keys = [question_key(one, model) for one in questions]
        lacking = {k: at for at, k in enumerate(keys) if k not in known}
        if live is not None:
            for some in _in_parts(list(lacking.items())):
                replies = live([questions[at] for _, at in some])
                told = zip(some, replies, strict=True)
                fresh = {key: reply for (key, _), reply in told if reply is not None}
                _append(path, fresh)
                known.update(fresh)
        return [known.get(key) for key in keys]

    return ask


def _in_parts(places: Sequence[tuple[str, int]]) -> Iterator[Sequence[tuple[str, int]]]:
    for start in range(0, len(places), AT_A_TIME):
        yield places[start : start + AT_A_TIME]


def _append(path: Path, fresh: Mapping[str, str]) -> None:
    rows = [
        msgspec.json.encode(Reply(key=key, reply=_storable(reply))) + b"\n"
        for key, reply in fresh.items()
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            _cut_to_whole_lines(file)
            file.writelines(rows)
    except OSError as error:
        raise StoredRunError(
            f"{path}: cannot keep what the judge said: {error.strerror or error}"
        ) from error


def _cut_to_whole_lines(file: BinaryIO) -> None:
    """Take away a last line that was cut off while it was written."""
    file.seek(0)
    text = file.read()
    file.truncate(text.rfind(b"\n") + 1)
    file.seek(0, 2)


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
