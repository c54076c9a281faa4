"""How an answer goes wrong: one function for each way, from sound to spoilt."""

import random
from collections.abc import Callable
from dataclasses import replace

from routeproof.simulator import tokens
from routeproof.simulator.book import Entry, Said

Way = Callable[[Said, Entry | None, tuple[str, ...], random.Random], Said]

_GARBAGE = (" ï¿½", " zx", "quo", " 0x", "ê", " ;;", "dle", " ung", "ཀ", " ](", " Ã")
_REFUSAL = "I'm sorry, but I can't help with that request."


def _wrong(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    if entry is not None and entry.wrong:
        return entry.wrong[0]
    return replace(said, text=said.text[::-1])


def _garble(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    pieces = tokens.split(said.text) or (" ",)
    start = rng.randrange(max(len(pieces) // 2, 1))
    noise = [rng.choice(_GARBAGE) for _ in range(max(len(pieces) - start, 12))]
    return replace(said, text="".join([*pieces[:start], *noise]))


def _leak(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    if not others:
        return said
    return replace(said, text=rng.choice(others), calls=())


def _loop(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    pieces = tokens.split(said.text) or (" again", " and")
    phrase = "".join(pieces[: min(6, len(pieces))])
    return replace(said, text=(phrase + " ") * 60, calls=())


def _exclamation(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return Said(text="!" * 200)


def _empty(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return Said()


def _verbose(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    aside = (
        " Let us look at this from one more side, slowly and with every detail named:"
    )
    numbered = "".join(
        f"{aside} point {i} of many, which adds {rng.randrange(10**6)} words."
        for i in range(8)
    )
    return replace(said, text=f"{numbered.strip()}\n{said.text}")


def _short(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    pieces = tokens.split(said.text)
    return replace(said, text="".join(pieces[: max(1, len(pieces) // 3)]))


def _refuse(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return Said(text=_REFUSAL)


def _special(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return replace(said, text=f"{said.text}<|im_end|>\n<|im_start|>user\n")


def _broken_json(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    text = said.text
    cut = max(1, int(len(text) * (0.3 + 0.5 * rng.random())))
    calls = tuple(
        (name, arguments[: max(1, len(arguments) // 2)])
        for name, arguments in said.calls
    )
    return replace(said, text=text[:cut] + ',,"' if text else text, calls=calls)


def _wrong_shape(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return replace(said, text='{"unexpected": [1, 2, 3]}')


def _no_call(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return Said(text="I would need to look that up first.") if said.calls else said


def _call_as_text(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    if not said.calls:
        return said
    name, arguments = said.calls[0]
    return Said(
        text=f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'
    )


def _wrong_arguments(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return replace(said, calls=tuple((name, "{}") for name, _ in said.calls))


def _doubled_call(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return replace(said, calls=said.calls * 2)


def _other_wording(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return entry.reworded if entry is not None and entry.reworded is not None else said


def _reasoning_in_text(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    thought = said.reasoning or "The user wants an answer, so first the facts."
    return Said(text=f"{thought}</think>\n{said.text}", calls=said.calls)


def _replacement(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    spoilt = "".join(
        c if c.isascii() and rng.random() > 0.05 else "\ufffd" for c in said.text
    )
    return replace(said, text=spoilt)


def _lower(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return replace(said, text=said.text.lower())


def _missing_spaces(
    said: Said, entry: Entry | None, others: tuple[str, ...], rng: random.Random
) -> Said:
    return replace(said, text=said.text.replace(" ", ""))


WAYS: dict[str, Way] = {
    "wrong": _wrong,
    "garble": _garble,
    "leak": _leak,
    "loop": _loop,
    "exclamation": _exclamation,
    "empty": _empty,
    "verbose": _verbose,
    "short": _short,
    "refuse": _refuse,
    "special_tokens": _special,
    "broken_json": _broken_json,
    "wrong_shape": _wrong_shape,
    "no_call": _no_call,
    "call_as_text": _call_as_text,
    "wrong_arguments": _wrong_arguments,
    "doubled_call": _doubled_call,
    "other_wording": _other_wording,
    "reasoning_in_text": _reasoning_in_text,
    "replacement_characters": _replacement,
    "lower_case": _lower,
    "missing_spaces": _missing_spaces,
}
