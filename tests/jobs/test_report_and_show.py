import pytest
from report_cases import a_judgement
from stored_runs import a_run

from routeproof.errors import ConfigError, StoredRunError
from routeproof.jobs.report import load_judgement, raw_files, report
from routeproof.jobs.show import show
from routeproof.reports.formats import FORMATS
from routeproof.reports.judgement import encode
from routeproof.reports.shown import answer_text, case_text

LIGHT = tuple(name for name in FORMATS if name != "html")


@pytest.fixture
def run(tmp_path):
    (tmp_path / "judgement.json").write_bytes(encode(a_judgement()))
    return tmp_path


def test_reports_are_written_into_the_run_folder_and_overwritten(run):
    written = report(run, formats=LIGHT)
    assert [path.parent for path in written] == [run] * len(LIGHT)
    assert report(run, formats=LIGHT) == written
    assert not [p for p in run.iterdir() if p.name.endswith(".tmp")]


def test_a_judgement_file_can_be_reported_without_its_run(run, tmp_path):
    out = tmp_path / "elsewhere" / "deep"
    [path] = report(run / "judgement.json", formats=("markdown",), out=out)
    assert path == out / "report.md"
    assert path.read_text().startswith("## ")


def test_a_report_elsewhere_links_to_no_files(run, tmp_path):
    assert raw_files(run, seen_from=run) == ("judgement.json",)
    assert raw_files(run, seen_from=tmp_path / "other") == ()


def test_an_unknown_format_names_the_known_ones(run):
    with pytest.raises(ConfigError, match="known: html, text, markdown"):
        report(run, formats=("pdf",))
    assert [p.name for p in run.iterdir()] == ["judgement.json"]


def test_a_torn_judgement_says_to_judge_again(run):
    (run / "judgement.json").write_text('{"schema": 1}')
    with pytest.raises(StoredRunError, match="routeproof judge"):
        load_judgement(run)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return a_run(tmp_path_factory.mktemp("runs") / "one", cases=6, wrong=(3,))


@pytest.mark.slow
def test_show_gives_the_prompt_and_both_answers_of_every_stage(stored):
    found = show(stored, "case-003")
    assert found.case.reference == "3"
    stages = [(r.phase, r.arm, r.text) for r in found.requests]
    assert ("quality", "baseline", "3") in stages
    assert ("quality", "candidate", "wrong") in stages
    assert len(stages) == 4


@pytest.mark.slow
def test_show_tells_times_since_the_request_was_due(stored):
    baseline = next(r for r in show(stored, "case-000").requests if r.arm == "baseline")
    assert (baseline.first_visible_after_s, baseline.ended_after_s) == (0.2, 1.0)
    assert "first visible 200 ms, ended 1.00 s" in "\n".join(answer_text(baseline))


@pytest.mark.slow
def test_show_of_a_case_that_is_not_there_is_one_clear_error(stored):
    with pytest.raises(ConfigError, match="has no case 'nope'"):
        show(stored, "nope")


@pytest.mark.slow
def test_an_answer_cannot_steer_the_terminal(stored):
    import msgspec

    found = show(stored, "case-003")
    evil = msgspec.structs.replace(found.requests[0], text="\x1b[2J\x07gone")
    assert "\x1b" not in "\n".join(answer_text(evil))
    assert "Say 3." in "\n".join(case_text(found.case))
