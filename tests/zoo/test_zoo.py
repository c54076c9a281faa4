"""A few rows of the zoo, of every kind; ``make zoo`` plays all of them."""

import pytest
from zoo import zoo_play, zoo_rows, zoo_unseen

from routeproof.simulator.faults import FAULTS

FAULT_ROWS = (
    "quantization_noise_strong",
    "schema_broken",
    "http_500",
    "stop_ignored",
    "repetition_loop",
    "kv_cache_quantized_unasked",
)
HARMLESS_ROWS = ("exact_chain", "near_ties_some", "crlf_stream")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", FAULT_ROWS)
def test_a_fault_is_seen_for_the_right_reason(name, tmp_path):
    found = zoo_play.play(zoo_rows.fault_row(name), tmp_path / "run")
    assert found.detected, found.reasons
    assert found.decision in ("avoid", "wait", "no_verdict")


@pytest.mark.parametrize("name", HARMLESS_ROWS)
def test_a_harmless_change_is_not_blamed(name, tmp_path):
    row = next(row for row in zoo_rows.HARMLESS if row.name == name)
    found = zoo_play.play(row, tmp_path / "run")
    assert not found.failed, found.reasons


def test_the_zoo_is_large_enough_and_every_row_has_a_reference():
    rows = zoo_rows.fault_rows()
    assert len(rows) >= 60
    assert len(zoo_rows.HARMLESS) >= 20
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.reference and row.gate and row.checks for row in rows)
    names = {row.name for row in rows}
    assert set(zoo_unseen.NEEDS) <= names
    assert {name for name in FAULTS if not name.startswith("~")} <= names
