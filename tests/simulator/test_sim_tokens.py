"""The toy tokenizer loses nothing and is the same everywhere."""

from hypothesis import given, settings
from hypothesis import strategies as st

from routeproof.simulator import draws, tokens
from routeproof.simulator.ask import prompt_key


@given(st.text(max_size=400))
@settings(max_examples=60, deadline=None)
def test_the_tokens_of_a_text_join_to_it(text):
    assert "".join(tokens.split(text)) == text
    assert "".join(tokens.split(text * 40)) == text * 40


def test_long_words_break_and_short_ones_keep_their_space():
    assert tokens.split("a river extraordinarily") == (
        "a",
        " river",
        " extraor",
        "dinaril",
        "y",
    )


def test_draws_are_the_same_in_every_process():
    assert round(draws.unit("case", 1), 6) == round(draws.unit("case", 1), 6)
    assert 0.4 < sum(draws.unit("x", i) for i in range(500)) / 500 < 0.6


def test_a_mark_against_the_cache_does_not_make_another_prompt():
    plain = [{"role": "user", "content": "Which colour?"}]
    marked = [{"role": "user", "content": "[0f3a91c2] Which colour?"}]
    listed = [{"role": "system", "content": "[0f3a91c2]"}, *plain]
    assert prompt_key(plain) == prompt_key(marked) == prompt_key(listed)
    assert (
        prompt_key(None, "x")
        == prompt_key(None, "[0f3a91c2] x")
        != prompt_key(None, "y")
    )
