"""A JSON text with its long strings emptied: what a router reads of a long prompt.

A decoder steps over a prompt byte by byte, 250 KB in 0.1 to 0.2 ms; a search for the
quote that ends it takes a tenth of that, as long as few quotes stand in it.
"""

LONG_BYTES = 4 * 1024
QUOTE_EVERY_BYTES = 1024
"""With more quotes than one in so many bytes the search is given up."""

EMPTIED = b"\\u0000"
"""Stands, as JSON, in a string that was emptied."""

_BACKSLASH = ord("\\")


def skeleton(text: bytes) -> bytes | None:
    r"""The text with ``EMPTIED`` in every string above ``LONG_BYTES``.

    Of valid JSON it is valid JSON of the same shape. Of anything else it may be
    anything.

    Returns:
        ``None`` where it is given up: no long string, many quotes, or a quote after
        two backslashes, which may or may not be escaped.

    Example:
        >>> skeleton(b'{"a": "' + b"x" * 5_000 + b'", "b": 1}')
        b'{"a": "\\u0000", "b": 1}'
    """
    find = text.find
    kept: list[bytes] = []
    at, start, place, is_open = 0, 0, -1, False
    for _ in range(64 + len(text) // QUOTE_EVERY_BYTES):
        place = find(b'"', place + 1)
        if place < 0:
            return None if is_open or not kept else EMPTIED.join([*kept, text[at:]])
        if is_open and text[place - 1] == _BACKSLASH:
            if text[place - 2] == _BACKSLASH:
                return None
            continue
        if is_open and place - start > LONG_BYTES:
            kept.append(text[at : start + 1])
            at = place
        start, is_open = place, not is_open
    return None
