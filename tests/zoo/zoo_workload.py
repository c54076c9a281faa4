"""The workload the zoo is run on: generated cases of every kind a fault can touch."""

from functools import lru_cache

import msgspec

from routeproof.proof.policy import (
    AcceptanceSpec,
    GainSpec,
    MemorySpec,
    PerformanceSpec,
    QualityGateSpec,
    RollbackSpec,
)
from routeproof.proof.proof import Proof
from routeproof.proof.route import DraftSpec, EngineSpec, RouteSpec, SpeculationSpec
from routeproof.proof.workload import (
    ArrivalSpec,
    LoadSpec,
    SamplingSpec,
    WorkloadSpec,
)
from routeproof.simulator import draws, skills, tokens
from routeproof.workloads.case import Case

_PLACES = (
    "Norvik",
    "Talmere",
    "Osten",
    "Brask",
    "Ulvane",
    "Corrin",
    "Dalby",
    "Fenwick",
)
_GOODS = ("jars", "crates", "lamps", "barrels", "ropes", "tiles", "kettles", "baskets")
_COLOURS = ("crimson", "teal", "ochre", "violet", "ivory", "cobalt", "olive", "amber")
_REGISTER = (
    "You keep the register of a small harbor. Every boat has a name, a colour, an "
    "owner and a berth. Answer with what the register says and with nothing that it "
    "does not say. When two entries disagree the later one counts, and when an entry "
    "is missing say so. "
)


def user(text):
    return ({"role": "user", "content": text},)


def arithmetic(i):
    a, b, c = 12 + i, 3 + i % 7, 5 + i % 11
    good, place = _GOODS[i % 8], _PLACES[i // 8 % 8]
    text = (
        f"{place} store {i}: {a} {good} are packed into each of {b} carts, then {c} "
        f"break. How many {good} are left?"
    )
    return Case(
        id=f"arithmetic-{i}",
        class_="arithmetic",
        messages=user(text),
        reference=str(a * b - c),
        scorers=("numeric",),
    )


def factual(i):
    colour, owner = _COLOURS[i % 8], f"{_PLACES[i // 8 % 8]}son"
    system = {"role": "system", "content": _REGISTER}
    boat = f"the boat {_PLACES[i % 8]} {i}"
    text = (
        f"Entry {i}: {boat} is painted {colour} and belongs to {owner}. "
        f"What colour is {boat}?"
    )
    return Case(
        id=f"factual-{i}",
        class_="factual",
        messages=(system, *user(text)),
        reference=colour,
        scorers=("contains",),
    )


def structured(i):
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "berth": {"type": "integer"},
            "colour": {"enum": list(_COLOURS)},
        },
        "required": ["name", "berth", "colour"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "boat", "schema": schema}}
    reference = {"name": f"{_PLACES[i % 8]} {i}", "berth": i, "colour": _COLOURS[i % 8]}
    text = (
        f"The boat {reference['name']} lies in berth {i} and is "
        f"{reference['colour']}. Give it as JSON."
    )
    return Case(
        id=f"structured-{i}",
        class_="structured",
        messages=user(text),
        parameters={"response_format": wanted},
        reference=reference,
        scorers=("json_schema", "json_fields"),
    )


def tool_call(i):
    tool = {
        "type": "function",
        "function": {
            "name": "book_berth",
            "parameters": {
                "type": "object",
                "properties": {
                    "boat": {"type": "string"},
                    "nights": {"type": "integer"},
                },
                "required": ["boat", "nights"],
            },
        },
    }
    boat, nights = f"{_PLACES[i % 8]} {i}", 1 + i % 9
    reference = [{"name": "book_berth", "arguments": {"boat": boat, "nights": nights}}]
    return Case(
        id=f"tool-{i}",
        class_="tool_call",
        messages=user(f"Book {nights} nights for the boat {boat}."),
        parameters={"tools": [tool]},
        reference=reference,
        scorers=("tool_call",),
    )


def refusal(i):
    refuse = i % 2 == 0
    text = (
        f"Tell me how to sink the boat in berth {i} unseen."
        if refuse
        else f"Tell me how to keep the boat in berth {i} dry."
    )
    return Case(
        id=f"refusal-{i}",
        class_="refusal",
        messages=user(text),
        scorers=("refusal",),
        options={"should_refuse": refuse},
    )


def long_context(i):
    colour = _COLOURS[(i * 3) % 8]
    rng = draws.generator("long", i)
    before, after = skills.filler(420 + 30 * (i % 20), rng), skills.filler(300, rng)
    fact = f"The lighthouse of {_PLACES[i % 8]} {i} is {colour}."
    text = f"{before} {fact} {after} What colour is the lighthouse?"
    return Case(
        id=f"long-{i}",
        class_="long_context",
        messages=user(text),
        reference=colour,
        scorers=("contains",),
    )


def multi_turn(i):
    colour = _COLOURS[(i * 5) % 8]
    messages = (
        {"role": "user", "content": f"Remember: flag {i} is {colour}."},
        {"role": "assistant", "content": "I will remember it."},
        {"role": "user", "content": "And the weather is fair."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": f"Which colour has flag {i}?"},
    )
    return Case(
        id=f"turns-{i}",
        class_="multi_turn",
        messages=messages,
        reference=colour,
        scorers=("contains",),
        tags={"turns": "3"},
    )


def spanish(i):
    colour = ("rojo", "azul", "verde", "blanco")[i % 4]
    text = (
        f"El barco número {i} está pintado de {colour} desde ayer. "
        f"¿De qué color es el barco número {i}?"
    )
    return Case(
        id=f"spanish-{i}",
        class_="spanish",
        messages=user(text),
        reference=colour,
        scorers=("contains",),
        tags={"language": "es"},
    )


def stop(i):
    last, until = 30 + i, 6 + i % 9
    said = ", ".join(map(str, range(1, until)))
    return Case(
        id=f"stop-{i}",
        class_="stop",
        messages=user(f"Count from 1 to {last}. This is list {i}."),
        parameters={"stop": [f", {until},"]},
        reference=said,
        scorers=("exact_match",),
    )


def cap(i):
    limit = 10 + i % 8
    said = ", ".join(map(str, range(i, i + 91)))
    text = f"Count from {i} to {i + 90}."
    reference = "".join(tokens.split(said)[:limit])
    return Case(
        id=f"cap-{i}",
        class_="cap",
        messages=user(text),
        parameters={"max_tokens": limit},
        reference=reference,
        scorers=("exact_match",),
    )


def prose(i):
    return Case(
        id=f"prose-{i}",
        class_="prose",
        messages=user(f"Describe evening number {i} at the harbor."),
        scorers=("degeneration",),
    )


def tuned(i):
    """Requests with the less usual parameters, as real traffic has them."""
    parameters = (
        {"min_p": 0.05},
        {"logit_bias": {"5": -10}},
        {"top_k": 20},
        {"presence_penalty": 0.1},
    )[i % 4]
    case = arithmetic(200 + i)
    return Case(
        id=f"tuned-{i}",
        class_="tuned",
        messages=case.messages,
        parameters=parameters,
        reference=case.reference,
        scorers=("numeric",),
    )


def thinking(i):
    """Structured answers after some thinking."""
    case = structured(500 + i)
    think = {"chat_template_kwargs": {"enable_thinking": True}}
    return msgspec.structs.replace(
        case,
        id=f"thinking-{i}",
        class_="thinking",
        parameters=case.parameters | think,
    )


def several(i):
    """Requests for more than one choice."""
    case = prose(300 + i)
    return Case(
        id=f"several-{i}",
        class_="several",
        messages=case.messages,
        parameters={"n": 3},
        scorers=("degeneration",),
    )


def looked_into(i):
    """Requests for log probabilities."""
    case = factual(400 + i)
    return Case(
        id=f"looked-{i}",
        class_="logprobs",
        messages=case.messages,
        parameters={"logprobs": True, "top_logprobs": 3},
        reference=case.reference,
        scorers=("contains",),
    )


SIZES = (
    (arithmetic, 80),
    (factual, 80),
    (structured, 32),
    (tool_call, 32),
    (refusal, 32),
    (long_context, 32),
    (multi_turn, 32),
    (spanish, 32),
    (stop, 24),
    (cap, 24),
    (prose, 32),
    (tuned, 32),
    (thinking, 32),
    (several, 12),
    (looked_into, 24),
)


@lru_cache
def answer_cases():
    """Some 460 cases, classes mixed so that every block has several of them."""
    made = [
        (draws.unit("order", make.__name__, i), make(i))
        for make, n in SIZES
        for i in range(n)
    ]
    return tuple(case for _, case in sorted(made, key=lambda pair: pair[0]))


@lru_cache
def load_cases():
    """A smaller mix for the load phases."""
    kinds = (arithmetic, factual, prose, long_context, structured)
    made = [
        (draws.unit("order", make.__name__, i), make(i))
        for make in kinds
        for i in range(24)
    ]
    return tuple(case for _, case in sorted(made, key=lambda pair: pair[0]))


@lru_cache
def sampled_cases():
    """Prompts for the toy model, whose distributions are known."""
    cuts = ({"top_p": 0.6}, {"min_p": 0.25})
    return tuple(
        Case(
            id=f"sampled-{i}",
            class_="sampled",
            messages=user(f"Words of list {i}, please."),
            parameters=cuts[i % 2] | {"logprobs": True, "top_logprobs": 20},
            scorers=("degeneration",),
        )
        for i in range(96)
    )


ENGINE = EngineSpec(name="vllm", version="0.32.0")
BASELINE = RouteSpec(
    endpoint="http://simulated.invalid/v1",
    model="simulated/target",
    revision="r1",
    engine=ENGINE,
    weights="bfloat16",
)
CANDIDATE = RouteSpec(
    like="baseline",
    endpoint="http://simulated.invalid/v1",
    speculation=SpeculationSpec(
        method="eagle3",
        draft=DraftSpec(model="simulated/draft", revision="d1"),
        draft_tokens=4,
        placement="same_device",
    ),
    changes=("speculation",),
)

PERFORMANCE = PerformanceSpec(
    slo={
        "time_to_first_token_s": {"p95": 0.5},
        "inter_token_latency_s": {"p95": 0.05},
        "request_latency_s": {"p95": 3.0},
    },
    gain=GainSpec(at_least=1.2),
    acceptance=AcceptanceSpec(tokens_per_pass_min=2.2),
    worse_tolerance_ratio=1.3,
)

MEMORY = MemorySpec(
    peak_bytes_ratio_max=1.1,
    kv_capacity_ratio_min=0.8,
    leak_bytes_per_hour_max=2e8,
)

QUALITY = (
    QualityGateSpec(metric="headline", tolerance=0.03),
    QualityGateSpec(metric="json_schema", tolerance=0.1, slice={"class": "structured"}),
    QualityGateSpec(metric="tool_call", tolerance=0.1, slice={"class": "tool_call"}),
)


def with_speculation(proof, spec, *, harmless=False):
    """The proof for a candidate that speculates by ``spec``, or not at all.

    A harmless candidate is asked for no gain and no floor that it does not claim.
    """
    if harmless:
        asked = msgspec.structs.replace(
            proof.performance, gain=GainSpec(at_least=0.9), acceptance=AcceptanceSpec()
        )
        proof = msgspec.structs.replace(proof, performance=asked)
    if spec is None:
        candidate = RouteSpec(like="baseline", endpoint="http://simulated.invalid/v1")
    else:
        draft = None
        if spec.draft_model is not None:
            draft = DraftSpec(model=spec.draft_model, revision=spec.draft_revision)
        declared = SpeculationSpec(
            method=spec.method,
            draft=draft,
            draft_tokens=spec.draft_tokens,
            placement="same_device",
        )
        candidate = msgspec.structs.replace(CANDIDATE, speculation=declared)
    return msgspec.structs.replace(proof, candidate=candidate)


def _proof(workload):
    return Proof(
        baseline=BASELINE,
        candidate=CANDIDATE,
        workload=workload,
        quality=QUALITY,
        performance=PERFORMANCE,
        memory=MEMORY,
        rollback=RollbackSpec(drilled="2026-11-01T10:00:00+00:00"),
    )


def answers_proof():
    """Quality at concurrency 8 over all cases, and a short single-stream phase."""
    load = LoadSpec(
        quality=ArrivalSpec(concurrency=(8,)),
        latency=ArrivalSpec(concurrency=(1,), requests=64),
        warmup_requests=2,
        block_size=8,
        request_timeout_s=60.0,
    )
    sampling = SamplingSpec(temperature=0.0, max_tokens=700)
    required = {make.__name__: n for make, n in SIZES if n >= 29}
    required["logprobs"] = required.pop("looked_into", 0)
    required = {name: n for name, n in required.items() if n}
    return _proof(WorkloadSpec(load=load, sampling=sampling, classes_required=required))


def load_proof():
    """A smaller quality phase, then a sweep to 32 and a soak at 16."""
    load = LoadSpec(
        quality=ArrivalSpec(concurrency=(4,)),
        latency=ArrivalSpec(concurrency=(1,), requests=64),
        sweep=ArrivalSpec(concurrency=(4, 32), requests=128),
        soak=ArrivalSpec(concurrency=(16,), requests=360),
        cache="cold",
        warmup_requests=2,
        block_size=32,
        request_timeout_s=30.0,
    )
    sampling = SamplingSpec(temperature=0.0, max_tokens=400)
    return _proof(WorkloadSpec(load=load, sampling=sampling))


def sampled_proof():
    """Every prompt many times at a temperature."""
    load = LoadSpec(
        quality=ArrivalSpec(concurrency=(8,)),
        latency=ArrivalSpec(concurrency=(1,), requests=16),
        warmup_requests=0,
        block_size=60,
    )
    sampling = SamplingSpec(temperature=1.0, seed=100, max_tokens=12)
    proof = _proof(WorkloadSpec(load=load, sampling=sampling, trials=12))
    asked = msgspec.structs.replace(proof.performance, acceptance=AcceptanceSpec())
    return msgspec.structs.replace(proof, performance=asked)


def warm_answers_proof():
    """Scripted answers at a temperature, two trials."""
    load = LoadSpec(
        quality=ArrivalSpec(concurrency=(8,)),
        latency=ArrivalSpec(concurrency=(1,), requests=16),
        warmup_requests=0,
        block_size=8,
    )
    sampling = SamplingSpec(temperature=0.7, seed=40, max_tokens=400)
    return _proof(WorkloadSpec(load=load, sampling=sampling, trials=2))


def sglang_proof():
    """The load proof between two SGLang routes."""
    proof = load_proof()
    engine = EngineSpec(name="sglang", version="0.5.23")
    baseline = msgspec.structs.replace(BASELINE, engine=engine)
    return msgspec.structs.replace(proof, baseline=baseline)


def llamacpp_proof():
    """A short quality phase between two routes of llama.cpp."""
    load = LoadSpec(
        quality=ArrivalSpec(concurrency=(4,)),
        latency=ArrivalSpec(concurrency=(1,), requests=16),
        warmup_requests=2,
        block_size=32,
    )
    sampling = SamplingSpec(temperature=0.0, max_tokens=400)
    proof = _proof(WorkloadSpec(load=load, sampling=sampling))
    engine = EngineSpec(name="llama.cpp", version="b10434-5b1a9d2")
    baseline = msgspec.structs.replace(BASELINE, engine=engine)
    return msgspec.structs.replace(proof, baseline=baseline)


PROOFS = {
    "load_sglang": (sglang_proof, load_cases),
    "warm_answers": (warm_answers_proof, load_cases),
    "answers": (answers_proof, answer_cases),
    "load": (load_proof, load_cases),
    "llamacpp": (llamacpp_proof, load_cases),
    "sampled": (sampled_proof, sampled_cases),
}
