"""Inventory, parity and rollback."""

import pytest
from builders import a_route_diff, a_speculative_diff, an_inventory, with_
from gate_cases import agreed, changed, check_of, evidence

from routeproof.gates.facts import ReusedRow
from routeproof.gates.inventory import judge_inventory
from routeproof.gates.parity import judge_parity
from routeproof.gates.result import Status
from routeproof.gates.rollback import judge_rollback
from routeproof.proof.policy import RollbackSpec
from routeproof.routes.inventory import Field


def with_field(inventory, name, value, known):
    kept = tuple(field for field in inventory.fields if field.name != name)
    return with_(inventory, fields=(*kept, Field(name=name, value=value, known=known)))


def inventory_of(candidate, **changes):
    routes = a_route_diff(candidate=candidate)
    return judge_inventory(with_(evidence(), routes=routes, **changes))


def test_a_route_that_is_written_down_passes():
    assert judge_inventory(evidence()).status is Status.PASSED


def test_a_field_nobody_states_is_listed_and_caps():
    found = inventory_of(with_field(an_inventory(), "weights", None, "unverified"))
    assert found.status is Status.INCONCLUSIVE
    assert "weights" in found.reason
    assert "unverified_fields" in found.flags


def test_what_only_the_file_says_counts_with_the_launch_command():
    said = with_field(an_inventory(), "weights", "bf16", "declared")
    assert inventory_of(said, launch_declared=True).status is Status.PASSED
    assert inventory_of(said, launch_declared=False).status is Status.INCONCLUSIVE


def test_hardware_is_taken_as_written():
    said = with_field(an_inventory(), "hardware.device", "h200", "declared")
    assert inventory_of(said, launch_declared=False).status is Status.PASSED


@pytest.mark.parametrize("name", ["main", "latest", "HEAD"])
def test_a_revision_that_moves_fails(name):
    assert inventory_of(an_inventory(revision=name)).status is Status.FAILED


def test_a_draft_with_another_tokenizer_fails():
    fields = {
        "speculation.method": "draft",
        "speculation.draft.model": "small",
        "speculation.draft.tokenizer": "other",
        "tokenizer.name": "tiny",
    }
    routes = with_(a_speculative_diff(), candidate=an_inventory(**fields))
    found = judge_inventory(with_(evidence(), routes=routes))
    assert check_of(found, "paired").status is Status.FAILED
    assert "other" in found.reason


def test_forced_acceptance_is_flagged_for_no_verdict():
    routes = a_route_diff(change_class="invalid")
    found = judge_inventory(with_(evidence(), routes=routes))
    assert found.status is Status.FAILED
    assert "synthetic_acceptance" in found.flags


def test_an_undeclared_difference_breaks_parity():
    found = judge_parity(with_(evidence(), parity=("`sampling` differs",)))
    assert found.status is Status.FAILED
    assert "parity_broken" in found.flags
    assert found.reason == "`sampling` differs"


def test_other_cases_on_one_arm_are_another_workload():
    found = judge_parity(with_(evidence(), workload_matches=False))
    assert "workload_differs" in found.flags


def test_one_pair_with_other_parameters_is_another_workload():
    found = judge_parity(with_(evidence(), asked_otherwise=(1, 500)))
    assert "workload_differs" in found.flags
    assert found.reason == "1 of 500 pairs were sent with other parameters"
    assert judge_parity(with_(evidence(), asked_otherwise=(0, 500))).flags == ()


@pytest.mark.parametrize("changes", [{"has_control": False}, {"is_interleaved": False}])
def test_without_control_or_turns_the_noise_is_unknown(changes):
    assert judge_parity(with_(evidence(), **changes)).status is Status.INCONCLUSIVE


def test_a_warmer_cache_on_one_arm_is_unfair():
    shares = {"baseline": 0.0, "candidate": 0.9}
    found = judge_parity(changed(evidence(), "speed", cached_share=shares))
    assert found.status is Status.FAILED
    assert "cache" in found.reason


def test_a_cache_warmed_by_the_control_is_no_broken_parity():
    shares = {"baseline": 0.4, "candidate": 0.1}
    speed = dict(cached_share=shares, is_warmed_by_control=True)
    found = judge_parity(changed(evidence(), "speed", **speed))
    assert found.status is Status.PASSED
    check = next(c for c in found.checks if c.name == "same_cache")
    assert check.status is Status.INCONCLUSIVE
    assert "add a `latency` stage" in check.reason


def reused(again=16, differs=0, before=48, before_differs=0):
    row = ReusedRow(
        run_id="r",
        measured="yesterday",
        requests=112,
        again=again,
        again_differs=differs,
        before=before,
        before_differs=before_differs,
    )
    return judge_parity(with_(evidence(), reused=row))


def test_a_reused_baseline_must_still_answer_the_same():
    assert reused().status is Status.PASSED
    drifted = reused(differs=5)
    assert drifted.status is Status.FAILED
    assert "parity_broken" in drifted.flags
    assert reused(differs=5, before_differs=16).status is Status.PASSED
    assert reused(again=0).status is Status.INCONCLUSIVE
    assert reused(differs=2, before=0).status is Status.INCONCLUSIVE


@pytest.mark.parametrize(
    ("drilled", "status", "flags"),
    [
        (None, Status.NOT_MEASURED, ("not_drilled",)),
        ("2026-11-29 in 3.1 s", Status.PASSED, ()),
        ("failed: the baseline did not answer", Status.FAILED, ()),
    ],
)
def test_a_way_back_counts_when_it_was_walked(drilled, status, flags):
    way = agreed(rollback=RollbackSpec(drilled=drilled))
    found = judge_rollback(with_(evidence(), agreed=way))
    assert (found.status, found.flags) == (status, flags)
