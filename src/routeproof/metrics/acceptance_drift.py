"""Acceptance now against a stored reference of the same workload."""

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from routeproof.errors import FormatError
from routeproof.metrics.acceptance import SCHEMA, AcceptanceCounts, derive

TOLERANCE = 0.05
"""Relative fall of the acceptance length that upstream test suites call a regression
(vLLM's DFlash tests take 2.5 to 5 %)."""

FEWEST_PAIRS = 10
"""Cases below which pairing them says nothing."""

MOST_ERRORS = 99.0
"""Largest number of standard errors that is written down."""


class CaseCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sums over the requests of one case; ``None`` is unknown.

    Attributes:
        slice: The slice it belongs to, such as ``class=code``.
        decoded: Output tokens after the first of each request.
        passes: Decode passes, with a draft and without.
    """

    slice: str
    decoded: int | None = None
    passes: int | None = None
    drafted: int | None = None
    accepted: int | None = None


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Acceptance of a qualified route, kept for later.

    Attributes:
        workload: Fingerprint of the workload; another one cannot be compared.
        overall: Integers over all requests.
        slices: Name of a slice value, such as ``class=code``, to its integers.
        cases: By case, so that the same prompts are held against each other.
        run: Which run it is of, for people.
    """

    workload: str
    overall: AcceptanceCounts
    slices: dict[str, AcceptanceCounts] = {}
    cases: dict[str, CaseCounts] = {}
    run: str | None = None
    schema: str = SCHEMA


class Drift(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one number moved.

    Attributes:
        where: ``overall`` or the slice.
        change: Relative: now / then - 1.
        fell: Whether it fell by more than the tolerance, and by more than chance.
        z: Change over its standard error; ``None`` when it cannot be said.
        pairs: Cases paired for ``z``; 0 when passes were taken as independent draws.
    """

    where: str
    metric: str
    then: float
    now: float
    change: float
    z: float | None
    fell: bool
    pairs: int = 0


def drift(
    reference: Reference, now: Reference, *, tolerance: float = TOLERANCE
) -> tuple[Drift, ...]:
    """Tokens per pass and acceptance rate, overall and by slice, then and now.

    Tokens per pass are paired by case where both sides kept their cases: the standard
    error is that of the logarithm of the ratio, linearised over cases. Otherwise
    passes are taken as independent draws of the accepted length, which within a text
    they are only roughly. ``fell`` asks for 3 standard errors and for the tolerance.

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
        _paired(found, reference, now, tolerance)
        for where, (old, new) in pairs.items()
        for found in _moved(where, old, new, tolerance)
    )


RATIOS = {
    "tokens_per_pass": ("decoded", "passes"),
    "acceptance_rate": ("accepted", "drafted"),
}
"""Metric to the sums of a case that it is a ratio of."""


def _paired(
    found: Drift, reference: Reference, now: Reference, tolerance: float
) -> Drift:
    """The same row with its certainty from the cases both sides have."""
    above, below = RATIOS[found.metric]
    pairs = [
        (getattr(then, above), getattr(then, below), getattr(after, above),
         getattr(after, below))
        for name, then in reference.cases.items()
        if (after := now.cases.get(name)) is not None
        and found.where in ("overall", then.slice)
    ]  # fmt: skip
    usable = [row for row in pairs if None not in row and row[1] and row[3]]
    if len(usable) < FEWEST_PAIRS:
        return found
    table = np.array(usable, dtype=np.float64)
    (t0, p0, t1, p1), n = table.sum(axis=0).tolist(), len(usable)
    if min(t0, t1) <= 0:
        return found
    # Influence of a case on log(t1 / p1) - log(t0 / p0).
    each = table[:, 2] / t1 - table[:, 3] / p1 - table[:, 0] / t0 + table[:, 1] / p0
    error = float(np.sqrt((each**2).sum() * n / (n - 1)))
    shift = math.log(t1 / p1) - math.log(t0 / p0)
    # Where every case moved alike there is no chance in the shift.
    z = 0.0 if abs(shift) < 1e-12 else shift / max(error, abs(shift) / MOST_ERRORS)
    fell = found.change < -tolerance and z < -3.0
    return msgspec.structs.replace(found, z=z, fell=fell, pairs=n)


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
