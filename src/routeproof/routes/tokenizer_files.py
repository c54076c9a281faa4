"""What tokenizer files say: vocabulary, special tokens, BOS, stop tokens, template."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from routeproof.errors import FormatError
from routeproof.routes.gguf import read_header


class TokenizerFacts(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A tokenizer, reduced to what must agree between a target and its draft.

    Attributes:
        source: The file or folder.
        vocabulary_size: Number of token ids, added tokens included.
        digest: SHA-256 over all (id, token) pairs in order of id.
        special: ``bos``, ``eos``, ``pad``, ``unk`` to their token ids.
        stop_ids: Ids at which generation stops, sorted.
        adds_bos: Whether a prompt gets a BOS in front; ``None`` when not told.
        template_digest: SHA-256 of the chat template; ``None`` without one.
    """

    source: str
    vocabulary_size: int
    digest: str
    special: dict[str, int] = {}
    stop_ids: tuple[int, ...] = ()
    adds_bos: bool | None = None
    template_digest: str | None = None


def read_tokenizer(path: Path) -> TokenizerFacts:
    """Facts from a model folder with ``tokenizer.json``, or from a GGUF file.

    Raises:
        FormatError: There is no tokenizer, or it is not readable.
    """
    if path.is_dir():
        return _from_folder(path)
    return _from_gguf(path)


def vocabulary_digest(tokens: Mapping[int, str]) -> str:
    """SHA-256 over (id, token) pairs in order of id.

    Example:
        >>> vocabulary_digest({1: "b", 0: "a"}) == vocabulary_digest({0: "a", 1: "b"})
        True
    """
    found = hashlib.sha256()
    for number in sorted(tokens):
        text = tokens[number].encode("utf-8", "surrogateescape")
        found.update(b"%d\0%d\0%s" % (number, len(text), text))
    return found.hexdigest()


def text_digest(text: str | None) -> str | None:
    """SHA-256 of a text; ``None`` for none.

    A chat template served by llama.cpp and one in a file have the same digest.
    """
    return hashlib.sha256(text.encode()).hexdigest() if text else None


def _from_gguf(path: Path) -> TokenizerFacts:
    header = read_header(path)
    tokens = header.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list):
        raise FormatError("has no tokenizer in it", path=path)
    special = {
        name: int(header[key])
        for name, key in (
            ("bos", "tokenizer.ggml.bos_token_id"),
            ("eos", "tokenizer.ggml.eos_token_id"),
            ("pad", "tokenizer.ggml.padding_token_id"),
            ("unk", "tokenizer.ggml.unknown_token_id"),
        )
        if key in header
    }
    stops = [special["eos"]] if "eos" in special else []
    stops += [header[k] for k in ("tokenizer.ggml.eot_token_id",) if k in header]
    adds = header.get("tokenizer.ggml.add_bos_token")
    return TokenizerFacts(
        source=str(path),
        vocabulary_size=len(tokens),
        digest=vocabulary_digest(dict(enumerate(tokens))),
        special=special,
        stop_ids=tuple(sorted(set(stops))),
        adds_bos=adds if isinstance(adds, bool) else None,
        template_digest=text_digest(header.get("tokenizer.chat_template")),
    )


def _from_folder(folder: Path) -> TokenizerFacts:
    whole = _json(folder / "tokenizer.json", required=True)
    config = _json(folder / "tokenizer_config.json")
    tokens = _vocabulary(whole, folder)
    by_text = {text: number for number, text in tokens.items()}
    special = {
        name: by_text[text]
        for name in ("bos", "eos", "pad", "unk")
        if (text := _token_text(config.get(f"{name}_token"))) in by_text
    }
    return TokenizerFacts(
        source=str(folder),
        vocabulary_size=len(tokens),
        digest=vocabulary_digest(tokens),
        special=special,
        stop_ids=_stop_ids(folder, special),
        adds_bos=_adds_bos(whole, config),
        template_digest=text_digest(_template(folder, config)),
    )


def _json(path: Path, *, required: bool = False) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        if required:
            raise FormatError(
                "is missing", path=path, hint="name a folder with a fast tokenizer"
            ) from None
        return {}
    except (OSError, ValueError):
        raise FormatError("is not readable JSON", path=path) from None
    return found if isinstance(found, dict) else {}


def _vocabulary(whole: Mapping[str, Any], folder: Path) -> dict[int, str]:
    model = whole.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        tokens = {int(number): str(text) for text, number in vocabulary.items()}
    elif isinstance(vocabulary, list):
        # Unigram models list [token, score] in order of id.
        tokens = {i: str(entry[0]) for i, entry in enumerate(vocabulary)}
    else:
        raise FormatError("has no vocabulary", path=folder / "tokenizer.json")
    for added in whole.get("added_tokens") or []:
        tokens[int(added["id"])] = str(added["content"])
    return tokens


def _token_text(value: Any) -> str | None:
    """Token in a configuration: plain, or an object with its ``content``."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _stop_ids(folder: Path, special: Mapping[str, int]) -> tuple[int, ...]:
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        value = _json(folder / name).get("eos_token_id")
        values: Iterable[Any] = value if isinstance(value, list) else [value]
        found.update(v for v in values if isinstance(v, int))
        if found:
            break
    if not found and "eos" in special:
        found.add(special["eos"])
    return tuple(sorted(found))


def _adds_bos(whole: Mapping[str, Any], config: Mapping[str, Any]) -> bool | None:
    told = config.get("add_bos_token")
    if isinstance(told, bool):
        return told
    processor = whole.get("post_processor")
    if not isinstance(processor, dict):
        return False if "post_processor" in whole else None
    steps = [processor, *(processor.get("processors") or [])]
    for step in steps:
        single = step.get("single") if isinstance(step, dict) else None
        if isinstance(single, list) and single:
            return "SpecialToken" in single[0]
    return False


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The chat template: a file of its own wins over the configuration's."""
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    value = config.get("chat_template")
    if isinstance(value, list):
        named = {e.get("name"): e.get("template") for e in value if isinstance(e, dict)}
        value = named.get("default")
    return value if isinstance(value, str) else None
