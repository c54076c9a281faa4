"""The pytest fixture ``routeproof``: a proof as one test of a suite.

Loaded by pytest through its entry point; imports nothing heavy until a test asks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from routeproof.reports.judgement import Judgement

Require = Literal["adopt", "pilot", "wait"]

_VERDICTS = pytest.StashKey[list[str]]()


class Proofs:
    """What the fixture gives: call it with a proof file.

    Example::

        def test_the_fp8_route_may_be_piloted(routeproof):
            routeproof("proofs/fp8.yaml", require="pilot")
    """

    def __init__(self, config: pytest.Config, runs: Path) -> None:
        self._config = config
        self._runs = runs
        self._judged: dict[Path, Judgement] = {}

    def __call__(self, proof: str | Path, *, require: Require = "adopt") -> Judgement:
        """Run a proof (once in a session) and fail the test below ``require``.

        Args:
            proof: The proof file, relative to the root of the test run.
            require: The verdict asked for.

        Returns:
            The judgement, for further assertions.

        Raises:
            RouteproofError: The proof is wrong, or could not be measured.
        """
        from routeproof.cli.plugins import load_plugins
        from routeproof.jobs.qualify import qualify

        load_plugins()
        path = (self._config.rootpath / proof).resolve()
        if path not in self._judged:
            folder = _free(self._runs / path.stem)
            self._judged[path] = self._kept(qualify(path, folder), folder)
        return self._held_to(self._judged[path], require)

    def judge(self, run: str | Path, *, require: Require = "adopt") -> Judgement:
        """Judge a stored run and fail the test below ``require``; nothing is sent."""
        from routeproof.jobs.judge import judge

        folder = (self._config.rootpath / run).resolve()
        return self._held_to(self._kept(judge(folder), folder), require)

    def _kept(self, judgement: Judgement, folder: Path) -> Judgement:
        from routeproof.jobs.report import report
        from routeproof.reports.terminal import render

        (page,) = report(folder, formats=("html",))
        text = render(judgement, report=str(page))
        self._config.stash.setdefault(_VERDICTS, []).append(text)
        return judgement

    def _held_to(self, judgement: Judgement, require: Require) -> Judgement:
        from routeproof.reports.requirement import MET, exit_code
        from routeproof.reports.terminal import render
        from routeproof.verdict import Decision

        decision = judgement.verdict.decision
        if exit_code(decision, Decision(require)) == MET:
            return judgement
        how = self._config.getoption("routeproof_inconclusive")
        if how == "skip" and _is_only_open(judgement):
            pytest.skip(judgement.headline)
        pytest.fail(
            f"asked for {require}, the verdict is {decision.value}\n\n"
            f"{render(judgement)}",
            pytrace=False,
        )


def _is_only_open(judgement: Judgement) -> bool:
    """True when no gate failed: there was too little evidence, not a loss."""
    from routeproof.gates.result import Status
    from routeproof.verdict import Decision

    is_verdict = judgement.verdict.decision is not Decision.NONE
    return is_verdict and all(g.status is not Status.FAILED for g in judgement.gates)


def _free(folder: Path) -> Path:
    """The folder, or the first of its numbered siblings that is not taken."""
    number = 1
    free = folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


@pytest.fixture(scope="session")
def routeproof(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Proofs:
    """Run proofs and hold their verdicts to what a test requires."""
    given = request.config.getoption("routeproof_runs")
    runs = Path(given) if given else tmp_path_factory.mktemp("routeproof")
    return Proofs(request.config, runs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the fixture."""
    group = parser.getgroup("routeproof", "proofs of inference routes")
    group.addoption(
        "--routeproof-runs",
        metavar="FOLDER",
        default=None,
        help="Where run folders are kept; a temporary folder when not given.",
    )
    group.addoption(
        "--routeproof-inconclusive",
        choices=("fail", "skip"),
        default="fail",
        help="What becomes of a test whose proof lacks evidence but failed no gate.",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Every verdict reached, at the end of the test run."""
    verdicts = terminalreporter.config.stash.get(_VERDICTS, [])
    if verdicts:
        terminalreporter.section("routeproof")
        for text in verdicts:
            terminalreporter.write_line(text)
