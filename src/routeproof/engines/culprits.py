"""Which of several requests ended an engine: each is put to it alone again."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

MOST_REVIVALS = 4
"""How often an engine is started anew before the rest is left untried."""


@dataclass(frozen=True, slots=True)
class Mortal:
    """An engine that requests may end, and that can be started anew.

    Attributes:
        ask: Put the request of this name to it.
        stands: Whether it still answers a plain request.
        revive: Start it anew and wait until it answers.
    """

    ask: Callable[[str], Awaitable[None]]
    stands: Callable[[], Awaitable[bool]]
    revive: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Culprits:
    """What came of asking again.

    Attributes:
        end: Those after which the engine answered nothing any more, each alone.
        together: Those that were under way when it ended and did not end it again:
            only beside each other, or not every time.
        untried: Those left out after `MOST_REVIVALS`.
    """

    end: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()


async def culprits(
    suspects: Sequence[str], engine: Mortal, *, at_once: int
) -> Culprits:
    """Tell them apart; the engine is down at the call and stands after it.

    Args:
        suspects: Names of the requests that failed, the first to fail first.
        engine: What they were put to.
        at_once: How many were under way at a time: so many of the first may have
            ended it.

    Raises:
        EngineError: It does not come up again.
    """
    end: list[str] = []
    untried: tuple[str, ...] = ()
    await engine.revive()
    for place, name in enumerate(suspects):
        await engine.ask(name)
        if await engine.stands():
            continue
        end.append(name)
        await engine.revive()
        if len(end) == MOST_REVIVALS:
            untried = tuple(suspects[place + 1 :])
            break
    together = () if end else tuple(suspects[:at_once])
    return Culprits(tuple(end), together, untried)
