"""What ``routeproof init`` asks a person, and why each answer matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from routeproof.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Question:
    """One choice of a first proof file.

    Attributes:
        option: The option that answers it without asking.
        words: What is asked.
        why: What the answer decides, in a sentence or two.
        default: What is taken when nobody is asked; ``None``: it must be given.
        read: Text to value; raises ``ValueError`` with what is wrong.
    """

    option: str
    words: str
    why: str
    default: Any
    read: Callable[[str], Any]


def share(text: str) -> float:
    """A loss in points (``2``) or as a share (``0.02``)."""
    value = _number(text.rstrip("% "))
    value = value / 100 if value >= 1 or text.rstrip().endswith("%") else value
    if not 0 <= value < 1:
        raise ValueError("a loss lies between 0 and 100 points")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"`{text}` is not a number") from None


def whole(text: str) -> int:
    """A count from 1 up."""
    if not text.isdecimal() or text == "0":
        raise ValueError(f"`{text}` is not a count")
    return int(text)


def names(text: str) -> tuple[str, ...]:
    """Words between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def temperature(text: str) -> float:
    """A temperature from 0 up."""
    value = _number(text)
    if value < 0:
        raise ValueError("a temperature is 0 or more")
    return value


CASES = Question(
    option="--cases",
    words="Cases",
    why="`golden` is 376 small cases that ship with routeproof. Your own traffic says "
    "more: a JSON Lines file, or several with commas.",
    default=("golden",),
    read=names,
)
TOLERANCE = Question(
    option="--tolerance",
    words="Loss you can live with, in points",
    why="Agreed before the run. To exclude a loss of 2 points takes 149 cases, of 1 "
    "point 299, even when no answer differs.",
    default=0.02,
    read=share,
)
TEMPERATURE = Question(
    option="--temperature",
    words="Temperature",
    why="0 compares texts word for word and needs the fewest cases. Take your "
    "product's own where sampling is what you test.",
    default=0.0,
    read=temperature,
)
TRIALS = Question(
    option="--trials",
    words="Answers per case",
    why="Above temperature 0 one answer is an anecdote; 4 is a start.",
    default=4,
    read=whole,
)


def answer(question: Question, given: Any, *, asking: bool) -> Any:
    """The given value, or the default, or what the person at the terminal says.

    Raises:
        ConfigError: A given text cannot be read.
    """
    if given not in (None, ()):
        return _read(question, given) if isinstance(given, str) else given
    if not asking:
        return question.default
    explain(question.why)
    shown = _shown(question.default)
    while True:
        text = click.prompt(question.words, default=shown, err=True)
        try:
            return question.read(text)
        except ValueError as error:
            click.echo(f"  {error}", err=True)


def _read(question: Question, text: str) -> Any:
    try:
        return question.read(text)
    except ValueError as error:
        raise ConfigError(
            f"{question.option} {text}: {error}", hint=question.why
        ) from None


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ", ".join(default)
    return f"{100 * default:g}" if default == TOLERANCE.default else f"{default:g}"


def explain(text: str) -> None:
    """A sentence on stderr, set apart and wrapped."""
    click.echo("", err=True)
    click.echo(click.wrap_text(text, width=78), err=True)


def choose(changes: dict[str, str], suggested: Sequence[str]) -> str:
    """Ask which route fields are under test, each with what it stands for."""
    explain(
        "What is being tested? Everything else must be equal on both routes, or the "
        "run stops."
    )
    width = max(map(len, changes))
    for name, what in changes.items():
        click.echo(f"  {name:<{width}}  {what}", err=True)
    if suggested:
        click.echo(f"The endpoints differ in: {', '.join(suggested)}", err=True)
    default = ",".join(suggested) or None
    text: str = click.prompt("Changes, with commas", default=default, err=True)
    return text
