"""Two runs of one proof laid side by side as if they were two arms."""

from dataclasses import replace

import numpy as np

from routeproof.jobs.gathering.gathered import Gathered
from routeproof.metrics.requests import Labels, Requests
from routeproof.records.columns import Column
from routeproof.scorers.scored import Scores, concatenate


def merged_requests(then: Requests, now: Requests, *, arm: str) -> Requests:
    """One arm of both runs: ``then`` becomes the baseline, ``now`` the candidate."""
    left, right = then.where(then.at(arm=arm)), now.where(now.at(arm=arm))
    numbers = {
        name: _columns(left.number(name), right.number(name))
        for name in {**left.numbers, **right.numbers}
    }
    labels = {
        name: _labels(left.label(name), right.label(name))
        for name in {**left.labels, **right.labels}
        if name != "arm"
    }
    codes = np.repeat(np.array([0, 1], dtype=np.int32), [left.n, right.n])
    labels["arm"] = Labels(codes, ("baseline", "candidate"))
    return Requests(n=left.n + right.n, numbers=numbers, labels=labels)


def _columns(left: Column, right: Column) -> Column:
    return Column(
        np.concatenate([left.values, right.values]),
        np.concatenate([left.known, right.known]),
    )


def _labels(left: Labels, right: Labels) -> Labels:
    names = list(dict.fromkeys([*left.names, *right.names]))
    place = {name: index for index, name in enumerate(names)}
    codes = [
        np.array([*(place[name] for name in side.names), -1], dtype=np.int32)[
            side.codes
        ]
        for side in (left, right)
    ]
    return Labels(np.concatenate(codes), tuple(names))


def merged_scores(then: Scores, now: Scores, *, arm: str) -> Scores:
    """Scores of one arm of both runs, as baseline (then) and candidate (now)."""
    return concatenate((_as(then, arm, "baseline"), _as(now, arm, "candidate")))


def _as(scores: Scores, arm: str, name: str) -> Scores:
    keep = np.flatnonzero(scores.arm == arm)
    columns = {
        column: getattr(scores, column)[keep]
        for column in scores.__slots__
        if column != "value"
    }
    value = Column(scores.value.values[keep], scores.value.known[keep])
    kept = Scores(**columns, value=value)
    return replace(kept, arm=np.full(keep.size, name, dtype=object))


def same_scorers(then: Gathered, now: Gathered) -> tuple[str, ...]:
    """Scorers whose version differs between the runs; empty is well."""
    if then.scores is None or now.scores is None:
        return ()
    versions = [
        dict(zip(s.scorer.tolist(), s.version.tolist(), strict=True))
        for s in (then.scores, now.scores)
    ]
    shared = sorted(versions[0].keys() & versions[1].keys())
    return tuple(name for name in shared if versions[0][name] != versions[1][name])
