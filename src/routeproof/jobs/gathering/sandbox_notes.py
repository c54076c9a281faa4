"""What the sandbox's self-test found, kept with the run whose programs it held."""

from collections.abc import Mapping

import msgspec

from routeproof.errors import StoredRunError
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder
from routeproof.scorers.code import CodeScorer
from routeproof.scorers.scored import BatchScorer

FILE_NAME = "sandbox.json"


class SandboxNote(msgspec.Struct, frozen=True, kw_only=True):
    """The tier that programs ran in, and what got through it when it was tried.

    Attributes:
        held: Attempts that were stopped.
        open: Attempts that were not, with what they got.
        skipped: Attempts not made, for want of a throw-away namespace.
    """

    tier: str
    held: tuple[str, ...] = ()
    open: dict[str, str] = {}
    skipped: tuple[str, ...] = ()


def keep_self_test(folder: RunFolder, batch: Mapping[str, BatchScorer]) -> None:
    """Write the self-test down beside the scores, where programs were run."""
    code = batch.get("code")
    if not isinstance(code, CodeScorer):
        return
    found = code.tested
    note = SandboxNote(
        tier=found.tier, held=found.held, open=found.open, skipped=found.skipped
    )
    write_atomically(
        folder.path / FILE_NAME, msgspec.json.encode(note, order="sorted") + b"\n"
    )


def sandbox_note(folder: RunFolder) -> tuple[str, ...]:
    """One sentence for the report; nothing where no program was run.

    Raises:
        StoredRunError: The file is damaged.
    """
    path = folder.path / FILE_NAME
    if not path.exists():
        return ()
    try:
        note = msgspec.json.decode(path.read_bytes(), type=SandboxNote)
    except msgspec.MsgspecError as error:
        raise StoredRunError(
            f"{path}: cannot be read: {error}",
            hint="remove it and scores.parquet, and judge the run again",
        ) from None
    tried = len(note.held) + len(note.open)
    told = f"{len(note.held)} of {tried} attempts to get out were stopped"
    if note.open:
        told += f", not: {', '.join(sorted(note.open))}"
    if note.skipped:
        told += f"; not tried: {', '.join(note.skipped)}"
    return (f"programs of answers ran in sandbox tier {note.tier}; {told}",)
