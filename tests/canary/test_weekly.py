import re

import msgspec
import pytest
from click.testing import CliRunner

from routeproof.canary.deciding.state import State
from routeproof.canary.deciding.store import AuditEntry, SqliteStore
from routeproof.canary.samples.spool import Sample, Spool
from routeproof.canary.weekly.chart import picture
from routeproof.canary.weekly.indicators import SHOWN_FAILURES, weekly
from routeproof.canary.weekly.page import html, markdown
from routeproof.cli.canary import command
from routeproof.errors import ConfigError
from routeproof.jobs import canary
from routeproof.records.record import Answer, Clock, EngineDetails, Key, Record

DAY = 86_400.0
START = 20_000 * DAY


def a_sample(n, *, arm="canary", day=0, form=True, bad=None, complaint=None, **more):
    key = Key(
        request_id=f"r{n}", arm="candidate", phase="soak", level="live", block=0,
        case_id="c", trial=0,
    )  # fmt: skip
    drafted = more.get("drafted")
    engine = EngineDetails(
        drafted=drafted, accepted=more.get("accepted"), spec_passes=more.get("passes")
    )
    request = {"response_format": {"type": "json_object"}} if form else {}
    if complaint:
        request["feedback_reason"] = complaint
    return Sample(
        request_id=f"r{n}",
        arm=arm,
        at_s=START + day * DAY + n,
        stratum="whole",
        request=request,
        record=Record(
            key=key,
            clock=Clock(
                intended_s=0.0, sent_s=0.0, end_s=more.get("end_s", 1.0), wall_s=0.0
            ),
            answer=Answer(outcome="completed", text=f"<b>|{n}|"),
            engine=engine,
        ),
        signals={"invalid_structure": bad, "complaint": bool(complaint)},
    )


def an_entry(action, day, **numbers):
    return AuditEntry(
        name="c", actor="ops", action=action, reason="why|not", at_s=START + day * DAY,
        revision=1, numbers=numbers,
    )  # fmt: skip


def a_report(samples, audit=()):
    return weekly("c", samples, audit, since_s=START, until_s=START + 2 * DAY)


def test_each_indicator_is_counted_by_hand():
    samples = [
        a_sample(n, bad=n < 3, drafted=10, accepted=6, passes=3, end_s=1.0 + n)
        for n in range(20)
    ]
    samples.append(a_sample(30, complaint="Off topic!"))
    samples.append(a_sample(31, complaint="slow"))
    (cell,) = a_report(samples).cells
    assert (cell.class_, cell.arm, cell.sampled) == ("structured", "canary", 22)
    assert cell.rejection_rate == pytest.approx(0.4)
    assert (cell.length_p10, cell.length_p50, cell.length_p90) == (3.0, 3.0, 3.0)
    assert cell.structured_failure_rate == 3 / 20
    assert (cell.complaints, cell.off_topic) == (2, 1)
    assert cell.e2e_p50_s == 10.0
    assert cell.e2e_p99_s is None, "22 answers say nothing of the 99th"


def test_what_the_engine_does_not_tell_is_unknown_and_not_zero():
    (cell,) = a_report([a_sample(1)]).cells
    assert cell.rejection_rate is None and cell.length_p50 is None
    assert cell.structured_failure_rate is None
    assert "–" in markdown(a_report([a_sample(1)]))


def test_days_classes_and_arms_are_kept_apart():
    samples = [a_sample(1), a_sample(2, day=1), a_sample(3, form=False)]
    samples.append(a_sample(4, arm="control"))
    samples.append(a_sample(5, arm="baseline"))
    report = a_report(samples)
    assert len(report.cells) == 4
    assert len(report.days) == 2


def test_changes_are_marked_and_notes_are_not():
    audit = [an_entry("create", 0, candidate_digest="abc"), an_entry("note", 0)]
    audit.append(an_entry("rolled_back", 1))
    report = a_report([a_sample(1)], [*audit, an_entry("start", 5)])
    assert [c.what for c in report.changes] == ["create abc", "rolled back"]
    assert html(report).count("<title>1: create abc</title>") == 1
    assert "why\\|not" in markdown(report)


def test_a_new_draft_and_every_edit_of_a_route_are_named_at_their_mark():
    numbers = {"draft": "eagle3 d@2", "candidate.kv_cache": "bf16 -> fp8"}
    entry = an_entry("new_attempt", 1, candidate_digest="abc", **numbers)
    (change,) = a_report([a_sample(1)], [entry]).changes
    assert change.what == (
        "new attempt abc draft: eagle3 d@2; candidate.kv_cache: bf16 -> fp8"
    )


def test_an_engine_that_names_itself_differently_is_a_change():
    def of_build(n, name, arm="canary"):
        sample = a_sample(n, arm=arm)
        engine = msgspec.structs.replace(sample.record.engine, fingerprint=name)
        record = msgspec.structs.replace(sample.record, engine=engine)
        return msgspec.structs.replace(sample, record=record)

    samples = [of_build(n, "b1" if n < 5 else "b2") for n in range(10)]
    samples += [of_build(20 + n, "b1", "control") for n in range(5)]
    (change,) = a_report(samples[::-1]).changes
    assert change.what == "canary engine names itself b2"
    assert change.at_s == samples[5].at_s


def test_a_day_without_a_value_breaks_the_line_and_is_no_zero():
    samples = [
        a_sample(100 * day + n, day=day, drafted=10, accepted=6)
        for day in (0, 1, 3)
        for n in range(3)
    ]
    report = weekly("c", samples, (), since_s=START, until_s=START + 4 * DAY)
    chart = picture(report, "structured")
    lines = re.findall(r'<polyline points="([^"]*)"', chart)
    assert len(lines[0].split()) == 2 and chart.count("<rect") >= 3


def test_the_sample_of_failures_is_fixed_whatever_the_order():
    samples = [a_sample(n, bad=True) for n in range(60)]
    one, other = a_report(samples), a_report(samples[::-1])
    assert len(one.failures) == SHOWN_FAILURES and one.failures_total == 60
    assert [s.request_id for s in one.failures] == [
        s.request_id for s in other.failures
    ]
    assert [s.request_id for s in one.failures] != [f"r{n}" for n in range(20)]


def test_the_page_loads_nothing_and_keeps_answers_as_text():
    page = html(a_report([a_sample(n, bad=True) for n in range(3)]))
    assert "<b>|" not in page and "&lt;b&gt;|" in page
    assert not re.search(r"<script|src=|href=|url\(|https?://", page)


def test_a_week_without_samples_says_so():
    assert "No answer was sampled" in markdown(a_report([]))
    assert "No answer was sampled" in html(a_report([]))


FILE = """\
canary:
  candidate: fast
  baseline: trusted
  routes: {fast: "http://127.0.0.1:1", trusted: "http://127.0.0.1:2"}
"""


def test_the_command_reads_store_and_spool(tmp_path):
    file = tmp_path / "canary.yaml"
    file.write_text(FILE)
    with pytest.raises(ConfigError, match="no canary ever ran"):
        canary.weekly(file, since=None, now_s=START)
    folder = tmp_path / "canary-fast"
    folder.mkdir()
    entry = msgspec.structs.replace(an_entry("start", 0), name="fast")
    state = State(name="fast", candidate_digest="d", revision=1)
    SqliteStore(folder / "state.db").write(state, expected=0, entry=entry)
    spool = Spool(folder / "samples.db")
    spool.add(a_sample(1, bad=True))
    spool.close()
    text, page = canary.weekly(file, since="2024-10-04", now_s=START + DAY)
    assert "start" in text and "structured" in text and "<svg" in page
    with pytest.raises(ConfigError, match="is no day"):
        canary.weekly(file, since="soon", now_s=START)
    out = tmp_path / "out"
    done = CliRunner().invoke(command, ["weekly", str(file), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert {p.name for p in out.iterdir()} == {"weekly.md", "weekly.html"}
