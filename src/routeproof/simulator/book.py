"""The script of a scripted route: which prompts it knows, and what to say to them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Said:
    """An answer.

    Attributes:
        calls: Tool calls as ``(name, arguments as JSON text)``.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a script knows of one prompt.

    Attributes:
        right: The answer that counts as right.
        wrong: Answers that count as wrong; one is chosen by the case, so that the
            same case goes wrong in the same way.
        reworded: An answer as right as ``right`` in other words; ``None`` when the
            form of the answer leaves no room for that.
    """

    class_: str
    right: Said
    wrong: tuple[Said, ...]
    reworded: Said | None = None


@dataclass(frozen=True, slots=True)
class Book:
    """Entries by ``prompt_key``."""

    entries: Mapping[str, Entry]

    def find(self, key: str) -> Entry | None:
        """The entry of a prompt, ``None`` when the script does not know it."""
        return self.entries.get(key)


EMPTY = Book({})
