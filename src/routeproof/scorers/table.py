"""The table of scorers: the first file to open for a new one.

A scorer is one pure function ``(case, answer) -> Score`` in a file of this room and
one line here. Rates of something unwanted have ``higher_is_better=False``.
"""

from collections.abc import Callable
from dataclasses import replace

from routeproof.scorers.answered import ScoreText, answered
from routeproof.scorers.choice import choice
from routeproof.scorers.degeneration import degeneration
from routeproof.scorers.grounded import grounded
from routeproof.scorers.instruction import instruction, instruction_share
from routeproof.scorers.json_schema import json_fields, json_schema, json_schema_fenced
from routeproof.scorers.likelihood import reference_likelihood
from routeproof.scorers.numeric import numeric
from routeproof.scorers.refusal import (
    over_refusal,
    refusal,
    should_refuse,
    under_refusal,
)
from routeproof.scorers.retrieval import map_at_k, mrr_at_k, ndcg_at_k, recall_at_k
from routeproof.scorers.score import Scorer
from routeproof.scorers.text_match import contains, exact_match, regex
from routeproof.scorers.tool_call import tool_call
from routeproof.workloads.case import Case


def _scorer(
    name: str,
    inner: ScoreText,
    what: str,
    *,
    higher_is_better: bool = True,
    takes_calls: bool = False,
    reads_filter: bool = False,
    applies: Callable[[Case], bool] | None = None,
) -> Scorer:
    return Scorer(
        name=name,
        version=1,
        binary=True,
        of=answered(inner, takes_calls=takes_calls, reads_filter=reads_filter),
        what=what,
        higher_is_better=higher_is_better,
        applies=applies,
    )


def _graded(
    name: str, inner: ScoreText, what: str, *, is_secondary: bool = False
) -> Scorer:
    row = _scorer(name, inner, what)
    return replace(row, binary=False, is_secondary=is_secondary)


SCORERS: dict[str, Scorer] = {
    scorer.name: scorer
    for scorer in (
        _scorer("exact_match", exact_match, "equals a reference, normalised"),
        _scorer("contains", contains, "holds a reference as whole words"),
        _scorer("regex", regex, "matches a pattern"),
        _scorer("numeric", numeric, "comes to the reference's number, exactly"),
        _scorer("choice", choice, "takes the right lettered option"),
        _scorer("json_schema", json_schema, "is JSON, valid against the schema"),
        _scorer("json_schema_fenced", json_schema_fenced, "the same inside a fence"),
        _graded("json_fields", json_fields, "share of fields that are right"),
        _graded("ndcg", ndcg_at_k, "nDCG@k of the documents named"),
        _graded("recall_at_k", recall_at_k, "share of relevant documents named"),
        _graded("reciprocal_rank", mrr_at_k, "1 / place of the first relevant one"),
        _graded("average_precision", map_at_k, "its mean over cases is MAP"),
        _graded("grounded", grounded, "share of sentences its source supports"),
        _graded(
            "reference_likelihood",
            reference_likelihood,
            "1 / perplexity of the reference",
            is_secondary=True,
        ),
        _scorer("tool_call", tool_call, "makes the expected calls", takes_calls=True),
        _scorer(
            "refusal", refusal, "refuses exactly when it should", reads_filter=True
        ),
        _scorer(
            "over_refusal",
            over_refusal,
            "refuses a safe request",
            higher_is_better=False,
            reads_filter=True,
            applies=lambda case: should_refuse(case) is not True,
        ),
        _scorer(
            "under_refusal",
            under_refusal,
            "answers a request it should refuse",
            higher_is_better=False,
            reads_filter=True,
            applies=lambda case: should_refuse(case) is not False,
        ),
        _scorer("instruction", instruction, "keeps every checkable constraint"),
        _graded(
            "instruction_share",
            instruction_share,
            "share of checkable constraints kept",
        ),
        _scorer(
            "degeneration",
            degeneration,
            "loops, runs of one character, noise, a switch of script",
            higher_is_better=False,
        ),
    )
}
