"""Signals compared in rates and in pairs, with one alpha budget for all."""

from math import exp

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasting_cases import a_copy

from routeproof.canary.deciding.state import SignalOutcome
from routeproof.canary.samples.spool import Sample
from routeproof.canary.splitting.split import canary_share_of_samples
from routeproof.canary.weighing.evidence import Evidence, SignalPolicy, decides
from routeproof.engines.adapters import adapter

PAIRED = SignalPolicy(is_paired=True, tolerance=0.05)


def found(evidence, name, **given):
    return {s.name: s for s in evidence.standings(**given)}[name]


def test_pairs_in_which_the_canary_is_worse_end_in_fail():
    evidence = Evidence({"shadow.error": PAIRED})
    for n in range(200):
        evidence.observe_pair("shadow.error", -1.0 if n % 5 == 0 else 0.0)
    seen = found(evidence, "shadow.error")
    assert seen.outcome is SignalOutcome.FAIL
    assert "worse in 40, the control in 0" in seen.reason
    assert (seen.control_share, seen.canary_share) == (0.0, 0.2)


def test_pairs_without_a_difference_pass_and_gains_do_not_hide_losses():
    evidence = Evidence({"shadow.error": PAIRED})
    for _ in range(200):
        evidence.observe_pair("shadow.error", 0.0)
    assert found(evidence, "shadow.error").outcome is SignalOutcome.PASS
    for n in range(400):
        evidence.observe_pair("shadow.error", (-1.0, 1.0, -1.0)[n % 3])
    assert found(evidence, "shadow.error").outcome is SignalOutcome.FAIL


@pytest.mark.slow
def test_pairs_need_fewer_answers_than_rates_for_the_same_harm():
    """The prompt decides most of the outcome: a pair takes that out."""
    rng = np.random.default_rng(4)
    evidence = Evidence({"rate": SignalPolicy(), "pair": PAIRED})
    first = {}
    for n in range(1, 6_000):
        hard = rng.random(2) < 0.3
        worse = rng.random(2) < 0.04
        evidence.observe("rate", False, bool(hard[0]), "s")
        evidence.observe("rate", True, bool(hard[1] or worse[1]), "s")
        evidence.observe_pair("pair", -float(worse[0] and not hard[0]))
        for seen in evidence.standings() if n % 20 == 0 else ():
            if seen.outcome is SignalOutcome.FAIL:
                first.setdefault(seen.name, n)
        if len(first) == 2:
            break
    assert first["pair"] * 4 < first.get("rate", 6_000)


@settings(max_examples=15, deadline=None)
@given(
    weights=st.lists(st.floats(0.1, 5.0), min_size=1, max_size=8),
    advisory=st.booleans(),
)
def test_the_alphas_of_all_signals_that_decide_add_up_to_the_alpha(weights, advisory):
    policies = {f"s{i}": SignalPolicy(weight=w) for i, w in enumerate(weights)}
    if advisory:
        policies["crude"] = SignalPolicy(is_advisory=True)
    evidence = Evidence(policies, alpha=0.05)
    spent = [exp(-s.harm_at) for s in evidence.standings() if not s.is_advisory]
    assert sum(spent) == pytest.approx(0.05)


def test_what_cannot_be_believed_is_said_but_harm_already_shown_stays():
    evidence = Evidence({"a": SignalPolicy(), "b": SignalPolicy()})
    for _ in range(300):
        evidence.observe("a", False, False, "s")
        evidence.observe("a", True, True, "s")
    troubles = {name: (SignalOutcome.ERROR, "broke") for name in "ab"}
    assert found(evidence, "a", troubles=troubles).outcome is SignalOutcome.FAIL
    assert found(evidence, "b", troubles=troubles).reason == "broke"
    stale = found(evidence, "b", stale="scores lag")
    assert (stale.outcome, stale.reason) == (SignalOutcome.STALE, "scores lag")


def a_sample(arm):
    copy = a_copy(arm=arm)
    return Sample(
        request_id="r",
        arm=arm,
        at_s=0.0,
        stratum="s",
        record=copy.record(adapter("openai"), 0.0),
        signals={},
    )


@pytest.mark.parametrize(
    ("weight_ppm", "canaries", "is_stale"),
    [
        (50_000, 20, False),
        (50_000, 40, True),
        (750_000, 30, False),
        (750_000, 20, True),
    ],
)
def test_a_split_that_is_not_as_configured_makes_all_stale(
    weight_ppm, canaries, is_stale
):
    """Of 40 samples each time; from one half on no control of its size is left."""
    evidence = Evidence({"a": SignalPolicy()})
    evidence.enter_step(canary_share_of_samples(weight_ppm))
    sides = {arm: a_sample(arm) for arm in ("canary", "control")}
    for n in range(400):
        evidence.take(sides["canary" if n % 40 < canaries else "control"], f"u{n}")
    seen = found(evidence, "a")
    assert (seen.outcome is SignalOutcome.STALE) == is_stale
    assert not is_stale or "sampled alike" in seen.reason


def test_a_busy_caller_is_one_caller_and_makes_no_split_look_wrong():
    evidence = Evidence({"a": SignalPolicy()})
    canary, control = a_sample("canary"), a_sample("control")
    for _ in range(500):
        evidence.take(canary, "a machine that asks all day")
    for n in range(40):
        evidence.take(canary if n % 2 else control, f"u{n}")
    assert found(evidence, "a").outcome is not SignalOutcome.STALE


def of_callers(per_caller):
    """One busy caller of the canary always gets bad answers; all others get good."""
    evidence = Evidence({"a": SignalPolicy()}, per_caller=per_caller)
    bad = msgspec.structs.replace(a_sample("canary"), signals={"a": True})
    good = {
        arm: msgspec.structs.replace(a_sample(arm), signals={"a": False})
        for arm in ("canary", "control")
    }
    for n in range(400):
        evidence.take(good["control" if n % 2 else "canary"], f"caller-{n}")
        if n % 4 == 0:
            evidence.take(bad, "a busy caller with an impossible schema")
    return evidence


def test_one_busy_caller_is_no_fault_of_the_arm_where_callers_have_a_limit():
    assert found(of_callers(None), "a").outcome is SignalOutcome.FAIL
    evidence = of_callers(2)
    assert found(evidence, "a").outcome is SignalOutcome.INCONCLUSIVE
    assert evidence.spared == 98


def test_a_crude_signal_is_shown_and_decides_nothing():
    evidence = Evidence({"unrelated": SignalPolicy(is_advisory=True)})
    for _ in range(300):
        evidence.observe("unrelated", False, False, "s")
        evidence.observe("unrelated", True, True, "s")
    seen = found(evidence, "unrelated")
    assert seen.outcome is SignalOutcome.FAIL and not decides(seen)


def test_evidence_of_both_kinds_goes_on_after_a_restart():
    policies = {"rate": SignalPolicy(), "pair": PAIRED}
    evidence = Evidence(policies)
    for n in range(120):
        evidence.observe("rate", n % 2 == 0, n % 7 == 0, "s")
        evidence.observe_pair("pair", -float(n % 9 == 0))
    again = Evidence(policies)
    again.restore(evidence.state())
    for each in (evidence, again):
        each.observe_pair("pair", -1.0)
        each.observe("rate", True, True, "s")
    assert again.standings() == evidence.standings()


def test_a_new_step_asks_for_safety_anew_and_keeps_harm():
    evidence = Evidence({"pair": PAIRED})
    for _ in range(200):
        evidence.observe_pair("pair", 0.0)
    harm = found(evidence, "pair").harm_log_e
    evidence.enter_step()
    seen = found(evidence, "pair")
    assert seen.outcome is SignalOutcome.NO_DATA
    assert (seen.harm_log_e, seen.step_seen) == (harm, 0)
