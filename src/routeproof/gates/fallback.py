"""Request features that a candidate accepts and does badly: they go around it."""

from collections.abc import Iterable

from routeproof.gates.facts import QualityRow

SIGNS: dict[str, tuple[str, ...]] = {
    "json_schema": ("schema", "json"),
    "tools": ("tool",),
}
"""Feature to the words by which a metric or a slice is about it."""


def broken_features(rows: Iterable[QualityRow]) -> tuple[str, ...]:
    """Features whose quality questions show harm, in the order of `SIGNS`.

    A speculative route may keep its answers and break what a grammar or a parser sees
    of them; requests that need either then belong on the route that does not
    speculate, whatever the rest of the verdict.
    """
    harmed = [
        row
        for row in rows
        if row.answer is not None and row.answer.decision == "harmed"
    ]
    return tuple(
        feature
        for feature, words in SIGNS.items()
        if any(_is_about(row, feature, words) for row in harmed)
    )


def _is_about(row: QualityRow, feature: str, words: tuple[str, ...]) -> bool:
    if row.slice.get("structured") == "yes" and feature == "json_schema":
        return True
    named = f"{row.metric} {row.slice.get('class', '')}"
    return any(word in named for word in words)
