"""The importers of data sets: the first file to open for a new one.

An importer is one function ``Path -> Imported`` in a file of this folder and one line
here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from routeproof.workloads.importers.bfcl import bfcl
from routeproof.workloads.importers.gsm8k import gsm8k
from routeproof.workloads.importers.ifeval import ifeval
from routeproof.workloads.importers.json_schemas import jsonschemabench
from routeproof.workloads.importers.lines import Imported
from routeproof.workloads.importers.logs import inspect_cases, lm_eval_cases
from routeproof.workloads.importers.openai_chat import openai_chat
from routeproof.workloads.importers.programs import humaneval, mbpp
from routeproof.workloads.importers.promptfoo import promptfoo
from routeproof.workloads.importers.questions import longfact, nq_open, xquad
from routeproof.workloads.importers.retrieval import reranking, retrieval
from routeproof.workloads.importers.turns import mt_bench, spec_bench
from routeproof.workloads.importers.xstest import xstest


class Importer(NamedTuple):
    """One kind of data set.

    Attributes:
        of: Reads a file (or folder) of it.
        form: What the file is.
        scored_by: The scorers its cases carry.
    """

    of: Callable[[Path], Imported]
    form: str
    scored_by: str


IMPORTERS: dict[str, Importer] = {
    "gsm8k": Importer(gsm8k, "JSONL", "numeric"),
    "humaneval": Importer(humaneval, "JSONL, maybe .gz", "code (pass@k)"),
    "mbpp": Importer(mbpp, "JSONL or JSON", "code (pass@k)"),
    "ifeval": Importer(ifeval, "JSONL", "instruction"),
    "bfcl": Importer(bfcl, "JSONL with ground truth", "tool_call"),
    "xstest": Importer(xstest, "JSONL", "refusal, over_refusal, under_refusal"),
    "jsonschemabench": Importer(jsonschemabench, "JSONL", "json_schema"),
    "mt-bench": Importer(mt_bench, "question.jsonl", "degeneration, a judge"),
    "spec-bench": Importer(spec_bench, "question.jsonl", "by category"),
    "retrieval": Importer(retrieval, "BEIR or TREC folder", "ndcg, recall, MRR"),
    "reranking": Importer(reranking, "BEIR or TREC folder", "ndcg, recall, MRR"),
    "nq-open": Importer(nq_open, "JSONL", "contains"),
    "xquad": Importer(xquad, "JSONL rows", "contains"),
    "longfact": Importer(longfact, "JSONL", "degeneration, a judge"),
    "openai-chat": Importer(openai_chat, "JSONL", "what the rows hold"),
    "lm-eval-cases": Importer(lm_eval_cases, "samples_*.jsonl", "its metrics"),
    "inspect-cases": Importer(inspect_cases, ".eval or .json", "its scorers"),
    "promptfoo": Importer(promptfoo, "YAML", "its assertions"),
}
