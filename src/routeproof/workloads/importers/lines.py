"""Rows of a data file, each with the line it came from, so that errors can name it."""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.case import Case

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Imported:
    """What an importer found.

    Attributes:
        left_out: Rows or checks that could not be taken over, by reason.
    """

    cases: tuple[Case, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """One row; ``number`` is its line, or its place in a JSON array, from 1."""

    path: Path
    number: int
    row: Mapping[str, Any]

    def error(self, message: str, *, hint: str | None = None) -> FormatError:
        """An error that names the file and this line."""
        return FormatError(message, path=self.path, line=self.number, hint=hint)

    def text(self, key: str) -> str:
        """A text that must be there and not be empty.

        Raises:
            FormatError: It is missing, or no text.
        """
        value = self.row.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"`{key}` is no text: {_shown(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts that must be there and not be empty.

        Raises:
            FormatError: It is missing, or holds something else.
        """
        value = self.row.get(key)
        if not isinstance(value, list) or not value:
            raise self.error(f"`{key}` is no list of texts: {_shown(value)}")
        if not all(isinstance(one, str) for one in value):
            raise self.error(f"`{key}` holds something that is no text")
        return tuple(value)

    def mapping(self, key: str) -> dict[str, Any]:
        """An object that must be there.

        Raises:
            FormatError: It is missing, or something else.
        """
        value = self.row.get(key)
        if not isinstance(value, dict):
            raise self.error(f"`{key}` is no object: {_shown(value)}")
        return value

    def name(self, *keys: str) -> str:
        """The first of the keys that holds a name (text or number), as text.

        Raises:
            FormatError: None of them does.
        """
        for key in keys:
            value = self.row.get(key)
            if (
                isinstance(value, str | int)
                and not isinstance(value, bool)
                and value != ""
            ):
                return str(value)
        raise self.error(f"no {' or '.join(f'`{key}`' for key in keys)}")


def read_lines(path: Path, what: str, needs: Sequence[str]) -> Iterator[Line]:
    """Rows of a JSONL file or of one JSON array, plain or gzipped.

    Args:
        path: The file.
        what: What it should be, for the error: ``GSM8K``.
        needs: Keys that the first row must have; tells a wrong file at once.

    Raises:
        ConfigError: The file cannot be read.
        FormatError: A row is no JSON object, the first lacks a key, or there is none.
    """
    rows = _rows(path)
    count = 0
    for number, row in rows:
        line = Line(path, number, row)
        if count == 0:
            missing = [key for key in needs if key not in row]
            if missing:
                raise line.error(
                    f"not {what}: no key {', '.join(f'`{m}`' for m in missing)}",
                    hint=f"this file has the keys {', '.join(sorted(row)[:12])}",
                )
        count += 1
        yield line
    if not count:
        raise FormatError(f"not {what}: the file is empty", path=path, line=1)


def read_text(path: Path) -> str:
    """The text of a file, plain or gzipped, without a byte order mark.

    Raises:
        ConfigError: The file cannot be read.
        FormatError: It is not UTF-8, or broken gzip.
    """
    try:
        data = path.read_bytes()
        if data.startswith(GZIP_MAGIC):
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 at byte {error.start}", path=path) from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise FormatError(f"broken gzip: {error}", path=path) from error
    except OSError as error:
        raise ConfigError(f"cannot read: {error.strerror}", path=path) from error


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    text = read_text(path)
    if text.lstrip().startswith("["):
        values = _decode(text, path, 1)
        pairs = list(enumerate(values, 1))
    else:
        lines = enumerate(text.split("\n"), 1)
        pairs = [(n, _decode(one, path, n)) for n, one in lines if one.strip()]
    for number, value in pairs:
        if not isinstance(value, dict):
            raise FormatError("not a JSON object", path=path, line=number)
        yield number, value


def _decode(text: str, path: Path, line: int) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise FormatError(f"not JSON: {error}", path=path, line=line) from error


def _shown(value: Any) -> str:
    return repr(value)[:60]


def user(text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    """A message of the model."""
    return {"role": "assistant", "content": text}
