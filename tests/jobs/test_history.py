import msgspec
import pytest
from report_cases import a_judgement

from routeproof.errors import StoredRunError
from routeproof.jobs.history import history
from routeproof.reports import past, past_page
from routeproof.reports.judgement import encode
from routeproof.verdict import Decision


def stored(folder, name, *, day, decision=Decision.PILOT, digest="a" * 64, **changes):
    judgement = a_judgement(decision=decision)
    run = msgspec.structs.replace(
        judgement.provenance,
        run_id=name,
        started_at=f"2026-11-{day:02d}T08:00:00+00:00",
        candidate_digest=digest,
        **changes,
    )
    (folder / name).mkdir()
    path = folder / name / "judgement.json"
    path.write_bytes(encode(msgspec.structs.replace(judgement, provenance=run)))


@pytest.fixture
def runs(tmp_path):
    stored(tmp_path, "late", day=20, decision=Decision.ADOPT)
    stored(tmp_path, "early", day=3)
    stored(tmp_path, "other", day=9, digest="d" * 64, workload_fingerprint="9" * 64)
    return tmp_path


def test_runs_come_in_the_order_of_their_start(runs):
    found, unread = history(runs)
    assert [run.run_id for run in found] == ["early", "other", "late"]
    assert unread == ()


def test_one_route_or_one_workload_can_be_chosen_by_the_start_of_its_digest(runs):
    assert [r.run_id for r in history(runs, route="dddd")[0]] == ["other"]
    assert len(history(runs, route="example/model-8b")[0]) == 3
    assert [r.run_id for r in history(runs, workload="999")[0]] == ["other"]


def test_a_judgement_that_cannot_be_read_is_left_out_and_named(runs):
    (runs / "torn").mkdir()
    (runs / "torn" / "judgement.json").write_text("{")
    found, unread = history(runs)
    assert len(found) == 3
    assert len(unread) == 1 and "torn" in unread[0]


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(StoredRunError, match="is not a folder"):
        history(tmp_path / "none")


def test_the_text_has_verdict_quality_gain_and_acceptance(runs):
    text = past.render(history(runs)[0])
    line = next(each for each in text.splitlines() if " late " in each)
    for part in ("adopt", "-0.6", "1.36x", "61 %", "2.84"):
        assert part in line


def test_no_runs_are_said_to_be_none(tmp_path):
    assert past.render(history(tmp_path)[0]) == "no judged runs\n"


@pytest.mark.slow
def test_the_page_draws_every_question_gain_and_acceptance(runs):
    made = past_page.render(history(runs)[0], title="History of <b>")
    for key in ("past-quality-0", "past-gain", "past-acceptance"):
        assert f'data-chart="{key}"' in made
    assert "History of &lt;b&gt;" in made


@pytest.mark.slow
def test_a_page_of_one_run_has_its_table_alone(tmp_path):
    stored(tmp_path, "only", day=1)
    made = past_page.render(history(tmp_path)[0], title="t")
    assert "data-chart=" not in made
    assert ">only<" in made
