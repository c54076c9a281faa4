"""A draft-length search goes with the run it was made for."""

import json

import pytest
from stored_runs import a_run

from routeproof.errors import StoredRunError
from routeproof.jobs.judge import judge
from routeproof.reports import release_sheet

SEARCH = {"rows": [{"draft_tokens": 3, "gain": 1.4, "chosen": True}], "chosen": []}


@pytest.mark.slow
def test_the_release_sheet_shows_the_search_that_lies_in_the_run(tmp_path):
    run = a_run(tmp_path / "run", cases=12)
    before = (run / "judgement.json").read_bytes()
    (run / "tune.json").write_text(json.dumps(SEARCH))
    judgement = judge(run)
    sheet = release_sheet.render(judgement)
    assert "Chosen: 3 drafted tokens." in sheet
    assert judgement.provenance.digests["search"]
    (run / "tune.json").unlink()
    judge(run)
    assert (run / "judgement.json").read_bytes() == before


@pytest.mark.slow
def test_a_file_that_is_no_search_is_named(tmp_path):
    run = a_run(tmp_path / "run", cases=12)
    (run / "tune.json").write_text("{}")
    with pytest.raises(StoredRunError, match=r"tune\.json is no record"):
        judge(run)
