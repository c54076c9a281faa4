"""Text without meaning, of a wanted length in tokens.

Every word below is one token (with the space in front of it) in the vocabularies of
GPT-2, Llama, Qwen, Mistral and SmolLM class tokenizers, so that ``n`` words come to
about ``n`` tokens without a tokenizer at hand. With a way to count (an engine's
``/tokenize``) ``fitted`` makes it exact.
"""

from collections.abc import Callable, Sequence

import numpy as np

WORDS = tuple(
    "time year people way day man thing woman life child world school state family "
    "student group country problem hand part place case week company system program "
    "question work government number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head "
    "house service friend father power hour game line end member law car city name "
    "team minute idea body information back parent face level office door health "
    "person art war history party result change morning reason research girl guy "
    "moment air teacher force education foot boy age policy music market sense plan "
    "college interest death experience effect use class control field development "
    "role light voice wife police mind price report decision son view relationship "
    "town road arm difference value building action season society tax director "
    "position player record paper space ground form event matter center couple site "
    "project activity star table need court oil situation cost industry figure street "
    "image phone data picture practice piece land product doctor wall patient worker "
    "news test movie north love support technology step baby computer type attention "
    "film tree source organization hair look century evidence window culture chance "
    "brother energy period course summer plant opportunity term letter condition "
    "choice rule south husband floor campaign material population call economy "
    "hospital church risk fire future bank west sport board subject officer rest "
    "behavior performance fight top goal second bed order author blood agency nature "
    "color store sound movement page race concern series language response animal "
    "factor decade article east artist scene stock career treatment approach size"
    .split()
)  # fmt: skip

CountTokens = Callable[[str], int]


def filler(n_words: int, key: Sequence[int]) -> str:
    """``n_words`` words drawn from ``key``, each with a space in front.

    The same key gives the same words, and a longer text begins with the shorter one.
    """
    rng = np.random.Generator(np.random.PCG64(list(key)))
    picked = (rng.random(max(n_words, 0)) * len(WORDS)).astype(np.int64)
    return "".join(f" {WORDS[i]}" for i in picked)


def prompt_of(
    n_tokens: int,
    *,
    key: Sequence[int],
    prefix: Sequence[int] = (),
    block_tokens: int = 512,
) -> str:
    """A prompt of about ``n_tokens`` tokens whose beginning others may share.

    Block ``b`` of ``prefix`` always has the same text (for one seed, ``key[0]``), so
    that prompts with equal leading ids are equal up to there. What the blocks do not
    cover is drawn from ``key`` alone.

    Args:
        n_tokens: Length wanted.
        key: Seed first, then what makes this prompt different from others.
        prefix: Block ids in order.
        block_tokens: Tokens per block.
    """
    parts = []
    left = n_tokens
    for block in prefix:
        if left <= 0:
            break
        parts.append(filler(min(block_tokens, left), (key[0], 1, block)))
        left -= block_tokens
    if left > 0:
        parts.append(filler(left, (key[0], 2, *key[1:])))
    return "".join(parts).lstrip()


def fitted(text: str, n_tokens: int, count: CountTokens, *, rounds: int = 8) -> str:
    """The text cut or lengthened at its end until it has ``n_tokens`` tokens.

    Words are taken off or put on by the difference still missing; the beginning,
    which others may share, stays. When ``rounds`` are used up, the nearest is
    returned.

    Args:
        text: Words separated by spaces.
        n_tokens: Tokens wanted, at least 1.
        count: Tokens of a text, from the tokenizer that will read it.
        rounds: Times ``count`` may be asked.
    """
    words = text.split()
    best, best_miss, step = text, None, 0
    for turn in range(rounds):
        candidate = " ".join(words)
        miss = n_tokens - count(candidate)
        if best_miss is None or abs(miss) < abs(best_miss):
            best, best_miss = candidate, miss
        if miss == 0:
            break
        # Overshot: words are not one token each here, go half the way back.
        step = miss if step * miss >= 0 else (miss // 2 or 1)
        if step < 0:
            words = words[: max(1, len(words) + step)]
        else:
            words += filler(step, (len(words), turn)).split()
    return best
