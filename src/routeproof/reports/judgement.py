"""Everything a report shows: the verdict, the gates, the evidence, the provenance.

Saved as ``judgement.json``. Reports read this struct and compute nothing.
"""

from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import StoredRunError
from routeproof.gates.evidence import Evidence
from routeproof.gates.facts import Flip, Row
from routeproof.gates.result import GateName, GateResult
from routeproof.verdict import Verdict

MEASUREMENT_VERSION = 1
"""Raised whenever the same records can give another number or verdict; each step is
in the changelog's section "Measurement"."""

SCHEMA = 1

_DIGITS = 9


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a judgement."""


class Provenance(_Part, frozen=True, kw_only=True):
    """Where the numbers come from.

    ``digests`` are SHA-256 of what was judged: ``records``, ``scores``, ``proof``,
    ``cases``. ``scorers`` are the versions used.
    """

    run_id: str
    started_at: str | None = None
    routeproof_version: str
    measurement_version: int = MEASUREMENT_VERSION
    workload_fingerprint: str | None = None
    baseline_digest: str | None = None
    candidate_digest: str | None = None
    seed: int | None = None
    cases: int = 0
    requests: int = 0
    duration_s: float | None = None
    scorers: dict[str, int] = {}
    digests: dict[str, str] = {}
    environment: dict[str, str] = {}


class WorstSlice(_Part, frozen=True, kw_only=True):
    """The quality question with the largest loss, with up to two pairs to read."""

    question: str
    reason: str
    examples: tuple[Flip, ...] = ()


class Evidenced(_Part, frozen=True, kw_only=True):
    """More evidence for one question: what there is and what would decide it."""

    question: str
    have: int
    need: int | None
    unit: str = "pairs"
    reason: str = ""


class Atrt(_Part, frozen=True, kw_only=True):
    """The checklist object of a runtime decision, filled from the run."""

    framework: dict[str, str | None]
    route: dict[str, str | None]
    baseline: dict[str, str | None]
    acceptance: dict[str, float | None]
    latency: dict[str, float | None]
    memory: dict[str, float | None]
    decision: str
    stop_use: tuple[str, ...] = ()


class Judgement(_Part, frozen=True, kw_only=True):
    """The verdict on a run and everything it rests on.

    Attributes:
        headline: One sentence for people: the verdict and its first reason.
        more_evidence: What to run next, question by question.
        tables: Extra tables of jobs, such as the tune grid.
    """

    schema: int = SCHEMA
    headline: str
    verdict: Verdict
    gates: tuple[GateResult, ...]
    evidence: Evidence
    provenance: Provenance
    worst: WorstSlice | None = None
    more_evidence: tuple[Evidenced, ...] = ()
    atrt: Atrt | None = None
    tables: dict[str, tuple[Row, ...]] = {}

    def gate(self, name: GateName) -> GateResult:
        """The result of one gate.

        Raises:
            KeyError: There is no such gate in this judgement.
        """
        for result in self.gates:
            if result.gate == name:
                return result
        raise KeyError(name)


def encode(judgement: Judgement) -> bytes:
    """``judgement.json``: sorted keys, two spaces, nine significant digits.

    Nine digits because the last bits of a logarithm depend on the processor; what is
    left is the same on every machine.
    """
    plain = _rounded(msgspec.to_builtins(judgement))
    return msgspec.json.format(msgspec.json.encode(plain, order="sorted"), indent=2)


def decode(body: bytes, *, path: Path | str | None = None) -> Judgement:
    """Read ``judgement.json``.

    Raises:
        StoredRunError: Not a judgement, or one of another schema.
    """
    try:
        return msgspec.json.decode(body, type=Judgement)
    except msgspec.DecodeError as error:
        place = f"{path}: " if path else ""
        raise StoredRunError(
            f"{place}not a judgement of this version: {error}",
            hint="run `routeproof judge RUN` again",
        ) from None


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
