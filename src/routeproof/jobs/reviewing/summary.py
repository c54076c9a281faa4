"""What the labels of a review amount to, and what they say of the judge."""

from dataclasses import dataclass

from routeproof.jobs.reviewing.people import POINTS, between, judge_against
from routeproof.jobs.reviewing.session import Review
from routeproof.scorers.judge.agreement import Calibration
from routeproof.scorers.label_files import majority
from routeproof.scorers.score_columns import Scores


@dataclass(frozen=True, slots=True)
class ReviewSummary:
    """Labels of a review, folded.

    Attributes:
        items: Shown.
        labelled: Items with a majority.
        counts: Of each label, skips apart.
        preference: Mean points of the candidate; ``None`` without labels, or when
            single answers were judged.
        right_share: Share of right answers by arm, where single answers were judged.
        reviewers: Agreement of each two people who saw the same items.
        judge: The judge model held against the people; ``None`` without one.
    """

    items: int
    labelled: int
    counts: dict[str, int]
    preference: float | None
    right_share: dict[str, float]
    reviewers: tuple[Calibration, ...]
    judge: Calibration | None

    def lines(self) -> list[str]:
        """What is printed."""
        said = ", ".join(f"{count} {label}" for label, count in self.counts.items())
        told = [f"{self.labelled} of {self.items} items labelled ({said or 'none'})"]
        if self.preference is not None:
            told.append(f"mean preference for the candidate {self.preference:.3f}")
        told += [f"{arm}: {share:.1%} right" for arm, share in self.right_share.items()]
        told += [one.line() for one in self.reviewers]
        return [*told, self.judge.line()] if self.judge else told


def summarise(review: Review, scores: Scores | None = None) -> ReviewSummary:
    """Fold the labels of a review.

    Args:
        review: The session, with the labels of every reviewer.
        scores: Of the run; where they hold a judge's preferences, that judge is held
            against the people.
    """
    own = [one for one in review.labels if one.question == review.question]
    won = majority(own, review.question)
    counts = {
        label: list(won.values()).count(label) for label in sorted(set(won.values()))
    }
    points = [POINTS[label] for label in won.values() if label in POINTS]
    is_pairs = review.question == "preference"
    return ReviewSummary(
        items=len(review.items),
        labelled=len(won),
        counts=counts,
        preference=sum(points) / len(points) if points and is_pairs else None,
        right_share={} if is_pairs else _right_share(review, won),
        reviewers=between(own),
        judge=_judge(review, won, scores) if is_pairs and scores is not None else None,
    )


def _right_share(review: Review, won: dict[str, str]) -> dict[str, float]:
    by_arm: dict[str, list[bool]] = {}
    for item in review.items:
        if item.item_id in won:
            by_arm.setdefault(item.left_arm, []).append(won[item.item_id] == "right")
    return {arm: sum(said) / len(said) for arm, said in sorted(by_arm.items())}


def _judge(review: Review, won: dict[str, str], scores: Scores) -> Calibration | None:
    items = {item.item_id: item for item in review.items}
    return judge_against(scores, "preference", won, items)
