"""Repeatable draws: a number in [0, 1) from the names of what is drawn.

The same names give the same number in every process, so that two simulated routes can
share the cases they fail on, and a run can be repeated request by request.
"""

import hashlib
import random


def unit(*names: object) -> float:
    """A number in [0, 1), uniform over names, always the same for the same names."""
    return int.from_bytes(_digest(names)[:7]) / (1 << 56)


def generator(*names: object) -> random.Random:
    """A generator seeded by names."""
    return random.Random(int.from_bytes(_digest(names)[:8]))


def _digest(names: tuple[object, ...]) -> bytes:
    text = "\x1f".join(map(str, names))
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
