"""Where the public data sets lie that the importers are tried on."""

from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent.parent / "shared" / "data"


def data_file(name: str) -> Path:
    """A file of the data folder; skips the test where the folder is absent."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"public data set {name} is not on this machine")
    return path
