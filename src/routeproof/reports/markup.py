"""Markdown pieces: words from outside stay words."""

from collections.abc import Iterable, Iterator, Sequence

_ESCAPED = {ord(c): f"\\{c}" for c in "\\`*_[]|~#@"} | {
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("&"): "&amp;",
    ord("\n"): " ",
    ord("\r"): " ",
}


def words(text: str) -> str:
    r"""Text without effect as Markdown: no markup, no mention, no line break.

    Example:
        >>> words("a|b <i>")
        'a\\|b &lt;i&gt;'
    """
    return text.translate(_ESCAPED)


def code(text: str) -> str:
    """Text for inside single backticks."""
    return text.replace("`", "'").replace("\n", " ").replace("\r", " ")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, with an empty line after it."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(words(cell) for cell in row)} |"
    yield ""


def fenced(text: str, *, most: int) -> Iterator[str]:
    """Up to ``most`` characters as a code block that the text itself cannot close."""
    cut = text[:most] + ("…" if len(text) > most else "")
    fence = "```"
    while fence in cut:
        fence += "`"
    yield from (f"{fence}text", cut, fence, "")
