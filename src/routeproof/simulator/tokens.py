"""A toy tokenizer: cheap, deterministic, and exact in one way: pieces join to the text.

It stands for a byte-pair tokenizer in the two properties the simulator needs: words
begin with their space, and long words break into several tokens.
"""

import re
import zlib
from functools import lru_cache

VOCABULARY_SIZE = 49_152
_PIECE = re.compile(
    r" ?[^\W\d_]{1,7}|\d{1,3}| ?[^\w\s]|\s+?(?= \S)|\s+|_+|.", re.DOTALL
)


REMEMBERED_CHARACTERS = 2000
"""Longer texts are split each time they come, so that memory stays small."""


def split(text: str) -> tuple[str, ...]:
    """Tokens of a text, in order; ``"".join(split(text)) == text``."""
    if len(text) > REMEMBERED_CHARACTERS:
        return tuple(_PIECE.findall(text))
    return _split(text)


@lru_cache(maxsize=8192)
def _split(text: str) -> tuple[str, ...]:
    return tuple(_PIECE.findall(text))


@lru_cache(maxsize=65_536)
def token_id(token: str) -> int:
    """A stable id in ``[0, VOCABULARY_SIZE)``; different tokens may share one."""
    return zlib.crc32(token.encode()) % VOCABULARY_SIZE
