"""Chunks that are text alone: told by decoding, cut out where one is like another.

A template is what stands before and after the text of a chunk, proved by decoding it
twice, with two texts. Nothing is guessed: what does not fit is decoded.
"""

import re
from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

_TRIED = 4
"""Chunks of a batch that are looked at for a template."""

_KEYS = tuple(
    f'"{name}":{space}"'.encode()
    for name in ("content", "text", "reasoning_content", "reasoning")
    for space in ("", " ")
)
_NOT_PLAIN = re.compile(rb'["\\\x00-\x09\x0b-\x1f]')
"""Bytes that may not stand in a JSON string as they are, but for LF, which joins."""


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    text: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    text: str | None = None
    index: int | None = None
    finish_reason: Any = None
    logprobs: Any = None
    token_ids: Any = None
    message: Any = None
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: Any = None
    error: Any = None
    object: Any = None


_decode_batch = msgspec.json.Decoder(list[_Chunk]).decode
_decode_one = msgspec.json.Decoder(_Chunk).decode
_decode_text = msgspec.json.Decoder(str).decode


class Text(NamedTuple):
    """What a chunk of text says.

    Attributes:
        is_visible: Text rather than reasoning.
    """

    text: str
    is_visible: bool


class Template(NamedTuple):
    """What stands before and after the text of a chunk, and which kind it is."""

    before: bytes
    after: bytes
    is_visible: bool


def template_of(payloads: Sequence[bytes]) -> Template | None:
    """From the first chunk that is just text, proved by one more of its kind."""
    for payload in payloads[:_TRIED]:
        for key in _KEYS:
            start = payload.find(key) + len(key)
            end = payload.find(b'"', start)
            if start < len(key) or end <= start:
                continue
            found = _proved(payload[:start], payload[start:end], payload[end:])
            if found is not None:
                return found
    return None


def _proved(before: bytes, text: bytes, after: bytes) -> Template | None:
    """A template, if the text of the chunk is what stands between."""
    if _NOT_PLAIN.search(text) or b"\n" in text:
        return None
    try:
        same = _text_alone(_decode_one(before + text + after))
        more = _text_alone(_decode_one(before + b"~" + text + after))
        if same is None or more is None or same.text != text.decode():
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_text = more == (f"~{same.text}", same.is_visible)
    return Template(before, after, same.is_visible) if is_text else None


def all_texts(payloads: Sequence[bytes], template: Template) -> list[str] | None:
    """Texts of events that all differ from the template in their text alone.

    ``None`` when it is not so: a text that hides another chunk has a quote in it.
    """
    before, after, _ = template
    if (
        not payloads
        or min(map(len, payloads)) <= len(before) + len(after)
        or not all(map(bytes.startswith, payloads, repeat(before)))
        or not all(map(bytes.endswith, payloads, repeat(after)))
    ):
        return None
    cut = list(map(itemgetter(slice(len(before), -len(after))), payloads))
    joined = b"\n".join(cut)
    try:
        if _NOT_PLAIN.search(joined):
            # Between the quotes of the template stands one JSON string, or an error.
            return [_decode_text(b'"%b"' % text) for text in cut]
        texts = joined.decode().split("\n")
    except (UnicodeDecodeError, msgspec.DecodeError):
        return None
    return texts if len(texts) == len(payloads) else None


def each_text(
    payloads: Sequence[bytes], template: Template | None
) -> list[Text | None]:
    """What each event says if it is text alone: cut out where that is safe."""
    texts = [None if template is None else _cut(one, template) for one in payloads]
    others = [one for one, text in zip(payloads, texts, strict=True) if text is None]
    if not others:
        return texts
    decoded = map(_text_alone, _decoded(others))
    return [next(decoded) if text is None else text for text in texts]


def _cut(payload: bytes, template: Template) -> Text | None:
    before, after, is_visible = template
    start, end = len(before), len(payload) - len(after)
    if (
        end <= start
        or not payload.startswith(before)
        or not payload.endswith(after)
        or _NOT_PLAIN.search(payload, start, end)
    ):
        return None
    try:
        return Text(payload[start:end].decode(), is_visible)
    except UnicodeDecodeError:
        return None


def _text_alone(chunk: _Chunk | None) -> Text | None:
    """The text of a chunk that is text, or reasoning, of choice 0 and nothing else."""
    if chunk is None or len(chunk.choices) != 1:
        return None
    choice = chunk.choices[0]
    is_alone = (
        choice.finish_reason
        is choice.logprobs
        is choice.token_ids
        is choice.message
        is choice.content
        is choice.reasoning_content
        is choice.reasoning
        is choice.tool_calls
        is choice.function_call
        is choice.refusal
        is chunk.usage
        is chunk.error
        is None
    )
    if not is_alone or choice.index or chunk.object == "error":
        return None
    delta = choice.delta
    if delta is None:
        return Text(choice.text, is_visible=True) if choice.text else None
    is_alone = (
        choice.text
        is delta.text
        is delta.tool_calls
        is delta.function_call
        is delta.refusal
        is None
    )
    text, reasoning = delta.content, delta.reasoning_content or delta.reasoning
    if not is_alone or bool(text) is bool(reasoning):
        return None
    return Text(text or reasoning or "", bool(text))


def _decoded(payloads: Sequence[bytes]) -> Sequence[_Chunk | None]:
    """The events decoded at once; all ``None`` if one is odd."""
    whole = payloads[:-1] if payloads[-1] == b"[DONE]" else payloads
    missing: list[_Chunk | None] = [None] * (len(payloads) - len(whole))
    try:
        chunks = _decode_batch(b"[%b]" % b",".join(whole))
    except (msgspec.DecodeError, RecursionError):
        return [None] * len(payloads)
    if len(chunks) != len(whole):
        return [None] * len(payloads)
    return [*chunks, *missing]
