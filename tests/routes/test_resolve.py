from route_specs import a_proof, a_route, launched, speculation

from routeproof.proof.route import AuthSpec, HardwareSpec, RouteSpec, TokenizerSpec
from routeproof.routes.resolve import resolve


def test_like_fills_everything_that_is_not_named():
    _, candidate = resolve(
        a_proof(a_route(), RouteSpec(like="baseline", kv_cache="fp8_e4m3"))
    )
    assert candidate.model == "Qwen/Qwen3-8B"
    assert candidate.kv_cache == "fp8_e4m3"
    assert candidate.endpoint == "http://127.0.0.1:8000/v1"
    assert candidate.like is None


def test_an_own_way_of_being_reached_replaces_the_baselines():
    launch = launched("serve", "{port}")
    _, by_launch = resolve(
        a_proof(a_route(), RouteSpec(like="baseline", launch=launch))
    )
    assert (by_launch.endpoint, by_launch.launch) == (None, launch)
    base = a_route(endpoint=None, launch=launch)
    _, by_url = resolve(
        a_proof(base, RouteSpec(like="baseline", endpoint="http://h/v1"))
    )
    assert (by_url.endpoint, by_url.launch) == ("http://h/v1", None)


def test_tokenizer_and_hardware_are_filled_part_by_part():
    base = a_route(
        tokenizer=TokenizerSpec(name="t", revision="r"),
        hardware=HardwareSpec(device="h200", count=1),
    )
    own = RouteSpec(
        like="baseline",
        tokenizer=TokenizerSpec(chat_template_digest="d"),
        hardware=HardwareSpec(count=2),
    )
    _, candidate = resolve(a_proof(base, own))
    assert candidate.tokenizer == TokenizerSpec(
        name="t", revision="r", chat_template_digest="d"
    )
    assert candidate.hardware == HardwareSpec(device="h200", count=2)


def test_speculation_can_be_taken_away():
    base = a_route(speculation=speculation())
    off = RouteSpec(like="baseline", speculation=speculation(method="none"))
    _, candidate = resolve(a_proof(base, off))
    assert candidate.speculation.method == "none"
    assert candidate.speculation.draft is None
    _, same = resolve(a_proof(base, RouteSpec(like="baseline")))
    assert same.speculation == base.speculation


def test_authorisation_and_changes_are_the_candidates_own():
    base = a_route(auth=AuthSpec(api_key_env="KEY"), changes=())
    _, candidate = resolve(
        a_proof(base, RouteSpec(like="baseline", changes=("model",)))
    )
    assert candidate.auth.api_key_env == "KEY"
    assert candidate.changes == ("model",)


def test_a_route_that_is_like_nothing_stays_as_it_is():
    own = RouteSpec(endpoint="http://h/v1")
    assert resolve(a_proof(a_route(), own))[1] == own
