import json
from pathlib import Path

import jsonschema_rs
import pytest
from proof_text import COMPLETE, SMALL

from routeproof.proof.canary import sample_share
from routeproof.proof.schema import json_schema
from routeproof.proof.yaml_text import parse


def validator():
    return jsonschema_rs.validator_for(json.loads(json.dumps(json_schema())))


@pytest.mark.parametrize("text", [COMPLETE, SMALL])
def test_what_loads_is_valid_by_the_schema(text):
    validator().validate(parse(text, Path("x")).values)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weights: bf16", "weigths: bf16"),
        ("trials: 1", "trials: many"),
        ("maturity: release", "maturity: nightly"),
    ],
)
def test_what_does_not_load_is_invalid_by_the_schema(old, new):
    values = parse(COMPLETE.replace(old, new, 1), Path("x")).values
    assert not validator().is_valid(values)


def test_one_value_for_a_list_is_allowed_by_the_schema():
    text = SMALL + "workload: {cases: golden, load: {sweep: {concurrency: 4}}}\n"
    validator().validate(parse(text, Path("x")).values)


@pytest.mark.parametrize(
    ("text", "share"), [("5%", 0.05), (" 12.5 % ", 0.125), ("0.25", 0.25), (1, 1.0)]
)
def test_a_share_is_read_from_a_percentage_or_a_number(text, share):
    assert sample_share(text) == pytest.approx(share)
