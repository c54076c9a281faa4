"""Structured output: valid against a schema, and with the right fields."""

import json
from functools import lru_cache
from typing import Any, NoReturn

import jsonschema_rs

from routeproof.scorers.answered import (
    option,
    reference,
    score,
    unparseable,
    unscored,
    verdict,
)
from routeproof.scorers.json_equal import json_equal
from routeproof.scorers.json_text import ParsedJson, parse_fenced_json, parse_json
from routeproof.scorers.score import Score, ScoreClass, ScoredAnswer
from routeproof.workloads.case import Case


class SchemaProblem(ValueError):
    """A schema that is none."""


def _no_network(uri: str) -> NoReturn:
    raise ValueError(f"a schema may not fetch {uri}")


@lru_cache(maxsize=4096)
def _validator(schema_json: str) -> Any:
    try:
        return jsonschema_rs.validator_for(
            json.loads(schema_json), retriever=_no_network, validate_formats=True
        )
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise SchemaProblem(str(error)) from error


def schema_of(case: Case, scorer: str) -> Any:
    """The schema of a case.

    The option ``schema``; else the ``response_format`` (or vLLM's ``guided_json``)
    the request asks the engine to keep to; else the reference when it is an object.
    """
    named = option(case, scorer, "schema")
    if named is not None:
        return named
    asked = case.parameters.get("response_format")
    if isinstance(asked, dict):
        holder = asked.get("json_schema", asked)
        if isinstance(holder, dict) and "schema" in holder:
            return holder["schema"]
    guided = case.parameters.get("guided_json")
    if guided is not None:
        return guided
    return reference(case, scorer)


def schema_problem(schema: Any, value: Any) -> str | None:
    """Why ``value`` is not valid, or ``None`` when it is.

    Raises:
        SchemaProblem: The schema itself is not valid.
    """
    if not isinstance(schema, dict | bool):
        raise SchemaProblem("a schema is an object or a boolean")
    validator = _validator(json.dumps(schema, sort_keys=True))
    try:
        if validator.is_valid(value):
            return None
        error = next(validator.iter_errors(value))
    except ValueError as broken:
        return f"value cannot be checked: {broken}"
    path = "/".join(str(part) for part in error.instance_path)
    return f"/{path}: {error.message}"


def _score_schema(case: Case, scorer: str, parsed: ParsedJson) -> Score:
    schema = schema_of(case, scorer)
    if schema is None:
        return unscored("no schema: option `schema` or `response_format` is missing")
    try:
        if parsed.problem is not None:
            schema_problem(schema, None)
            return unparseable(f"{parsed.where}: {parsed.problem}")
        problem = schema_problem(schema, parsed.value)
    except SchemaProblem as error:
        return unscored(f"schema is not valid: {error}")
    return verdict(problem is None, None, problem or f"valid ({parsed.where})")


def json_schema(case: Case, answer: ScoredAnswer) -> Score:
    """1 when the whole answer is JSON and valid against the case's schema."""
    return _score_schema(case, "json_schema", parse_json(answer.text))


def json_schema_fenced(case: Case, answer: ScoredAnswer) -> Score:
    """As ``json_schema``, but a code fence around the JSON is taken off first."""
    return _score_schema(case, "json_schema_fenced", parse_fenced_json(answer.text))


def json_fields(case: Case, answer: ScoredAnswer) -> Score:
    """Share of the reference's fields that the answer has with an equal value.

    Options: ``exact`` (fields that are not in the reference make the answer wrong),
    ``fold_strings`` (strings without case). 1 = 1.0, ``true`` is not 1.
    """
    wanted = reference(case, "json_fields")
    if not isinstance(wanted, dict) or not wanted:
        return unscored("reference is no object with fields")
    parsed = parse_fenced_json(answer.text)
    if parsed.problem is not None:
        return unparseable(f"{parsed.where}: {parsed.problem}")
    if not isinstance(parsed.value, dict):
        return unparseable("the JSON is no object")
    fold = bool(option(case, "json_fields", "fold_strings", False))
    wrong = [
        key
        for key, value in wanted.items()
        if key not in parsed.value
        or not json_equal(parsed.value[key], value, fold_strings=fold)
    ]
    if option(case, "json_fields", "exact", False) and parsed.value.keys() - wanted:
        return score("wrong", 0.0, None, "fields that were not asked for")
    value = 1 - len(wrong) / len(wanted)
    if not wrong:
        return score("correct", 1.0, None, f"all {len(wanted)} fields equal")
    class_: ScoreClass = "wrong" if value == 0 else "graded"
    return score(class_, value, None, "differs in " + ", ".join(map(str, wrong)))
