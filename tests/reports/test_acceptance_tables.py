"""Acceptance for people: what is known, with intervals, and what is not told."""

from report_cases import a_judgement

from routeproof.gates.evidence import Acceptance
from routeproof.reports import figures
from routeproof.reports.acceptance_tables import acceptance_tables, sliced
from routeproof.reports.page_tables import page_tables


def test_measures_have_their_interval_and_what_is_not_told_is_named_once():
    acceptance = Acceptance(
        source="per_request",
        overall={
            "waste": None,
            "acceptance_rate": 0.5,
            "acceptance_rate_low": 0.25,
            "acceptance_rate_high": 0.75,
            "tokens_per_pass": 1.5,
        },
    )
    (whole,) = acceptance_tables(acceptance)
    assert whole.table.rows == (
        ("tokens per pass", "1.50"),
        ("acceptance rate", "50 % [25 %, 75 %]"),
        ("not told by this engine", "waste"),
    )


def test_a_sliced_table_begins_with_the_slice_and_drops_unknown_columns():
    rows = [
        {"coverage": None, "requests": 7, "tokens_per_pass": 2.0, "uptime": "0 to 9 s"},
        {"coverage": None, "requests": 5, "tokens_per_pass": None, "uptime": "9 s on"},
    ]
    table = sliced(rows, "uptime")
    assert table.head == ("uptime", "requests", "tokens per pass")
    assert table.rows[1] == ("9 s on", "5", figures.UNKNOWN)


def test_the_routes_begin_with_the_revisions_of_both_sides():
    first = page_tables(a_judgement())["routes"][0]
    assert first.title == "Revisions"
    target = next(row for row in first.table.rows if row[0] == "target")
    assert "5b2c91d0" in target[1]


def test_a_digest_is_cut_and_a_short_revision_is_not():
    digest = "sha256:" + "0123456789abcdef" * 4
    assert figures.short_digest(digest) == "sha256:0123456789ab…"
    assert figures.short_digest("5b2c91d0") == "5b2c91d0"


def test_a_name_that_leads_a_sentence_is_put_into_words():
    told = figures.told("slo[request_latency p95]: it is 2: s")
    assert told == "slo, request latency p95: it is 2: s"
    assert figures.told("no name here") == "no name here"
