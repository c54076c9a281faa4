"""Write the licences of the chart bundle: `python requirements/third_party.py`.

The bundle comes from the vl-convert wheel, which tells the versions of Vega, Vega-Lite
and Vega-Embed in it. Those packages and all they depend on are fetched with npm, and
their own licence files are put together, equal texts once. Needs npm and a network.
"""

import json
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import vl_convert

TARGET = Path(__file__).parents[1] / "src/routeproof/reports/page/THIRD_PARTY.txt"
PROGRAMS = ("yargs", "commander", "iconv-lite", "rw", "@types/geojson", "@types/estree")
"""What only the packages' own command lines and type checkers use; not bundled."""

HEAD = """\
The chart library `vega.js` is taken from the vl-convert wheel ({wheel})
when the package is built, and is part of every report with charts. It holds the works
below, each under the licence that stands after its group. Written by
requirements/third_party.py from the licence files of the npm packages.
"""


def versions() -> dict[str, str]:
    """The packages at the top of the bundle."""
    return {
        "vega": vl_convert.get_vega_version(),
        "vega-lite": vl_convert.get_vegalite_versions()[-1],
        "vega-embed": vl_convert.get_vega_embed_version(),
        "vega-themes": vl_convert.get_vega_themes_version(),
    }


def package(folder: Path, name: str) -> dict:
    """The package.json of an installed package."""
    return json.loads((folder / "node_modules" / name / "package.json").read_text())


def bundled(folder: Path, tops: list[str]) -> list[str]:
    """All that the bundle may hold: dependencies, without the command lines' own."""
    found, ahead = set(), list(tops)
    while ahead:
        name = ahead.pop()
        if name in found or name in PROGRAMS:
            continue
        found.add(name)
        ahead += package(folder, name).get("dependencies", {})
    return sorted(found)


def licence(folder: Path, name: str) -> str:
    """The licence file of a package."""
    home = folder / "node_modules" / name
    paths = [p for p in sorted(home.iterdir()) if re.match("(?i)licen|copying", p.name)]
    return "\n\n".join(p.read_text(encoding="utf-8").strip() for p in paths)


def split(text: str) -> tuple[tuple[str, ...], str]:
    """Copyright lines, and the text without them, its line breaks evened."""
    lines = [line.strip() for line in text.splitlines()]
    holders = tuple(line for line in lines if re.match(r"(?i)copyright (?!h|n)", line))
    rest = [line for line in lines if line not in holders]
    paragraphs = re.split(r"\n\s*\n", "\n".join(rest).strip())
    return holders, "\n\n".join(" ".join(p.split()) for p in paragraphs)


def page(folder: Path) -> str:
    """The whole file."""
    groups: dict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for name in bundled(folder, list(versions())):
        about = package(folder, name)
        holders, text = split(licence(folder, name))
        title = f"{name} {about['version']} ({about['license']})"
        groups[text].append((title, holders))
    parts = [HEAD.format(wheel=vl_convert_version())]
    for text, members in groups.items():
        by_holders: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for title, holders in members:
            by_holders[holders].append(title)
        parts.append("-" * 80)
        for holders, titles in by_holders.items():
            parts.append("\n".join([", ".join(titles), *holders]))
        parts.append(text)
    return "\n\n".join(parts) + "\n"


def vl_convert_version() -> str:
    """Version of the wheel the bundle is from."""
    from importlib.metadata import version

    return f"vl-convert-python {version('vl-convert-python')}"


def main() -> None:
    """Fetch the packages and write the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text("{}")
        wanted = [f"{name}@{version}" for name, version in versions().items()]
        command = ["npm", "install", "--silent", "--no-audit", "--ignore-scripts"]
        subprocess.run([*command, *wanted], cwd=folder, check=True)
        TARGET.write_text(page(folder), encoding="utf-8")


if __name__ == "__main__":
    main()
