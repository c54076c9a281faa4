"""Per-request counts and counters of the real engine say the same, to the token."""

import asyncio
from pathlib import Path

import pytest
from acceptance_cases import everyone, requests
from engines.early_exit import early_exit

from routeproof.engines.adapters import adapter
from routeproof.engines.embedded import fetch_embedded
from routeproof.engines.endpoint import Endpoint
from routeproof.engines.http import fetch
from routeproof.engines.launch import launch
from routeproof.engines.probe import metrics_page, probe
from routeproof.engines.windows import window
from routeproof.jobs.monitor import Monitor, MonitorOptions
from routeproof.metrics.acceptance import AcceptanceCounts, derive
from routeproof.metrics.acceptance_checks import identities, same_sums
from routeproof.metrics.acceptance_profile import profile
from routeproof.metrics.acceptance_sums import sum_counts
from routeproof.metrics.acceptance_windows import OwnTraffic, counts_of_window
from routeproof.proof.route import LaunchSpec, RouteSpec
from routeproof.routes.inventory import take_inventory

pytestmark = [pytest.mark.engine, pytest.mark.slow]

NGRAM = ("--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3")
DRAFT = ("--spec-type", "draft-simple", "-md", "{draft}", "--spec-draft-n-max", "4")
SELF = ("--spec-type", "draft-simple", "-md", "{model}", "--spec-draft-n-max", "4")


@pytest.mark.parametrize(
    ("flags", "draft_tokens", "method", "rates"),
    [
        ((*NGRAM, "--spec-ngram-simple-size-m", "8"), 8, "ngram-simple", (0.0, 1.0)),
        (DRAFT, 4, "draft_model", (0.0, 0.8)),
        (SELF, 4, "draft_model", (0.8, 1.0)),
    ],
    ids=["ngram", "draft", "self-draft"],
)
def test_sums_over_requests_equal_the_counters(
    tmp_path, flags, draft_tokens, method, rates
):
    """The draft is the target's first 20 of 30 layers; the self-draft all of it."""
    files = fetch_embedded()
    draft = tmp_path / "draft.gguf"
    if "{draft}" in flags:
        early_exit(files.model, draft, 20)
    spec = LaunchSpec(
        command=(
            *(str(files.server), "-m", "{model}", "-a", "m", "--port", "{port}"),
            *("-np", "2", "-c", "4096", "-t", "2", "--device", "none"),
            *("--metrics", "--props", "--slots", *flags),
        )
    )
    details, tokens, deltas, found = asyncio.run(
        served(
            spec,
            {"model": str(files.model), "draft": str(draft)},
            tmp_path / "engine.log",
        )
    )
    inventory = take_inventory(RouteSpec(launch=spec), found)
    assert inventory.value("speculation.method") == method
    assert inventory.value("speculation.draft_tokens") == str(draft_tokens)
    like = AcceptanceCounts(method=method, draft_tokens=draft_tokens, topology="chain")
    records = requests(details, tokens)
    summed = sum_counts(records, everyone(records), like)
    own = OwnTraffic(requests=len(tokens), completion_tokens=sum(tokens))
    counted = counts_of_window(deltas, own, like)
    checks = same_sums(summed, counted)
    assert {i.name.split(".")[1] for i in checks} >= {"drafted", "accepted"}
    assert [i for i in (*checks, *identities(counted)) if not i.holds] == []
    assert derive(counted).tokens_per_pass >= 1.0
    assert rates[0] <= derive(counted).acceptance_rate <= rates[1]
    made = profile(records, everyone(records), like=like)
    assert made.derived.acceptance_rate == derive(counted).acceptance_rate
    # The counters know the positions, the requests do not.
    assert len(derive(counted).marginal) <= draft_tokens


async def served(spec: LaunchSpec, fill: dict[str, str], log: Path):
    async with launch(spec, name="candidate", log_path=log, fill=fill) as up:
        endpoint = Endpoint(up.endpoint_url)
        chosen = adapter((await probe(endpoint, model="m")).engine)
        before = chosen.counters(await metrics_page(endpoint, chosen) or "", 0.0)
        bodies = []
        for start in range(2):
            asked = f"Write the numbers from {start} to {start + 9}, then again."
            reply = await fetch(
                endpoint,
                endpoint.api("chat/completions"),
                body={
                    "model": "m",
                    "messages": [{"role": "user", "content": asked}],
                    "max_tokens": 32,
                    "temperature": 0,
                },
                deadline_s=120.0,
            )
            bodies.append(reply.json())
        after = chosen.counters(await metrics_page(endpoint, chosen) or "", 1.0)
        said = await probe(endpoint)
    details = [chosen.details(body) for body in bodies]
    tokens = [body["usage"]["completion_tokens"] for body in bodies]
    return details, tokens, window([before, after]).deltas, said


def test_the_monitor_watches_a_real_engine_through_its_end(tmp_path):
    files = fetch_embedded()
    spec = LaunchSpec(
        command=(
            *(str(files.server), "-m", "{model}", "-a", "m", "--port", "{port}"),
            *("-np", "2", "-c", "4096", "-t", "2", "--device", "none"),
            *("--metrics", "--props", "--slots", *SELF),
        )
    )
    ticks = asyncio.run(watched(spec, str(files.model), tmp_path / "engine.log"))
    first, window_, gone = ticks
    assert (first.engine, first.up, first.numbers) == ("llama.cpp", True, {})
    numbers = window_.numbers
    assert numbers["rejection_rate"] == pytest.approx(0.1, abs=0.1)
    assert 2.0 < numbers["acceptance_length"] <= 5.0
    assert numbers["output_tokens_per_s"] > 0
    # It does not count requests, and has no histograms.
    assert numbers["verify_passes_per_request"] is None
    assert numbers["request_latency_p95_s"] is None
    assert (gone.up, gone.numbers) == (False, {})
    assert [event.kind for event in gone.events] == ["outage"]


async def watched(spec: LaunchSpec, model: str, log: Path):
    found = []
    async with launch(
        spec, name="candidate", log_path=log, fill={"model": model}
    ) as up:
        endpoint = Endpoint(up.endpoint_url)

        async def traffic(_: float) -> None:
            if not up.ended.done():
                body = {"model": "m", "max_tokens": 32, "temperature": 0}
                message = {"role": "user", "content": "Count from 1 to 20."}
                await fetch(
                    endpoint,
                    endpoint.api("chat/completions"),
                    body={**body, "messages": [message]},
                    deadline_s=120.0,
                )

        monitor = Monitor(endpoint, MonitorOptions(looks=3), pause=traffic)
        ticks = monitor.ticks()
        found.append(await anext(ticks))
        found.append(await anext(ticks))
        monitor.pause = gone
    found.append(await anext(ticks))
    return found


async def gone(_: float) -> None:
    """Nothing flows any more."""
