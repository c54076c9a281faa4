"""The wheel holds what it needs, and nothing of the workshop."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_every_file_that_is_read_at_run_time(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    data = {
        str(path.relative_to(source))
        for path in (source / "routeproof").rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    }
    assert data <= names
    assert "routeproof/reports/page/vega.js" in names
    assert "routeproof/reports/page/THIRD_PARTY.txt" in names
    outside = {n for n in names if not n.startswith(("routeproof/", "routeproof-"))}
    assert outside == set()


def test_commands_run_from_the_wheel_alone(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); "
        "import routeproof; "
        "assert routeproof.__file__.startswith(sys.path[0]); "
        "from routeproof.cli import main; main()"
    )
    for words in (["--version"], ["simulate", "--list-faults"], ["report", "--schema"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and done.stdout, done.stderr


def test_entry_points_lead_to_functions(wheel):
    (name,) = [
        n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("entry_points.txt")
    ]
    text = zipfile.ZipFile(wheel).read(name).decode()
    assert "routeproof = routeproof.cli:main" in text
    assert "routeproof = routeproof.cli.pytest_plugin" in text


def test_the_licences_are_those_of_the_bundled_versions():
    vl_convert = pytest.importorskip("vl_convert")
    text = (ROOT / "src/routeproof/reports/page/THIRD_PARTY.txt").read_text()
    for name, version in (
        ("vega", vl_convert.get_vega_version()),
        ("vega-embed", vl_convert.get_vega_embed_version()),
    ):
        assert f"{name} {version} (" in text, "run `make third-party`"
    latest = vl_convert.get_vegalite_versions()[-1]
    assert f"vega-lite {latest}." in text, "run `make third-party`"
