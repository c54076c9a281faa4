"""Logs of Inspect: the zip ``.eval`` or the one ``.json``. A score may be missing."""

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.importers.lines import read_text
from routeproof.workloads.results.loose import count, mapping, number, objects, text
from routeproof.workloads.results.result import Measured, Result, Sample, digest

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": None}
"""Inspect's values: correct, incorrect, partial, no answer."""

ATTACHMENT = re.compile(r"attachment://([0-9a-f]{8,})")
"""Where a long text was moved to the sample's ``attachments``."""

MAX_MEMBER_BYTES = 256 * 1024 * 1024


def inspect_log(path: Path) -> tuple[Result, ...]:
    """The result of one Inspect log.

    A sample without a score is kept with the value ``None`` and the reason, so that
    it stays in every denominator; a run that did not end well is named as a fault.
    """
    header, samples = read_log(path)
    evaluated = header.get("eval")
    if not isinstance(evaluated, dict) or "task" not in evaluated:
        raise FormatError("not a log of Inspect: no `eval.task`", path=path)
    kept = tuple(one for sample in samples for one in _samples(sample, path))
    status = str(header.get("status", "unknown"))
    unscored = sum(sample.value is None for sample in kept)
    notes = (f"{unscored} of {len(kept)} samples have no score",) if unscored else ()
    packages = mapping(evaluated.get("packages"))
    return (
        Result(
            tool="inspect",
            tool_version=text(packages.get("inspect_ai")),
            kind="quality",
            label=f"{evaluated['task']} ({path.stem})",
            model=text(evaluated.get("model")),
            conditions=_conditions(evaluated),
            measured=_measured(header),
            samples=kept,
            faults=() if status == "success" else (f"the run ended as `{status}`",),
            notes=notes,
        ),
    )


def _conditions(evaluated: Mapping[str, Any]) -> dict[str, str]:
    named = {key: evaluated.get(key) for key in ("task", "task_version", "task_args")}
    named["dataset"] = mapping(evaluated.get("dataset")).get("name")
    named["config"] = evaluated.get("config")
    return {
        key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key, value in named.items()
        if value not in (None, {}, [])
    }


def read_log(path: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Header and samples of an Inspect log, zip or JSON.

    Raises:
        ConfigError: The file cannot be read.
        FormatError: It is no such log.
    """
    if path.suffix == ".eval":
        return _read_zip(path)
    whole = _decode(read_text(path).encode(), path)
    return whole, objects(whole.get("samples"))


def _read_zip(path: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            head = next(
                (n for n in ("header.json", "_journal/start.json") if n in names), None
            )
            if head is None:
                raise FormatError(
                    "not a log of Inspect: the archive has no header", path=path
                )
            members = sorted(n for n in names if n.startswith("samples/"))
            return _decode(_member(archive, head, path), path), [
                _decode(_member(archive, name, path), path) for name in members
            ]
    except zipfile.BadZipFile as error:
        raise FormatError(f"not a zip archive: {error}", path=path) from error
    except OSError as error:
        raise ConfigError(f"cannot read: {error.strerror}", path=path) from error


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    if archive.getinfo(name).file_size > MAX_MEMBER_BYTES:
        raise FormatError(f"`{name}` unpacks to more than 256 MiB", path=path)
    return archive.read(name)


def _decode(data: bytes, path: Path) -> Mapping[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise FormatError(f"not JSON: {error}", path=path) from error
    if not isinstance(value, dict):
        raise FormatError("not a log of Inspect: no object", path=path)
    return value


def _samples(sample: Mapping[str, Any], path: Path) -> Iterator[Sample]:
    if "id" not in sample:
        raise FormatError("a sample without an `id`", path=path)
    case_id, trial = str(sample["id"]), (count(sample.get("epoch")) or 1) - 1
    said = _answer(sample)
    text_digest = None if said is None else digest(said)
    scores = mapping(sample.get("scores"))
    if isinstance(sample.get("score"), dict):
        scores = {"score": sample["score"], **scores}
    if not scores:
        error = sample.get("error")
        why = "the sample failed" if error else "the log has no score for this sample"
        yield Sample(
            case_id=case_id,
            trial=trial,
            scorer="none",
            value=None,
            text_digest=text_digest,
            note=why,
        )
    for name, one in scores.items():
        value = one.get("value") if isinstance(one, dict) else one
        number = _value(value)
        yield Sample(
            case_id=case_id,
            trial=trial,
            scorer=name,
            value=number,
            text_digest=text_digest,
            note=None if number is not None else f"value {value!r} is no number",
        )


def _value(value: Any) -> float | None:
    if isinstance(value, str):
        return LETTERS.get(value)
    return float(value) if isinstance(value, bool) else number(value)


def _answer(sample: Mapping[str, Any]) -> str | None:
    choices = objects(mapping(sample.get("output")).get("choices"))
    if not choices:
        return None
    content = mapping(choices[0].get("message")).get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in objects(content))
    return attached(content, sample) if isinstance(content, str) else None


def attached(said: str, sample: Mapping[str, Any]) -> str:
    """A text of a sample with its attachments put back in place."""
    kept = mapping(sample.get("attachments"))
    return ATTACHMENT.sub(lambda m: text(kept.get(m[1])) or m[0], said)


def _measured(header: Mapping[str, Any]) -> tuple[Measured, ...]:
    found = []
    for score in objects(mapping(header.get("results")).get("scores")):
        for name, metric in mapping(score.get("metrics")).items():
            if name == "stderr":
                continue
            found.append(
                Measured(
                    name=f"{score.get('name')}/{name}",
                    definition_id="eval.mean",
                    unit="1",
                    statistic="mean",
                    value=number(mapping(metric).get("value")),
                )
            )
    return tuple(found)
