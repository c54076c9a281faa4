"""What a drill of the way back showed, and how a proof comes to know of it."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from routeproof.errors import ConfigError, StoredRunError
from routeproof.proof.proof import Proof

How = Literal["trigger", "fault"]
KEPT_NAME = "drill.json"
LIMIT_S = 2.0
"""From the trigger to the last candidate byte, and to an observed share of 0; slower
is no way back."""


class Drilled(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The evidence of one drill.

    Attributes:
        how: ``trigger``, an operator's rollback, or ``fault``, errors put before the
            candidate until the canary went back by itself.
        at_s: Unix seconds.
        reason: Why the canary went back, in the words of its audit.
        candidate_before, candidate_after: Requests the candidate got before the
            trigger was pulled, and after the canary had gone back.
        requests_before, requests_after: Requests in all, the same way.
        failed_after: Requests not answered properly after it had gone back.
        to_last_byte_s: Trigger to last candidate byte; ``None`` when it never ended.
        to_share_zero_s: Trigger to the first look at which the candidate served no
            request, running or begun within the last second; ``None`` when there was
            none.
        audit: What the audit of the drill holds, in order.
    """

    canary: str
    how: How
    at_s: float
    candidate_digest: str
    reason: str
    requests_before: int
    candidate_before: int
    requests_after: int
    candidate_after: int
    failed_after: int
    to_last_byte_s: float | None
    to_share_zero_s: float | None = None
    audit: tuple[str, ...] = ()

    def problem(self) -> str | None:
        """Why this shows no way back, or ``None``."""
        if self.candidate_before == 0:
            return "the candidate got no request, so nothing was taken back"
        if self.to_last_byte_s is None:
            return "the canary did not go back in time"
        if self.candidate_after:
            return f"the candidate still got {self.candidate_after} requests"
        if self.failed_after:
            return f"{self.failed_after} requests failed after it had gone back"
        if self.to_last_byte_s > LIMIT_S:
            return f"the last candidate byte came {self.to_last_byte_s:.2f} s later"
        if self.to_share_zero_s is None:
            return "the observed share of the candidate was never seen at 0"
        if self.to_share_zero_s > LIMIT_S:
            return f"the observed share was 0 only {self.to_share_zero_s:.2f} s later"
        return None

    def in_words(self) -> str:
        """One line for the proof and its reports; ``failed: ...`` when it failed."""
        problem = self.problem()
        if problem is not None:
            return f"failed: {problem}"
        day = datetime.fromtimestamp(self.at_s, UTC).date().isoformat()
        return (
            f"{day} by {self.how}: 0 of {self.requests_after} requests reached the "
            f"candidate afterwards, its last byte came {self.to_last_byte_s:.2f} s "
            f"and an observed share of 0 {self.to_share_zero_s:.2f} s after the trigger"
        )


def keep_drill(proof: Proof, base: Path, folder: Path) -> None:
    """Copy the evidence a proof points to into the folder of its run.

    Raises:
        ConfigError: ``rollback.drilled`` names a file that is not there.
    """
    named = proof.rollback.drilled
    if named is None or not named.endswith(".json"):
        return
    try:
        shutil.copyfile(base / named, folder / KEPT_NAME)
    except OSError as error:
        raise ConfigError(
            f"the evidence {base / named} cannot be read: {error.strerror}",
            key="rollback.drilled",
            hint="make it with `routeproof canary drill`, or leave the key out",
        ) from None


def with_drill(proof: Proof, folder: Path) -> Proof:
    """The proof with the kept evidence in words in place of the file's name.

    Raises:
        StoredRunError: The kept evidence is damaged.
    """
    named = proof.rollback.drilled
    if named is None or not named.endswith(".json"):
        return proof
    try:
        found = msgspec.json.decode((folder / KEPT_NAME).read_bytes(), type=Drilled)
    except (OSError, msgspec.DecodeError) as error:
        raise StoredRunError(
            f"the drill evidence {folder / KEPT_NAME} cannot be read: {error}",
            hint="drill again, or remove `rollback.drilled` from the proof",
        ) from None
    rollback = msgspec.structs.replace(proof.rollback, drilled=found.in_words())
    return msgspec.structs.replace(proof, rollback=rollback)
