"""A live engine under watch: numbers, outages, shifts and what is behind them."""

import asyncio
import json
import urllib.request

import pytest
from click.testing import CliRunner
from engine_pages import recorded
from jobs.monitor_cases import BAD, NAMES, Story
from page_server import Page, serving

from routeproof.cli.app import app
from routeproof.cli.monitor_view import lines
from routeproof.engines.adapters import adapter
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.windows import Window
from routeproof.jobs.monitor import Monitor, MonitorOptions, shown
from routeproof.jobs.monitoring.causes import route_changes
from routeproof.jobs.monitoring.server import exposing
from routeproof.jobs.monitoring.watch import Look, Watcher
from routeproof.metrics.live import LIVE, live_numbers
from routeproof.reports.monitor_page import (
    PREFIX,
    Shown,
    dashboard,
    metrics_page,
    series_of,
)


@pytest.mark.parametrize("dialect", NAMES)
def test_every_engine_gives_the_numbers_it_counts(dialect):
    story = Story(dialect)
    story.look()
    (tick,) = story.windows(1, requests=10)
    tally = story.venue.engine.tally
    assert tick.up and tick.window_s == 10.0
    numbers = tick.numbers
    assert set(numbers) == set(LIVE)
    if dialect == "sglang":
        # It has no counter of drafted tokens, so none of rejected ones either.
        assert numbers["rejection_rate"] is None
    else:
        assert numbers["rejection_rate"] == pytest.approx(
            1 - tally.accepted / tally.drafted
        )
    assert numbers["acceptance_length"] == pytest.approx(
        1 + tally.accepted / tally.spec_passes
    )
    if dialect == "llamacpp":
        assert numbers["verify_passes_per_request"] is None
        assert any("does not count requests" in r for r in tick.reasons)
    else:
        assert numbers["verify_passes_per_request"] == tally.spec_passes / 10
        assert numbers["requests_per_s"] == 1.0
        assert numbers["request_latency_mean_s"] > 0
        # The simulator keeps sums and no buckets: no percentile is made up.
        assert numbers["request_latency_p95_s"] is None


@pytest.mark.parametrize("dialect", NAMES)
def test_what_a_page_cannot_tell_is_unknown_with_the_nearest_name(dialect):
    story = Story(dialect)
    story.look()
    (tick,) = story.windows(1)
    assert tick.numbers["structured_failure_share"] is None
    assert tick.unavailable["structured_failure_share"]
    assert all(tick.numbers[name] is None for name in tick.unavailable)
    assert set(tick.unavailable) <= set(LIVE)


def structured(numbers):
    grown = Window(start_s=0.0, end_s=10.0, deltas=numbers)
    return live_numbers(grown, {}, {}).numbers["structured_failure_share"]


def test_structured_failures_are_shared_among_structured_requests():
    failed = {"requests_total": 100.0, "grammar_aborted_total": 2.0}
    assert structured(failed) == 0.02, "no other number of requests is known"
    assert structured({**failed, "structured_requests_total": 10.0}) == 0.2
    assert structured({**failed, "structured_requests_total": 1.0}) == 1.0
    assert structured({"requests_total": 100.0}) is None


def test_a_first_look_has_no_numbers():
    tick = Story().look()
    assert tick.up and tick.window_s is None and tick.numbers == {}
    assert "two" in tick.why


def test_an_idle_engine_has_unknown_rates_and_not_perfect_ones():
    story = Story()
    story.look()
    tick = story.look()
    assert tick.numbers["rejection_rate"] is None
    assert tick.numbers["request_latency_mean_s"] is None
    assert tick.numbers["requests_per_s"] == 0


def test_an_outage_is_unknown_and_watching_goes_on():
    story = Story()
    story.look()
    story.windows(2)
    gone = story.look(page=None)
    assert (gone.up, gone.numbers, gone.why) == (False, {}, "refused")
    assert [e.kind for e in gone.events] == ["outage"]
    assert story.look(page=None).events == ()
    story.traffic()
    back = story.look()
    assert [e.kind for e in back.events] == ["back"]
    # The same process: what it served meanwhile is in the longer window.
    assert back.window_s == 30.0
    assert back.numbers["requests_per_s"] == 6 / 30


def test_a_restart_empties_its_window_and_is_told():
    story = Story()
    story.look()
    story.windows(2)
    story.start(BAD)
    story.traffic(requests=2)
    tick = story.look()
    assert [e.kind for e in tick.events] == ["restart"]
    assert tick.numbers["rejection_rate"] is None
    assert tick.numbers["request_latency_mean_s"] is None
    assert story.watcher.totals.restarts == 1
    assert story.windows(1)[0].numbers["rejection_rate"] > 0.5


def test_a_restart_of_an_idle_engine_is_seen_by_its_start():
    story = Story("llamacpp")
    story.look(started_s=100.0)
    assert story.look(started_s=100.0).events == ()
    assert [e.kind for e in story.look(started_s=200.0).events] == ["restart"]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", NAMES)
def test_a_spike_after_a_new_draft_names_the_draft(dialect):
    story = Story(dialect)
    fields = {
        "engine.name": NAMES[dialect],
        "speculation.draft.revision": "d1",
        "speculation.draft_tokens": "4",
        "observed.kv_capacity_tokens": "1000",
    }
    story.look(fields=fields)
    story.windows(16)
    story.start(BAD)
    changed = {
        **fields,
        "speculation.draft.revision": "d2",
        "observed.kv_capacity_tokens": "900",
    }
    story.look(fields=changed)
    story.windows(6)
    found = {alarm.number: alarm for alarm in story.alarms()}
    known = {"tokens_per_pass", "acceptance_length"}
    if dialect != "sglang":
        known.add("rejection_rate")
    assert known <= set(found)
    for name in known:
        alarm = found[name]
        assert alarm.causes[0] == "draft version: speculation.draft.revision d1 -> d2"
        assert "the engine restarted" in alarm.causes
        assert not any("traffic" in cause for cause in alarm.causes)
        assert alarm.since.startswith("2026-12-01T10:02:50")
    assert found["acceptance_length"].after < found["acceptance_length"].before
    assert story.watcher.totals.shifts["tokens_per_pass"] == 1


@pytest.mark.slow
def test_a_spike_with_other_traffic_names_the_traffic():
    story = Story()
    story.look()
    story.windows(16, max_tokens=64)
    story.windows(8, prompt="Tell me all of {} " + "and more " * 300, max_tokens=16)
    found = {alarm.number: alarm for alarm in story.alarms()}
    assert "verify_passes_per_request" in found
    causes = found["verify_passes_per_request"].causes
    assert any("prompt tokens per request" in cause for cause in causes)
    assert any("output tokens per request" in cause for cause in causes)


@pytest.mark.slow
def test_a_spike_out_of_nothing_says_so():
    story = Story("llamacpp")
    story.look()
    story.windows(16)
    # The same engine, the same traffic, and drafts that are taken less often.
    before = story.venue.page("/metrics")
    values = {
        name: float(value)
        for name, value in (
            line.split() for line in before.splitlines() if not line.startswith("#")
        )
    }
    steps = {
        "drafts_total": 100,
        "draft_tokens_total": 400,
        "spec_decode_num_accepted_tokens_total": 60,
        "tokens_predicted_total": 288,
        "prompt_tokens_total": 90,
    }
    for _ in range(6):
        for name in values:
            step = next((v for end, v in steps.items() if name.endswith(end)), 0)
            values[name] += step
        page = "".join(f"{name} {value}\n" for name, value in values.items())
        tick = story.look(page=page, cannot_tell=("speculation.draft.model", "weights"))
    (alarm,) = [a for a in story.alarms() if a.number == "rejection_rate"]
    assert alarm.causes == ()
    assert alarm.cannot_tell == ("speculation.draft.model",)
    text = "\n".join(line for t in story.ticks for line in lines(t))
    assert "SHIFT  rejection rate" in text
    assert "nothing else that is watched changed" in text
    assert "does not tell: speculation.draft.model" in text
    assert tick.up


def test_a_steady_engine_raises_no_alarm():
    story = Story()
    story.look()
    story.windows(30)
    assert story.alarms() == []


def test_an_unknown_name_about_speculation_is_told_once():
    story = Story()
    page = story.venue.page("/metrics") + 'vllm:spec_decode_new_thing{engine="0"} 3\n'
    tick = story.look(page=page)
    assert tick.unknown_names == ("vllm:spec_decode_new_thing",)
    assert "vllm:spec_decode_new_thing" in tick.events[0].words
    assert story.look(page=page).events == ()


def test_a_page_without_metrics_is_up_and_unknown():
    tick = Story("llamacpp").look(page="")
    assert Story("llamacpp").look(page="<html></html>").up
    assert tick.up is True


def test_a_route_that_says_less_has_not_changed():
    assert route_changes({"a": "1", "b": "2"}, {"a": "1"}) == ()
    assert route_changes({"observed.x": "1"}, {"observed.x": "2"}) == ()
    words = route_changes(
        {"kv_cache": "bf16", "engine.version": "1"},
        {"kv_cache": "fp8", "engine.version": "2"},
    )
    assert words == (
        "engine version: engine.version 1 -> 2",
        "route flags: kv_cache bf16 -> fp8",
    )


def test_recorded_pages_of_vllm_have_percentiles():
    pages = [
        recorded("engine_captures_vllm", f"vllm-ngram.metrics_{end}.prom").read_text()
        for end in ("before", "after")
    ]
    watcher = Watcher(adapter("vllm"))
    for at_s, page in enumerate(pages):
        tick = watcher.step(Look(60.0 * at_s, "2026-12-01T10:00:00+00:00", page))
    numbers = tick.numbers
    assert 0 < numbers["request_latency_p50_s"] < numbers["request_latency_p95_s"]
    assert numbers["request_latency_p99_s"] is None
    assert 0 < numbers["rejection_rate"] < 1
    assert tick.trust == "exact"


def watched(pages_by_look, **options):
    """Ticks of a monitor whose server shows other pages at every look."""
    ticks = []

    async def go():
        pages = {"/v1/models": MODELS, **pages_by_look[0]}
        async with serving(pages) as served:
            looks = iter(pages_by_look[1:])

            async def pause(_):
                new = next(looks)
                pages.clear()
                pages.update(new)

            monitor = Monitor(
                Endpoint(f"{served.url}/v1"),
                MonitorOptions(looks=len(pages_by_look), **options),
                pause=pause,
            )
            async for tick in monitor.ticks():
                ticks.append(tick)
            return monitor

    return asyncio.run(go()), ticks


MODELS = Page(json.dumps({"data": [{"id": "m", "owned_by": "vllm"}]}))


def a_page(drafted, accepted, start=100.0):
    return Page(
        f"process_start_time_seconds {start}\n"
        f"vllm:spec_decode_num_drafts_total {drafted / 4}\n"
        f"vllm:spec_decode_num_draft_tokens_total {drafted}\n"
        f"vllm:spec_decode_num_accepted_tokens_total {accepted}\n"
        f"vllm:generation_tokens_total {accepted + drafted / 4}\n"
    )


def test_the_monitor_survives_outages_and_asks_again_what_the_engine_is():
    up = {"/v1/models": MODELS, "/metrics": a_page(100, 40)}
    version = {"/version": Page('{"version": "0.32.0"}')}
    newer = {"/version": Page('{"version": "0.33.0"}')}
    loading = {"/metrics": Page("loading", status=503)}
    monitor, ticks = watched(
        [
            {**up, **version},
            {**up, **version, "/metrics": a_page(200, 80)},
            {"*": Page(raw=b"")},
            loading,
            {**up, **newer, "/metrics": a_page(40, 4, start=900.0)},
            {**up, **newer, "/metrics": a_page(140, 14, start=900.0)},
        ]
    )
    assert [t.up for t in ticks] == [True, True, False, False, True, True]
    assert ticks[1].numbers["rejection_rate"] == pytest.approx(0.6)
    assert "503" in ticks[3].why
    kinds = [e.kind for t in ticks for e in t.events]
    assert kinds == ["outage", "back", "route", "restart"]
    assert ticks[4].numbers["rejection_rate"] is None
    assert ticks[5].numbers["rejection_rate"] == pytest.approx(0.9)
    assert monitor.watcher.route["engine.version"] == "0.33.0"
    page = metrics_page(shown(monitor, "m"))
    assert f'{PREFIX}_outages_total{{target="m"}} 1' in page
    assert 'version="0.33.0"' in page


def test_an_engine_that_is_down_at_first_is_waited_for():
    _, ticks = watched(
        [
            {"*": Page(raw=b"")},
            {"/v1/models": MODELS, "/metrics": a_page(100, 40)},
            {"/v1/models": MODELS, "/metrics": a_page(200, 90)},
        ]
    )
    assert [t.up for t in ticks] == [False, True, True]
    assert ticks[2].numbers["rejection_rate"] == pytest.approx(0.5)


def test_an_engine_without_a_metrics_page_says_what_to_do():
    _, ticks = watched([{"/v1/models": MODELS}] * 2)
    assert all(t.up for t in ticks)
    assert "docs/engines.md" in ticks[1].why


def test_what_is_unknown_has_no_line_on_the_page():
    page = metrics_page(
        Shown(name='a"b', up=True, numbers={"rejection_rate": None, "running": 0.0})
    )
    assert "rejection_rate" not in page
    assert f'{PREFIX}_running{{target="a\\"b"}} 0' in page


def test_the_dashboard_asks_only_for_series_that_the_page_has():
    numbers = {name: 1.0 for name in LIVE}
    page = metrics_page(
        Shown(name="m", up=True, numbers=numbers, shifts={"rejection_rate": 1})
    )
    made = dashboard()
    asked = [t["expr"] for panel in made["panels"] for t in panel["targets"]]
    asked += [each["expr"] for each in made["annotations"]["list"]]
    for expression in asked:
        name = expression.removeprefix("increase(").split("{")[0]
        assert f"\n{name}{{" in f"\n{page}", expression
    boxes = [panel["gridPos"] for panel in made["panels"]]
    cells = [
        (x, y)
        for box in boxes
        for x in range(box["x"], box["x"] + box["w"])
        for y in range(box["y"], box["y"] + box["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in made["panels"]}) == len(boxes)
    watched_names = {n for n, entry in LIVE.items() if entry.is_watched}
    drawn = {e.split("{")[0] for e in asked}
    missing = {n for n in watched_names if series_of(n)[0] not in drawn}
    assert missing <= {"coverage"}


def test_the_page_is_exposed_while_the_monitor_runs():
    with exposing(lambda: Shown(name="m", up=True), "127.0.0.1", 0) as url:
        with urllib.request.urlopen(url) as reply:
            assert b'_up{target="m"} 1' in reply.read()
        place = url.replace("/metrics", "/dashboard.json")
        with urllib.request.urlopen(place) as reply:
            assert json.load(reply)["panels"]


def invoke(*arguments):
    return CliRunner().invoke(app, ["monitor", *arguments])


def test_one_window_as_json_lines_and_a_log(tmp_path):
    text = recorded("engine_captures_llamacpp", "spec-draft-q2_k.metrics_after.prom")
    models = Page(json.dumps({"data": [{"id": "m", "owned_by": "llamacpp"}]}))
    log = tmp_path / "watch.txt"

    async def go():
        pages = {"/v1/models": models, "/metrics": Page(text.read_text())}
        async with serving(pages) as served:
            return await asyncio.to_thread(
                invoke,
                *(f"{served.url}/v1", "--once", "--interval", "0.01", "--json"),
                *("--log", str(log), "--listen", "0"),
            )

    result = asyncio.run(go())
    assert result.exit_code == 0, result.output
    ticks = [json.loads(row) for row in result.stdout.splitlines()]
    assert [t["schema"] for t in ticks] == ["routeproof.monitor/1"] * 2
    assert ticks[1]["numbers"]["rejection_rate"] is None
    assert "exposed at http://127.0.0.1" in result.stderr
    assert log.read_text().count("\n") == 2


def test_an_engine_that_never_answers_is_exit_code_3():
    async def go():
        async with serving({}) as served:
            return served.url

    url = asyncio.run(go())
    result = invoke(f"{url}/v1", "--once", "--interval", "0.01")
    assert result.exit_code == 3
    assert "no answer" in result.output


def test_the_dashboard_is_printed():
    result = invoke("--dashboard")
    assert json.loads(result.output)["uid"] == "routeproof-monitor"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "URL"),
        (("http://127.0.0.1:1/v1", "--interval", "0"), "longer than 0"),
        (("http://127.0.0.1:1/v1", "--once", "--listen", "nine"), "no address"),
    ],
)
def test_wrong_use_says_what_is_wrong(arguments, says):
    result = invoke(*arguments)
    assert result.exit_code != 0
    assert says in f"{result.output}{result.exception}"
