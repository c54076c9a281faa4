import pytest
from engine_pages import answers, rows
from hypothesis import given
from hypothesis import strategies as st
from route_specs import a_route, compared, launched, said, speculation

from routeproof.engines.adapters import ADAPTERS
from routeproof.proof.route import EngineSpec, LaunchSpec, RouteSpec
from routeproof.routes.classes import RANK, class_of, worst
from routeproof.routes.diff import diff
from routeproof.routes.inventory import RouteDiff, take_inventory
from routeproof.routes.parity import parity_problems, pointless_changes


def names(found: RouteDiff) -> dict[str, str]:
    return {change.field: change.change_class for change in found.changes}


def undeclared(found: RouteDiff) -> set[str]:
    return {p.field for p in parity_problems(found) if p.kind == "undeclared"}


def test_equal_routes_do_not_differ():
    found = compared(a_route(), a_route(endpoint="http://other/v1"))
    assert found.changes == ()
    assert found.change_class == "lossless"
    assert parity_problems(found) == ()


def test_an_undeclared_difference_is_a_parity_problem():
    found = compared(a_route(), a_route(kv_cache="fp8"))
    assert names(found) == {"kv_cache": "lossy"}
    (problem,) = parity_problems(found)
    assert problem.kind == "undeclared"
    assert (problem.baseline, problem.candidate) == ("bf16", "fp8_e4m3")
    error = problem.error()
    assert error.exit_code == 2
    assert "kv_cache" in str(error)


def test_a_declared_difference_is_intended():
    found = compared(a_route(), a_route(kv_cache="fp8", changes=("kv_cache",)))
    assert found.changes[0].intended
    assert parity_problems(found) == ()


def test_adding_speculation_is_lossless_in_what_it_claims():
    candidate = a_route(speculation=speculation(), changes=("speculation",))
    found = compared(a_route(), candidate)
    assert found.change_class == "lossless"
    assert found.is_speculative
    assert parity_problems(found) == ()
    assert names(found)["speculation.draft.model"] == "lossless"


def test_the_worst_class_decides():
    candidate = a_route(
        speculation=speculation(), weights="fp8", changes=("speculation", "weights")
    )
    assert compared(a_route(), candidate).change_class == "lossy"


def test_a_switch_nobody_knows_is_unknown():
    plain = a_route(launch=launched("serve"))
    other = a_route(launch=launched("serve", "--frobnicate", "9"))
    found = compared(plain, other)
    assert names(found) == {"launch.frobnicate": "unknown"}
    assert undeclared(found) == {"launch.frobnicate"}


def test_what_one_side_does_not_know_is_no_difference():
    found = compared(a_route(kv_cache=None), a_route(kv_cache="fp8"))
    assert found.changes == ()
    assert "kv_cache" in found.baseline.unverified()


def test_an_endpoint_that_contradicts_its_file_is_a_problem():
    found = compared(a_route(), a_route(), said(), said(kv_cache="fp8"))
    kinds = {(p.kind, p.field) for p in parity_problems(found)}
    assert ("contradicted", "kv_cache") in kinds


def test_sampler_defaults_that_differ_silently_are_a_problem():
    one = said("llama.cpp", sampler_defaults__temperature="0.8")
    other = said("llama.cpp", sampler_defaults__temperature="0.6")
    found = compared(a_route(), a_route(), one, other)
    assert undeclared(found) == {"sampler_defaults.temperature"}
    assert found.change_class == "lossy"


def test_another_chat_template_is_a_problem():
    one = said(tokenizer__chat_template_digest="aa")
    other = said(tokenizer__chat_template_digest="bb")
    assert undeclared(compared(a_route(), a_route(), one, other)) == {
        "tokenizer.chat_template_digest"
    }


def test_a_change_that_changes_nothing_is_told():
    candidate = a_route(changes=("kv_cache", "weights"), weights="fp8")
    found = compared(a_route(), candidate)
    assert pointless_changes(found, candidate.changes) == ("kv_cache",)


def test_every_class_of_change_has_a_reason():
    for field in ("weights", "launch.x", "prefix_cache", "engine.version", "whatever"):
        change_class, why = class_of(field)
        assert change_class in RANK
        assert why


@given(st.lists(st.sampled_from(list(RANK)), max_size=5))
def test_the_worst_class_is_never_milder_than_any(classes):
    assert all(RANK[worst(classes)] >= RANK[c] for c in classes)


def sweep_route(config: str, *changes: str) -> RouteSpec:
    row = next(
        row
        for row in rows("inference_perf_vllm_sweep", "routes.jsonl")
        if row["config"] == config
    )
    return RouteSpec(
        endpoint="http://127.0.0.1:8000/v1",
        model=row["model"],
        engine=EngineSpec(name="vllm", version=row["image"].split(":v")[1]),
        launch=LaunchSpec(command=("vllm", "serve", *row["args"])),
        changes=changes,
    )


@pytest.mark.parametrize(
    ("config", "changes", "kinds"),
    [
        (
            "vllm+eagle",
            ("speculation",),
            {
                ("undeclared", "prefix_cache"),
                ("undeclared", "scheduler.chunked_prefill"),
            },
        ),
        (
            "vllm+quantization",
            ("weights",),
            {
                ("undeclared", "prefix_cache"),
                ("undeclared", "scheduler.chunked_prefill"),
                ("malformed", "observed.malformed_argument.0"),
            },
        ),
        (
            "vllm+batch_size",
            (),
            {("undeclared", "scheduler.max_running_requests")},
        ),
        ("vllm+v0_engine", (), {("undeclared", "engine.version")}),
        ("vllm", (), set()),
    ],
)
def test_a_published_comparison_is_not_a_fair_pair(config, changes, kinds):
    found = compared(sweep_route("vllm"), sweep_route(config, *changes))
    assert {(p.kind, p.field) for p in parity_problems(found)} == kinds


def recorded(engine: str, folder: str, route: str):
    paths = (
        "/v1/models",
        "/version",
        "/server_info",
        "/server_info?config_format=json",
        "/metrics",
    )
    return ADAPTERS[engine].read_back(answers(folder, route, *paths))


def test_recorded_vllm_routes_differ_in_what_was_changed():
    base = recorded("vllm", "engine_captures_vllm", "vllm-bf16")
    route = RouteSpec(endpoint="http://h/v1", changes=("speculation",))
    ngram = recorded("vllm", "engine_captures_vllm", "vllm-ngram")
    found = compared(route, route, base, ngram)
    assert undeclared(found) == set()
    assert found.change_class == "lossless"
    fp8 = recorded("vllm", "engine_captures_vllm", "vllm-fp8kv")
    found = compared(route, route, base, fp8)
    assert undeclared(found) == {"kv_cache"}


def test_recorded_sglang_speculation_on_a_processor_is_lossy():
    base = recorded("sglang", "engine_captures_sglang", "sglang-bf16")
    route = RouteSpec(endpoint="http://h/v1", changes=("speculation",))
    draft = recorded("sglang", "engine_captures_sglang", "sglang-draft-q2k")
    found = compared(route, route, base, draft)
    assert undeclared(found) == set()
    assert found.change_class == "lossy"
    assert found.is_speculative


@pytest.mark.parametrize("resolved", ["torch.bfloat16", None], ids=["told", "not told"])
def test_auto_hides_no_change(resolved):
    read_back = said(kv_cache=resolved) if resolved else None
    baseline = take_inventory(a_route(kv_cache="auto"), read_back)
    spec = a_route(kv_cache="fp8_e4m3", changes=("kv_cache",))
    found = diff(baseline, take_inventory(spec, None), spec)
    assert names(found) == {"kv_cache": "lossy"}
    assert baseline.value("kv_cache") == ("bf16" if resolved else "auto")
