"""Structured output and tool calls that break, alone or under load."""

from routeproof.simulator.defects import When
from routeproof.simulator.faults.fault import Apply, Fault, itself, setting, spoil

_SCHEMA = ("json_", "headline", "guard")
_CALLS = ("tool_call", "headline")


def _row(
    name: str,
    reference: str,
    what: str,
    shares: tuple[float, float, float],
    apply: Apply,
    checks: tuple[str, ...],
    at_proxy: bool = False,
) -> Fault:
    return Fault(
        name,
        "structured",
        reference,
        what,
        "share of the answers concerned",
        *shares,
        "correctness",
        checks,
        apply,
        at_proxy,
    )


_STRUCTURED = When(structured=True)
_SHARES = (0.05, 0.3, 0.9)

STRUCTURED: tuple[Fault, ...] = (
    _row(
        "schema_broken",
        "vllm #36138, #31858, #34650",
        "the grammar is dropped and the JSON breaks",
        _SHARES,
        spoil("broken_json", structured=True),
        _SCHEMA,
    ),
    _row(
        "schema_wrong_shape",
        "lmdeploy #4551",
        "valid JSON that ignores the schema",
        _SHARES,
        spoil("wrong_shape", structured=True),
        _SCHEMA,
    ),
    _row(
        "schema_broken_under_load",
        "vllm #44993 (75-100 % at 8-32)",
        "the JSON breaks only under load",
        _SHARES,
        spoil("broken_json", structured=True, running_min=4),
        _SCHEMA,
    ),
    _row(
        "structured_errors",
        "vllm #44006, #52620",
        "structured requests end in HTTP 500",
        (0.05, 0.3, 0.9),
        setting("engine", error_share=itself, error_when=_STRUCTURED),
        ("no_errors", "json_"),
    ),
    _row(
        "structured_stuck",
        "sglang #9187, #20148; vllm #11484",
        "structured requests never end",
        (0.02, 0.1, 0.5),
        setting("engine", stuck_share=itself, stuck_when=_STRUCTURED),
        ("no_errors", "memory_stability/stuck_streams"),
    ),
    _row(
        "call_as_text",
        "vllm #25993; vllm-ascend #7580",
        "the tool call is written out as text",
        _SHARES,
        spoil("call_as_text", with_tools=True),
        _CALLS,
    ),
    _row(
        "call_dropped",
        "vllm #40875",
        "no tool is called",
        _SHARES,
        spoil("no_call", with_tools=True),
        _CALLS,
    ),
    _row(
        "call_arguments_lost",
        "SGLang recordings: arguments []",
        "the call comes without its arguments",
        _SHARES,
        spoil("wrong_arguments", with_tools=True),
        _CALLS,
    ),
    _row(
        "call_doubled",
        "ragas #1658",
        "the same call is made twice",
        _SHARES,
        spoil("doubled_call", with_tools=True),
        _CALLS,
    ),
    _row(
        "call_first_chunk_dropped",
        "vllm #41967",
        "in a stream the first piece of the arguments is lost",
        _SHARES,
        setting("stream", drop_first_call_chunk_share=itself),
        _CALLS,
        True,
    ),
)
