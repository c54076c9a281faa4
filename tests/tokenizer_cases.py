"""Small tokenizers on disk, as a model folder and as a GGUF file."""

import json
import struct
from pathlib import Path

VOCABULARY = ["<unk>", "<s>", "</s>", "a", "b", "ab", " "]


def model_folder(folder: Path, **changes) -> Path:
    """A folder with ``tokenizer.json`` and its companions."""
    words = changes.pop("words", VOCABULARY)
    folder.mkdir(parents=True, exist_ok=True)
    whole = {
        "model": {"type": "BPE", "vocab": {w: i for i, w in enumerate(words)}},
        "added_tokens": changes.pop("added", []),
        "post_processor": changes.pop("post_processor", None),
    }
    config = {
        "bos_token": "<s>",
        "eos_token": {"content": "</s>", "lstrip": False},
        "unk_token": "<unk>",
        "chat_template": "{{ messages }}",
        **changes,
    }
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def gguf_file(path: Path, **changes) -> Path:
    """A GGUF header; ``None`` leaves a key out."""
    header = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": VOCABULARY,
        "tokenizer.ggml.scores": [0.0] * len(VOCABULARY),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": "{{ messages }}",
        **changes,
    }
    body = b""
    kept = {key: value for key, value in header.items() if value is not None}
    for key, value in kept.items():
        body += _text(key) + _value(value)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(kept)) + body)
    return path


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    assert isinstance(value, list)
    if isinstance(value[0], float):
        return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)
    texts = b"".join(_text(entry) for entry in value)
    return struct.pack("<IIQ", 9, 8, len(value)) + texts
