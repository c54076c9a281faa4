"""The fixture `routeproof` inside a test run of its own."""

import pytest
from stored_runs import a_run

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow


@pytest.fixture
def suite(pytester):
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = ''\n")
    return pytester


def outcome_of(pytester, body, *options):
    pytester.makepyfile(body)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)


def test_a_stored_run_below_what_is_required_fails_with_the_verdict(suite):
    run = a_run(suite.path / "run", cases=12, wrong=range(12))
    result = outcome_of(
        suite, f"def test_it(routeproof): routeproof.judge({str(run)!r})"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*asked for adopt, the verdict is *"])
    result.stdout.fnmatch_lines(["*routeproof*", "verdict *"])


def test_a_verdict_that_is_good_enough_passes_and_can_be_asked_further(suite):
    run = a_run(suite.path / "run")
    body = f"""
        def test_it(routeproof):
            judgement = routeproof.judge({str(run)!r}, require="wait")
            assert judgement.gate("correctness").status == "passed"
    """
    outcome_of(suite, body).assert_outcomes(passed=1)


def test_lack_of_evidence_can_be_a_skip(suite):
    run = a_run(suite.path / "run", cases=12)
    body = f"def test_it(routeproof): routeproof.judge({str(run)!r})"
    outcome_of(suite, body, "--routeproof-inconclusive=skip").assert_outcomes(skipped=1)


def test_a_wrong_proof_file_is_an_error_with_its_own_words(suite):
    suite.path.joinpath("proof.yaml").write_text("baseline: 3\n")
    body = "def test_it(routeproof): routeproof('proof.yaml')"
    result = outcome_of(suite, body)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ConfigError*proof.yaml*"])
