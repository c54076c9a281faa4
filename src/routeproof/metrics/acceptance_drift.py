"""Acceptance now against a stored reference of the same workload."""

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec

from routeproof.errors import FormatError
from routeproof.metrics.acceptance import SCHEMA, AcceptanceCounts, derive

TOLERANCE = 0.05
"""Relative fall of the acceptance length that upstream test suites call a regression
(vLLM's DFlash tests take 2.5 to 5 %)."""


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Acceptance of a qualified route, kept for later.

    Attributes:
        workload: Fingerprint of the workload; another one cannot be compared.
        overall: Integers over all requests.
        slices: Name of a slice value, such as ``class=code``, to its integers.
    """

    workload: str
    overall: AcceptanceCounts
    slices: dict[str, AcceptanceCounts] = {}
    schema: str = SCHEMA


class Drift(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one number moved.

    Attributes:
        where: ``overall`` or the slice.
        change: Relative: now / then - 1.
        fell: Whether it fell by more than the tolerance, and by more than chance.
        z: Change over its standard error; ``None`` when it cannot be said.
    """

    where: str
    metric: str
    then: float
    now: float
    change: float
    z: float | None
    fell: bool


def drift(
    reference: Reference, now: Reference, *, tolerance: float = TOLERANCE
) -> tuple[Drift, ...]:
    """Tokens per pass and acceptance rate, overall and by slice, then and now.

    The standard error takes passes as independent draws of the accepted length, which
    they are within a text only roughly; ``fell`` therefore asks for 3 of them and for
    the tolerance.

    Raises:
        FormatError: The workloads differ.
    """
    if reference.workload != now.workload:
        raise FormatError(
            "the reference was made on another workload: "
            f"{reference.workload[:12]} and {now.workload[:12]}",
            hint="qualify the old version on this workload, or use the old cases",
        )
    pairs = {"overall": (reference.overall, now.overall)}
    pairs |= {
        name: (old, now.slices[name])
        for name, old in reference.slices.items()
        if name in now.slices
    }
    return tuple(
        found
        for where, (old, new) in pairs.items()
        for found in _moved(where, old, new, tolerance)
    )


def read_reference(path: Path) -> Reference:
    """A stored reference.

    Raises:
        FormatError: Not readable, or not of this schema.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Reference)
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror})", path=path) from None
    except msgspec.MsgspecError as error:
        raise FormatError(f"is no acceptance reference: {error}", path=path) from None
    if found.schema != SCHEMA:
        raise FormatError(f"has the schema {found.schema}, not {SCHEMA}", path=path)
    return found


def write_reference(path: Path, reference: Reference) -> None:
    """Keep a reference; the same content gives the same bytes."""
    text = msgspec.json.encode(reference, order="sorted")
    path.write_bytes(msgspec.json.format(text, indent=2) + b"\n")


def _moved(
    where: str, old: AcceptanceCounts, new: AcceptanceCounts, tolerance: float
) -> list[Drift]:
    out = []
    for metric, errors in (
        ("tokens_per_pass", (_error_of_pass(old), _error_of_pass(new))),
        ("acceptance_rate", (_error_of_rate(old), _error_of_rate(new))),
    ):
        then, now = (getattr(derive(each), metric) for each in (old, new))
        if then is None or now is None or then == 0:
            continue
        change = now / then - 1.0
        z = _z(now - then, errors)
        out.append(
            Drift(
                where=where,
                metric=metric,
                then=then,
                now=now,
                change=change,
                z=z,
                fell=change < -tolerance and z is not None and z < -3.0,
            )
        )
    return out


def _z(difference: float, errors: tuple[float | None, float | None]) -> float | None:
    one, other = errors
    if one is None or other is None:
        return None
    total = math.hypot(one, other)
    return difference / total if total > 0 else None


def _error_of_pass(counts: AcceptanceCounts) -> float | None:
    """Standard error of the mean drafts accepted in a pass."""
    hist, passes = counts.accepted_hist, counts.all_passes()
    if hist is not None and passes:
        n = max(sum(hist), passes)
        mean = sum(j * c for j, c in enumerate(hist)) / n
        square = sum(j * j * c for j, c in enumerate(hist)) / n
        return math.sqrt(max(square - mean * mean, 0.0) / n)
    if counts.accepted is None or not passes:
        return None
    # Without a histogram the widest a mean of that size can be: all or nothing.
    mean, most = counts.accepted / passes, float(counts.draft_tokens or 8)
    return math.sqrt(max(mean * (most - mean), 0.0) / passes)


def _error_of_rate(counts: AcceptanceCounts) -> float | None:
    passes = counts.spec_passes or counts.all_passes()
    rate = derive(counts).acceptance_rate
    if rate is None or not passes:
        return None
    # Drafts of one pass fall together, so passes and not drafts are counted.
    return math.sqrt(rate * (1.0 - rate) / passes)


def reference_of(
    workload: str, overall: AcceptanceCounts, slices: Mapping[str, AcceptanceCounts]
) -> Reference:
    """A reference from the integers of a profile."""
    return Reference(workload=workload, overall=overall, slices=dict(slices))
