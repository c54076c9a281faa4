"""Which arm serves a key: integer buckets of a keyed hash, monotonic in the weight.

The hash space ``[0, 2**64)`` is cut from both ends: the candidate owns
``[0, w)``, its matched control ``[2**64 - w', 2**64)`` with the same width, and what
lies between goes straight to the baseline. Raising the weight moves only keys from
the middle to the ends, so nobody who had the candidate loses it, and a key never
changes arm between replicas or restarts.
"""

import hashlib
from functools import lru_cache
from typing import Literal

ALGO_VERSION = 1
"""Raised when the same (salt, key) could land elsewhere; stored with every split."""

SPACE = 1 << 64
PPM = 1_000_000

LiveArm = Literal["baseline", "control", "canary"]


def bucket(key: str, *, salt: str) -> int:
    """The place of a key in ``[0, 2**64)``.

    The first 8 bytes of BLAKE2b over the key, personalised by the salt, read
    big-endian. Every byte of the key counts; lone surrogates are kept apart.
    """
    digest = hashlib.blake2b(
        key.encode("utf-8", "surrogatepass"), digest_size=8, person=_person(salt)
    )
    return int.from_bytes(digest.digest(), "big")


@lru_cache(maxsize=16)
def _person(salt: str) -> bytes:
    """A salt as BLAKE2b takes it: 16 bytes, whatever its length."""
    named = hashlib.blake2b(salt.encode("utf-8", "surrogatepass"), digest_size=16)
    return named.digest()


def width(weight_ppm: int) -> int:
    """How many of the ``2**64`` places a weight in parts per million owns.

    Raises:
        ValueError: The weight is outside 0 to 1,000,000.
    """
    if not 0 <= weight_ppm <= PPM:
        raise ValueError(f"weight {weight_ppm} ppm is outside 0 to {PPM}")
    return SPACE * weight_ppm // PPM


def assign(key: str, *, salt: str, weight_ppm: int) -> LiveArm:
    """The arm of a key at a candidate weight.

    The control is as wide as the candidate while both fit; above one half it gets
    what the candidate leaves.
    """
    place = bucket(key, salt=salt)
    canary = width(weight_ppm)
    control = min(canary, SPACE - canary)
    if place < canary:
        return "canary"
    return "control" if place >= SPACE - control else "baseline"


def canary_share_of_samples(weight_ppm: int) -> float:
    """The candidate's expected share among the samples of candidate and control.

    One half while a control of its size fits beside it.

    Example:
        >>> canary_share_of_samples(50_000), canary_share_of_samples(750_000)
        (0.5, 0.75)
    """
    control = min(weight_ppm, PPM - weight_ppm)
    return weight_ppm / (weight_ppm + control) if control else 0.5


def is_sampled(request_id: str, *, salt: str, share_ppm: int) -> bool:
    """True when the answer to this request is sampled for scoring.

    Deterministic by request id and independent of the arm (another salt space).
    """
    return bucket(request_id, salt=f"sample:{salt}") < width(share_ppm)
