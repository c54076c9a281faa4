"""What differs between two routes, engines started and all."""

import re
import sys
from pathlib import Path

import msgspec
import pytest

from routeproof.errors import EngineError
from routeproof.jobs.diff import diff


def test_the_log_an_error_names_is_there_to_be_read(tmp_path):
    words = "print('no such kernel'); raise SystemExit(3)"
    route = {
        "model": "toy",
        "launch": {"command": [sys.executable, "-c", words, "--port", "{port}"]},
    }
    proof = tmp_path / "proof.yaml"
    plain = {"baseline": route, "candidate": {"like": "baseline", "changes": []}}
    proof.write_bytes(msgspec.json.encode(plain))
    with pytest.raises(EngineError) as raised:
        diff(proof)
    said = f"{raised.value} {raised.value.hint}"
    named = re.search(r"(/\S*routeproof-diff-\S*\.log)", said)
    assert named, said
    assert "no such kernel" in Path(named[1]).read_text()
