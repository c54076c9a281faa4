"""Cases from JSONL files: loading, checking, writing."""

import difflib
import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError, FormatError
from routeproof.proof.workload import WorkloadSpec
from routeproof.workloads.case import Case
from routeproof.workloads.golden import golden_cases
from routeproof.workloads.sample import stratified

GOLDEN = "golden"
"""The word in ``workload.cases`` that stands for the set that ships with us."""

OPTIONAL_OBJECTS = ("tags", "parameters", "options")


def load_cases(spec: WorkloadSpec, base: Path) -> tuple[Case, ...]:
    """The cases of a workload, in the order of its files and lines.

    Files that match one glob are taken in name order. With ``max_cases`` a part of
    them is drawn by class from the workload's seed (``sample.stratified``).

    Args:
        spec: The workload as written down.
        base: Folder that relative paths start from, that of the proof file.

    Raises:
        ConfigError: No file matches, a file cannot be read, an id occurs twice, or a
            required class has too few cases.
        FormatError: A line is not a case; says the file and the line.
    """
    found: list[Case] = []
    places: dict[str, str] = {}
    for entry in spec.cases:
        for case, place in _entry_cases(entry, base):
            first = places.get(case.id)
            if first == place:
                continue  # two overlapping globs found the same line
            if first is not None:
                raise ConfigError(
                    f"the id `{case.id}` occurs twice: {first} and {place}",
                    key="workload.cases",
                    hint="give every case its own id; two files that hold the same "
                    "cases cannot be used together",
                )
            places[case.id] = place
            found.append(case)
    if not found:
        raise ConfigError(
            "the workload has no case",
            key="workload.cases",
            hint="name a JSONL file of cases, or `golden` for the set that ships "
            "with routeproof",
        )
    _check_required(found, spec.classes_required)
    if spec.max_cases is None:
        return tuple(found)
    return stratified(
        found, spec.max_cases, seed=spec.seed, at_least=spec.classes_required
    )


def read_cases(path: Path) -> tuple[Case, ...]:
    """All cases of one JSONL file.

    Raises:
        ConfigError: The file cannot be read, or an id occurs twice in it.
        FormatError: A line is not a case, or the file is empty.
    """
    return load_cases(WorkloadSpec(cases=(str(path.absolute()),)), path.parent)


def write_cases(cases: Iterable[Case], path: Path) -> None:
    """Write cases as JSONL, fields at their default left out, UTF-8, LF."""
    with path.open("wb") as file:
        for case in cases:
            file.write(case_line(case))


def case_line(case: Case) -> bytes:
    """One case as a line of JSONL, without the fields that are at their default."""
    kept = {
        key: value
        for key, value in msgspec.to_builtins(case).items()
        if key in ("id", "class", "scorers")
        or not (value is None or (key in OPTIONAL_OBJECTS and not value))
    }
    return msgspec.json.encode(kept) + b"\n"


def _entry_cases(entry: str, base: Path) -> Iterator[tuple[Case, str]]:
    if entry == GOLDEN:
        for case in golden_cases():
            yield case, GOLDEN
        return
    names = [entry]
    if not (base / entry).exists():
        names = sorted(glob.glob(entry, root_dir=base, recursive=True)) or [entry]
    for name in names:
        for number, case in _file_cases(base / name):
            yield case, f"{base / name}: line {number}"


def _file_cases(path: Path) -> Iterator[tuple[int, Case]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read the cases: {error.strerror}",
            path=path,
            hint="paths in `workload.cases` start from the folder of the proof file",
        ) from error
    empty = True
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            empty = False
            yield number, decode_case(line, path=path, line=number)
    if empty:
        raise FormatError(
            "the file holds no case",
            path=path,
            hint="one JSON object per line, such as "
            '{"id": "a1", "class": "factual_qa", "prompt": "...", "reference": "..."}',
        )


def decode_case(
    data: bytes, *, path: Path | str | None = None, line: int | None = None
) -> Case:
    """One case from a line of JSON, checked.

    Raises:
        FormatError: Not JSON, an unknown key, a wrong type, or a case that could not
            be sent.
    """
    try:
        case = msgspec.json.decode(data, type=Case)
    except UnicodeDecodeError as error:
        raise FormatError(
            f"not UTF-8: {error.reason} at byte {error.start}", path=path, line=line
        ) from error
    except msgspec.ValidationError as error:
        raise FormatError(
            f"not a case: {error}", path=path, line=line, hint=_key_hint(str(error))
        ) from error
    except msgspec.DecodeError as error:
        raise FormatError(
            f"not JSON: {error}",
            path=path,
            line=line,
            hint="every line is one JSON object",
        ) from error
    if problem := case_problem(case):
        raise FormatError(f"case `{case.id}`: {problem}", path=path, line=line)
    return case


def case_problem(case: Case) -> str | None:
    """Why a case cannot be used, in words; ``None`` when it can."""
    if not case.id:
        return "`id` is empty"
    if not case.class_:
        return "`class` is empty"
    if (case.messages is None) == (case.prompt is None):
        both = case.messages is not None
        return (
            "has both `messages` and `prompt`; keep one"
            if both
            else "has neither `messages` nor `prompt`"
        )
    if case.messages is not None:
        return messages_problem(case.messages)
    return None


def messages_problem(messages: tuple[dict[str, object], ...]) -> str | None:
    """Why messages cannot be sent, in words; ``None`` when they can."""
    if not messages:
        return "`messages` is empty"
    for index, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            return f"`messages[{index}]` has no `role`"
        if "content" not in message and "tool_calls" not in message:
            return f"`messages[{index}]` has neither `content` nor `tool_calls`"
    return None


def _check_required(cases: list[Case], required: dict[str, int]) -> None:
    counts: dict[str, int] = {}
    for case in cases:
        counts[case.class_] = counts.get(case.class_, 0) + 1
    for name, needed in required.items():
        if counts.get(name, 0) < needed:
            known = ", ".join(f"{k} {v}" for k, v in sorted(counts.items()))
            raise ConfigError(
                f"{needed} cases of class `{name}` are required, "
                f"the workload has {counts.get(name, 0)}",
                key="workload.classes_required",
                hint=f"the classes of this workload: {known}",
            )


def _key_hint(message: str) -> str | None:
    if "unknown field `" not in message:
        return None
    key = message.split("unknown field `")[1].split("`")[0]
    names = [f.encode_name for f in msgspec.structs.fields(Case)]
    near = difflib.get_close_matches(key, names, n=1)
    known = f"a case has the keys {', '.join(names)}"
    return f"did you mean `{near[0]}`? {known}" if near else known
