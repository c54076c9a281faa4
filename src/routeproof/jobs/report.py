"""Reports of a run folder, from its judgement alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from routeproof.errors import ConfigError, StoredRunError
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder
from routeproof.reports.formats import FORMATS, Choices, Format
from routeproof.reports.judgement import Judgement, decode

_RAW = (
    "manifest.json",
    "proof.yaml",
    "cases.jsonl",
    "judgement.json",
    "records",
    "telemetry",
    "scores.parquet",
    "probe",
    "logs",
)


def load_judgement(run: Path) -> Judgement:
    """The judgement of a run folder, or of a judgement file itself.

    Raises:
        StoredRunError: There is none, or it cannot be read.
    """
    path = run if run.is_file() else RunFolder(run).judgement_path
    if not path.exists():
        what = "has no judgement yet" if run.is_dir() else "is not there"
        raise StoredRunError(
            f"{run} {what}",
            hint=f"run `routeproof judge {run}` first"
            if run.is_dir()
            else "give the folder of a run, such as runs/20260101-120000",
        )
    return decode(path.read_bytes(), path=path)


def report(
    run: Path,
    *,
    formats: Sequence[str] = ("html",),
    out: Path | None = None,
    choices: Choices | None = None,
) -> tuple[Path, ...]:
    """Write reports of a run.

    Args:
        run: The run folder.
        formats: Names in ``reports.formats.FORMATS``.
        out: Folder to write to; the run folder when ``None``.
        choices: What may be chosen about them; its ``files`` are filled in here.

    Returns:
        The files written, in the order of ``formats``.

    Raises:
        ConfigError: There is no such format.
        StoredRunError: The run has no judgement, or ``out`` cannot be written.
    """
    wanted = [named(name) for name in formats]
    judgement = load_judgement(run)
    folder = out or (run if run.is_dir() else run.parent)
    chosen = replace(choices or Choices(), files=raw_files(run, seen_from=folder))
    written = []
    for each in wanted:
        path = folder / each.file_name
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, each.of(judgement, chosen).encode())
        written.append(path)
    return tuple(written)


def named(name: str) -> Format:
    """The format of a name.

    Raises:
        ConfigError: There is none; the known names are listed.
    """
    found = FORMATS.get(name)
    if found is None:
        known = ", ".join(FORMATS)
        raise ConfigError(f"no report format {name!r}", hint=f"known: {known}")
    return found


def raw_files(run: Path, *, seen_from: Path) -> tuple[str, ...]:
    """What lies in the run folder, as links from a report in ``seen_from``.

    Empty when the report lies elsewhere: such a link would break when it is sent on.
    """
    if not run.is_dir() or run.resolve() != seen_from.resolve():
        return ()
    return tuple(name for name in _RAW if (run / name).exists())
