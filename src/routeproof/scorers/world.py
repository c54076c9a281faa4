"""The scorers that need the world, opened only when a case names one."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from routeproof.scorers.answered import unscored
from routeproof.scorers.code import CodeScorer
from routeproof.scorers.judge.claims import ClaimsJudge
from routeproof.scorers.judge.question import Ask
from routeproof.scorers.sandbox.tiers import Tier
from routeproof.scorers.score import Score, ScoredAnswer
from routeproof.scorers.scored import BatchScorer
from routeproof.workloads.case import Case


@contextmanager
def batch_scorers(
    cases: Iterable[Case],
    *,
    ask: Ask | None = None,
    seed: int = 0,
    tier: Tier | None = None,
    workers: int = 0,
) -> Iterator[dict[str, BatchScorer]]:
    """Batch scorers for ``score_records``: ``code``, ``groundedness``, ``factuality``.

    Args:
        cases: Only what they name is opened; a sandbox costs a second.
        ask: The judge; without one its scorers leave every answer ``unscored``.
        seed: Shuffles the order in which the judge is asked.
        tier: Of the sandbox; ``None`` for the strongest that holds.
        workers: Programs at a time; the CPUs of this process when 0.

    Raises:
        ConfigError: A case names ``code`` and no sandbox tier holds here.
    """
    named = {name for case in cases for name in case.scorers}
    found: dict[str, BatchScorer] = {}
    with ExitStack() as opened:
        if "code" in named:
            found["code"] = opened.enter_context(CodeScorer(tier=tier, workers=workers))
        if "groundedness" in named:
            found["groundedness"] = _claims("groundedness", ask, seed)
        if "factuality" in named:
            found["factuality"] = _claims("factuality", ask, seed)
        yield found


def _claims(kind: str, ask: Ask | None, seed: int) -> BatchScorer:
    if ask is None:
        return _no_judge
    if kind == "groundedness":
        return ClaimsJudge("groundedness", ask, seed=seed)
    return ClaimsJudge("factuality", ask, seed=seed)


def _no_judge(asked: Sequence[tuple[Case, ScoredAnswer]]) -> list[Score]:
    return [unscored("no judge is configured") for _ in asked]
