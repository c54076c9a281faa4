"""Writing files so that a reader sees the old one or the new one, never a half."""

import os
from pathlib import Path

from routeproof.errors import StoredRunError


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``: temporary file, fsync, rename, fsync of the folder.

    Args:
        path: Where the file is to be; its folder must exist.
        data: The whole content.

    Raises:
        StoredRunError: The disk is full, the folder is read-only or gone. What was at
            ``path`` before is still there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoredRunError(
            f"cannot write {path}: {error.strerror or error}",
            hint="free some space or give another folder with --out; what was stored "
            "before is untouched and --resume goes on from there",
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; a file system that cannot do it is left alone."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def read_bytes(path: Path, *, what: str) -> bytes:
    """Read a whole file of a run folder.

    Raises:
        StoredRunError: It is not there or cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise StoredRunError(
            f"{path}: there is no {what}",
            hint="give the folder of a run, such as runs/20260101-120000",
        ) from error
    except OSError as error:
        raise StoredRunError(
            f"cannot read {path}: {error.strerror or error}"
        ) from error
