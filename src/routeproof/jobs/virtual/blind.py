"""Why a proof cannot see a fault: what its cases and its load do not have."""

from collections.abc import Callable, Sequence
from typing import Any

from routeproof.proof.workload import WorkloadSpec
from routeproof.simulator.ask import Ask, parse
from routeproof.simulator.faults import Fault
from routeproof.workloads.case import Case

_SOAKED = ("memory_leak_bytes", "kv_leak_tokens", "acceptance_decay_per_s")
_WHERE = ("acceptance_when", "error_when", "stuck_when")

_CASES: dict[str, tuple[str, Callable[[Ask, Any], bool]]] = {
    "structured": ("no case asks for structured output", lambda a, v: a.structured),
    "with_tools": ("no case has tools", lambda a, v: bool(a.tools)),
    "turns_min": ("no case has a second turn", lambda a, v: a.turns >= v),
    "thinks": ("no case asks the model to think", lambda a, v: a.thinks),
    "non_ascii": (
        "no case is in another script or language",
        lambda a, v: not a.last_text.isascii(),
    ),
    "prompt_tokens_min": (
        "no prompt has {value} tokens",
        lambda a, v: a.prompt_tokens >= v,
    ),
}
_FIELDS: dict[str, tuple[str, Callable[[Ask], bool]]] = {
    "stop": ("no case has a stop string", lambda a: bool(a.stop)),
    "n": ("no case asks for more than one choice", lambda a: a.n > 1),
    "logprobs": ("no case asks for log probabilities", lambda a: a.logprobs),
    "min_p": ("no case sends min_p", lambda a: a.min_p > 0.0),
    "top_p": ("no case sends top_p", lambda a: a.top_p < 1.0),
}


def blind_spots(
    row: Fault, cases: Sequence[Case], workload: WorkloadSpec
) -> tuple[str, ...]:
    """What a proof lacks for a fault to show, one sentence each.

    Empty where nothing is known to be missing: the fault was there and no gate saw it.
    """
    asks = _asks(cases, workload)
    where = {k: v for k, v in row.spoil.items() if k not in ("how", "share")}
    for name in _WHERE:
        where |= row.engine.get(name, {})
    found = [
        words.format(value=where[name])
        for name, (words, has) in _CASES.items()
        if where.get(name) and not any(has(ask, where[name]) for ask in asks)
    ]
    found += [
        words
        for name, (words, has) in _FIELDS.items()
        if name in _fields(row) and not any(has(ask) for ask in asks)
    ]
    if _needs_heat(row) and not any(ask.temperature > 0 for ask in asks):
        found.append("nothing is sampled: every request has temperature 0")
    return (*found, *_of_load(row, where, workload))


def _of_load(
    row: Fault, where: dict[str, Any], workload: WorkloadSpec
) -> tuple[str, ...]:
    load = workload.load
    stages = (load.quality, load.latency, load.sweep, load.soak)
    peak = max((max(s.concurrency or (0,)) for s in stages if s is not None), default=0)
    wanted = where.get("running_min") or row.engine.get("step_running_min") or 0
    found = []
    if wanted > peak and not any(s is not None and s.request_rate for s in stages):
        found.append(f"at most {peak} requests run together, and it takes {wanted}")
    if load.soak is None and any(name in row.engine for name in _SOAKED):
        found.append("there is no soak: what grows slowly has no time to show")
    return tuple(found)


def _asks(cases: Sequence[Case], workload: WorkloadSpec) -> list[Ask]:
    sampling = workload.sampling
    common = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    common |= {"min_p": sampling.min_p}
    made = (
        parse(
            "/v1/chat/completions" if case.messages else "/v1/completions",
            common
            | {"messages": list(case.messages or ()), "prompt": case.prompt}
            | case.parameters,
            16,
        )
        for case in cases
    )
    return [ask for ask in made if isinstance(ask, Ask)]


def _fields(row: Fault) -> set[str]:
    """Request parameters the fault is about."""
    found = {*row.sampling.get("ignored", ()), *row.sampling.get("refused", ())}
    if row.sampling.get("stop_leak_tokens"):
        found.add("stop")
    if {"zero_logprobs", "logprob_shift"} & row.sampling.keys():
        found.add("logprobs")
    return found if len(found) == 1 else set()


def _needs_heat(row: Fault) -> bool:
    about = {"verify", "temperature_shift"} & row.sampling.keys()
    ignored = row.sampling.get("ignored", ())
    heat = {"temperature", "top_p", "min_p", "seed"} & set(ignored)
    return bool(about or heat or row.spoil.get("sampled"))
