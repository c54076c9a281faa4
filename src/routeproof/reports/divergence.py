"""Two answers side by side, split where they first differ."""

from dataclasses import dataclass

from routeproof.gates.facts import Flip

CONTEXT_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class Split:
    """One answer around the first difference.

    Attributes:
        same: What both answers begin with (its end, when it is long).
        is_cut: Whether the beginning of ``same`` was left out.
        first: The first word that differs; empty when this answer ends there.
        rest: What follows.
    """

    same: str
    is_cut: bool
    first: str
    rest: str


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A flip ready to be shown."""

    flip: Flip
    baseline: Split
    candidate: Split


def side_by_side(flip: Flip) -> SideBySide:
    """Split both answers of a flip at its first divergence."""
    at = flip.first_divergence
    if at is None:
        at = min(len(flip.baseline_text), len(flip.candidate_text))
    at = _word_start(flip.baseline_text, at)
    return SideBySide(
        flip=flip,
        baseline=_split(flip.baseline_text, at),
        candidate=_split(flip.candidate_text, at),
    )


def _word_start(text: str, at: int) -> int:
    """The start of the word that holds ``at``, so that whole words are marked."""
    while 0 < at <= len(text) and not text[at - 1].isspace():
        at -= 1
    return at


def _split(text: str, at: int) -> Split:
    end = at
    while end < len(text) and text[end].isspace():
        end += 1
    while end < len(text) and not text[end].isspace():
        end += 1
    start = max(0, at - CONTEXT_CHARACTERS)
    return Split(
        same=text[start:at], is_cut=start > 0, first=text[at:end], rest=text[end:]
    )
