"""Walk through the built wheel as a stranger would: `make wheel-walk`.

Builds the wheel, installs it into an empty environment with an empty home, leaves the
repository, and follows docs/first-verdict.md on two simulated engines. With ``--demo``
the demo on the real engine is run too (it fetches 130 MB and takes minutes).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT_MB = 350
"""The installed core, pip and setuptools left out."""

PACKAGING = {"pip", "setuptools", "_distutils_hack", "pkg_resources"}


class Walk:
    """A folder with an environment, a home and nothing else."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "env" / "bin"
        self.home = folder / "home"
        self.home.mkdir()
        self.work = folder / "work"
        self.work.mkdir()

    @property
    def environment(self):
        kept = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_"))}
        path = f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin"
        return {**kept, "PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8"}

    def say(self, words, *, expect=(0,)):
        """Type a command; what it printed."""
        began = time.monotonic()
        done = subprocess.run(
            words, cwd=self.work, env=self.environment, capture_output=True, text=True
        )
        took = time.monotonic() - began
        print(f"$ {' '.join(map(str, words))}   # {took:.1f} s, exit {done.returncode}")
        if done.returncode not in expect:
            sys.exit(f"{done.stdout}{done.stderr}")
        return done.stdout

    def engine(self, *options):
        """A simulated engine; its process and its address."""
        process = subprocess.Popen(
            [self.bin / "routeproof", "simulate", "--port", "0", *options],
            cwd=self.work,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = process.stdout.readline()
        return process, line.split("serving at ")[1].strip()


def built(folder):
    """The wheel of this tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, "-w", folder, ROOT], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed_mb(environment):
    """What the install added, in MB."""
    (site,) = environment.glob("lib/python*/site-packages")
    return (
        sum(
            path.stat().st_size
            for each in site.iterdir()
            if each.name.split("-")[0] not in PACKAGING
            for path in ([each] if each.is_file() else each.rglob("*"))
            if path.is_file()
        )
        / 1e6
    )


def follow(walk):
    """The steps of docs/first-verdict.md, and every way to read a run."""
    say = walk.say
    say(["routeproof", "--version"])
    say(["routeproof", "--help"])
    plain, baseline = walk.engine("--speed", "10")
    drafting, candidate = walk.engine("--draft-tokens", "4", "--speed", "10")
    try:
        say(["routeproof", "probe", candidate])
        say(["routeproof", "init", "--baseline", baseline, "--candidate", candidate])
        say(["routeproof", "diff", "proof.yaml"])
        say(["routeproof", "plan", "proof.yaml"])
        shorten(walk.work / "proof.yaml")
        qualify = ["routeproof", "qualify", "proof.yaml", "--out", "runs/first"]
        print(say([*qualify, "--require", "wait"], expect=(0, 1, 3)))
    finally:
        for process in (plain, drafting):
            process.terminate()
            process.wait()
    say(["routeproof", "report", "runs/first", "-f", "all"])
    say(["routeproof", "judge", "runs/first"], expect=(0, 1, 3))
    page = (walk.work / "runs/first/report.html").read_text()
    assert "vegaEmbed" in page, "the page has no charts"
    judgement = json.loads((walk.work / "runs/first/judgement.json").read_text())
    case = judgement["worst"] and judgement["worst"]["examples"]
    shown = case[0]["case_id"] if case else "arithmetic-001"
    say(["routeproof", "show", "runs/first", "--case", shown], expect=(0, 2, 3))
    say(["routeproof", "history", "runs", "--html", "history.html"])
    say(["routeproof", "compare", "runs/first", "runs/first"])


def shorten(path):
    """A part of the golden set, so that the walk takes a minute."""
    text = path.read_text()
    text = text.replace("  trials:", "  max_cases: 64\n  trials:")
    text = text.replace("requests: 100", "requests: 24")
    path.write_text(text.replace("[1, 4, 16]", "[1, 4]"))


def main():
    with tempfile.TemporaryDirectory(prefix="wheel-walk-") as name:
        folder = Path(name)
        wheel = built(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        walk = Walk(folder)
        walk.say(["pip", "install", "--quiet", wheel])
        size = installed_mb(folder / "env")
        print(f"installed: {size:.0f} MB (at most {LIMIT_MB})")
        follow(walk)
        if "--demo" in sys.argv:
            print(walk.say(["routeproof", "demo"], expect=(0, 1, 3)))
        if size > LIMIT_MB:
            sys.exit("the installed core is too large")


if __name__ == "__main__":
    main()
