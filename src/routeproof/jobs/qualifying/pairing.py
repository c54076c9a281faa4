"""Writing the pairing lock of a target and a draft that passed together."""

from pathlib import Path

from routeproof.errors import ConfigError
from routeproof.reports.judgement import Judgement
from routeproof.routes.lock import PairingLock, lock_of, write_lock
from routeproof.verdict import Decision

PASSES = frozenset({Decision.ADOPT, Decision.PILOT})
"""Verdicts after which a pair may be locked."""


def pairing_of(judgement: Judgement) -> PairingLock | None:
    """The lock of the judged candidate.

    Returns:
        ``None`` when it did not pass, or has no draft model to be paired with.
    """
    routes = judgement.evidence.routes
    if routes is None or judgement.verdict.decision not in PASSES:
        return None
    told = judgement.provenance
    when = told.started_at or "an unknown time"
    return lock_of(routes.candidate, qualified=f"{told.run_id}, {when}")


def lock_pairing(judgement: Judgement, path: Path) -> PairingLock:
    """Write the lock of the judged candidate.

    Raises:
        ConfigError: It did not pass, it has no draft model, or the file cannot be
            written.
    """
    lock = pairing_of(judgement)
    if lock is None:
        decision = judgement.verdict.decision
        why = (
            "the candidate has no draft model to be paired with"
            if decision in PASSES
            else f"the verdict is {decision.replace('_', ' ')}: nothing is locked"
        )
        raise ConfigError(why, key="--lock", hint="a lock keeps a pair that passed")
    write_lock(path, lock)
    return lock
