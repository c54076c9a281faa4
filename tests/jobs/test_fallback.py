"""What must go around a speculative route: found, written down, routed."""

import msgspec
import pytest
from report_cases import a_judgement, evidence

from routeproof.canary.splitting.features import FEATURES, features_of
from routeproof.engines.capabilities import (
    FALLBACK_FEATURES,
    Capability,
    needs_fallback,
)
from routeproof.engines.capabilities import FEATURES as ASKED
from routeproof.reports.release_sheet import CANARY_RULES, render


def capabilities(**changes):
    found = {name: Capability(state="accepted") for name in ASKED}
    return found | {
        name: Capability(state=state, note="said so") for name, state in changes.items()
    }


def test_what_the_candidate_refuses_or_looks_away_from_needs_a_way_around():
    found = needs_fallback(
        capabilities(), capabilities(min_p="refused", json_schema="empty")
    )
    assert set(found) == {"min_p", "json_schema"}


def test_what_the_baseline_refuses_too_needs_none():
    assert (
        needs_fallback(capabilities(min_p="refused"), capabilities(min_p="refused"))
        == ()
    )


@pytest.mark.parametrize("name", FALLBACK_FEATURES)
def test_the_canary_can_route_every_feature_that_may_need_it(name):
    rule = CANARY_RULES.get(name, name)
    assert rule in FEATURES
    # The canary sees in a request what the checks ask for.
    assert rule in features_of(ASKED[name])


def test_the_release_sheet_writes_the_rule_for_the_canary():
    found = msgspec.structs.replace(
        evidence(), fallback=("json_object", "json_schema", "min_p")
    )
    text = render(msgspec.structs.replace(a_judgement(), evidence=found))
    assert "`traffic: {fallback: [structured_output, min_p]}`" in text
    nothing = msgspec.structs.replace(evidence(), fallback=())
    text = render(msgspec.structs.replace(a_judgement(), evidence=nothing))
    assert "route around the candidate: none" in text
    unasked = msgspec.structs.replace(evidence(), fallback=None)
    text = render(msgspec.structs.replace(a_judgement(), evidence=unasked))
    assert "not asked in this run" in text
