"""What each tool means by its names. The names lie across tools; these ids do not.

Notation: s = start of the request, f = first counted chunk, l = last counted chunk,
e = end of the stream, n = output tokens, k1 = tokens of the first chunk.
"""

from typing import NamedTuple


class Definition(NamedTuple):
    """A metric as one tool computes it.

    Attributes:
        metric: The name routeproof uses for what comes nearest.
        formula: In the notation above.
        note: What a reader would get wrong.
    """

    metric: str
    formula: str
    note: str = ""


_CHUNKS = "gaps between chunks: with speculation a chunk holds several tokens"
_LINES = "every line moves the end on, also usage and [DONE]"

DEFINITIONS: dict[str, Definition] = {
    "vllm.ttft": Definition(
        "time_to_first_token", "f - s", "`reasoning_content` is not looked at"
    ),
    "vllm.tpot": Definition("time_per_output_token", "(l - f) / (n - 1)"),
    "vllm.itl": Definition("chunk_gap", "gap between chunks", _CHUNKS),
    "vllm.e2el": Definition("request_latency", "l - s"),
    "sglang.ttft": Definition(
        "time_to_first_token", "f - s", "tool calls are not looked at"
    ),
    "sglang.tpot": Definition("time_per_output_token", "(e - f) / (n - 1)", _LINES),
    "sglang.itl": Definition("chunk_gap", "gap between chunks", _CHUNKS),
    "sglang.e2el": Definition("request_latency", "e - s", _LINES),
    "guidellm.ttft": Definition("time_to_first_token", "f - s", "wall clock"),
    "guidellm.ttfot": Definition(
        "time_to_first_visible_token", "first visible content - s", "wall clock"
    ),
    "guidellm.tpot": Definition(
        "request_latency_per_token", "(l - s) / n", "holds the time to first token"
    ),
    "guidellm.itl": Definition(
        "time_per_output_token",
        "(l - f) / (n - 1), mean over requests",
        "what other tools call TPOT; no stall can be seen in it",
    ),
    "guidellm.latency": Definition("request_latency", "e - s", "wall clock"),
    "aiperf.ttft": Definition("time_to_first_token", "f - s"),
    "aiperf.ttfot": Definition("time_to_first_visible_token", "first visible - s"),
    "aiperf.itl": Definition(
        "time_per_output_token",
        "(l - s - ttft) / (n - k1)",
        "k1 is 1 unless usage is asked for per chunk",
    ),
    "aiperf.icl": Definition("chunk_gap", "gap between chunks", _CHUNKS),
    "aiperf.latency": Definition("request_latency", "l - s"),
    "inference_perf.ttft": Definition(
        "time_to_first_token", "f - s", "reasoning and tool calls are not looked at"
    ),
    "inference_perf.tpot": Definition(
        "time_per_output_token",
        "(l - f) / (n - 1)",
        "n is counted by the client's tokenizer",
    ),
    "inference_perf.ntpot": Definition(
        "request_latency_per_token",
        "(e - s) / n",
        "n is counted by the client's tokenizer",
    ),
    "inference_perf.itl": Definition(
        "chunk_gap",
        "gap per token, 0 for all but the first token of a chunk",
        "with bursts its median says nothing of the time per token",
    ),
    "inference_perf.latency": Definition("request_latency", "e - s"),
    "total.request_rate": Definition("request_throughput", "completed / duration"),
    "total.output_token_rate": Definition(
        "output_token_throughput", "output tokens / duration"
    ),
    "total.input_token_rate": Definition(
        "input_token_throughput", "input tokens / duration"
    ),
    "total.token_rate": Definition("total_token_throughput", "all tokens / duration"),
    "total.goodput": Definition("goodput", "requests inside all SLOs / duration"),
    "spec.acceptance_rate": Definition(
        "acceptance_rate", "accepted / drafted tokens, counter difference over the run"
    ),
    "spec.acceptance_length": Definition(
        "tokens_per_pass",
        "1 + accepted / drafts",
        "only passes that had a draft; all passes give a smaller mean",
    ),
    "eval.mean": Definition("score", "mean over samples, as the tool reduces epochs"),
}
"""Definition id to definition."""
