"""The importers of results: one function and one line each."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from routeproof.workloads.results.aiperf import aiperf
from routeproof.workloads.results.bench_serving import (
    inferencex,
    sglang_bench,
    vllm_bench,
)
from routeproof.workloads.results.guidellm import guidellm
from routeproof.workloads.results.inference_perf import inference_perf
from routeproof.workloads.results.inspect_ai import inspect_log
from routeproof.workloads.results.lm_eval import lm_eval
from routeproof.workloads.results.result import Result


class ResultImporter(NamedTuple):
    """One kind of result.

    Attributes:
        of: Reads a file or folder of it.
        form: What the file is.
    """

    of: Callable[[Path], tuple[Result, ...]]
    form: str


RESULTS: dict[str, ResultImporter] = {
    "lm-eval": ResultImporter(lm_eval, "samples_*.jsonl, or their folder"),
    "inspect": ResultImporter(inspect_log, ".eval or .json"),
    "vllm-bench": ResultImporter(vllm_bench, "JSON or JSONL, milliseconds"),
    "sglang-bench": ResultImporter(sglang_bench, "JSONL, milliseconds"),
    "inferencex": ResultImporter(inferencex, "JSON or JSONL, seconds"),
    "guidellm": ResultImporter(guidellm, "JSON"),
    "aiperf": ResultImporter(aiperf, "profile_export_aiperf.json"),
    "inference-perf": ResultImporter(inference_perf, "folder, JSON or a sweep's JSONL"),
}
