"""Write a GGUF file of the Llama family as a model folder in bfloat16.

    python weights.py MODEL.gguf FOLDER

Needs ``gguf``, ``torch`` and ``safetensors``. The weights are what the GGUF file holds,
dequantised: the baseline made of them is no better than the file, and both routes of a
proof are made of the same.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.torch import save_file

BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
REST = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
CONTROL, USER_DEFINED = 3, 4
"""Token types of GGUF that are never split from running text."""


def field(reader: GGUFReader, name: str, default: Any = None) -> Any:
    """A value of the file's header."""
    found = reader.fields.get(name)
    return default if found is None else found.contents()


def hub_name(name: str) -> str:
    """``blk.3.attn_q.weight`` as the model folder calls it."""
    if name in REST:
        return REST[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{BLOCK[part]}.{kind}"


def unpermuted(weights: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of a query or key projection in the order of the model folder.

    GGUF interleaves the two halves of each head's rotary dimensions.
    """
    rows, columns = weights.shape
    pairs = weights.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def tensors(reader: GGUFReader, config: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Every tensor in bfloat16, under its name in the folder."""
    heads = {
        "attn_q": config["num_attention_heads"],
        "attn_k": config["num_key_value_heads"],
    }
    out = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        part = tensor.name.split(".")[2:3]
        if part and part[0] in heads:
            values = unpermuted(values, heads[part[0]])
        out[hub_name(tensor.name)] = values.to(torch.bfloat16).contiguous()
    return out


def model_config(reader: GGUFReader) -> dict[str, Any]:
    """``config.json``."""

    def of(name: str) -> Any:
        return field(reader, f"llama.{name}")

    if field(reader, "general.architecture") != "llama":
        sys.exit("only files of the Llama family are understood")
    names = {tensor.name for tensor in reader.tensors}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"),
        "num_hidden_layers": of("block_count"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "head_dim": of("rope.dimension_count"),
        "max_position_embeddings": of("context_length"),
        "rms_norm_eps": round(of("attention.layer_norm_rms_epsilon"), 12),
        "rope_theta": of("rope.freq_base"),
        "vocab_size": of("vocab_size"),
        "tie_word_embeddings": "output.weight" not in names,
        "bos_token_id": field(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": field(reader, "tokenizer.ggml.eos_token_id"),
        "hidden_act": "silu",
        "attention_bias": False,
        "dtype": "bfloat16",
    }


def tokenizer(reader: GGUFReader) -> dict[str, Any]:
    """``tokenizer.json`` of a byte-level BPE; digits are split one by one."""
    if field(reader, "tokenizer.ggml.pre") != "smollm":
        sys.exit("only the tokenizer of SmolLM is understood")
    tokens = field(reader, "tokenizer.ggml.tokens")
    kinds = field(reader, "tokenizer.ggml.token_type")
    added = [
        {
            "id": i,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == CONTROL,
        }
        for i, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (CONTROL, USER_DEFINED)
    ]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {**bytes_, "use_regex": True},
            ],
        },
        "post_processor": None,
        "decoder": {**bytes_, "use_regex": True},
        "model": {
            "type": "BPE",
            "fuse_unk": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": field(reader, "tokenizer.ggml.merges"),
        },
    }


def write(folder: Path, name: str, content: Any) -> None:
    """Write text, or anything else as JSON."""
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    (folder / name).write_text(text, encoding="utf-8")


def main(gguf: str, target: str) -> None:
    """Write the folder."""
    reader, folder = GGUFReader(gguf), Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(reader)
    tokens = field(reader, "tokenizer.ggml.tokens")

    def special(name: str) -> str:
        return str(tokens[field(reader, f"tokenizer.ggml.{name}_token_id")])

    template = field(reader, "tokenizer.chat_template", "")
    write(folder, "tokenizer.json", tokenizer(reader))
    write(
        folder,
        "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": special("bos"),
            "eos_token": special("eos"),
            "unk_token": special("unknown"),
            "pad_token": special("padding"),
            "add_bos_token": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": config["max_position_embeddings"],
            "chat_template": template,
        },
    )
    ends = {"bos_token_id": config["bos_token_id"]}
    write(
        folder,
        "generation_config.json",
        {**ends, "eos_token_id": config["eos_token_id"]},
    )
    save_file(
        tensors(reader, config),
        str(folder / "model.safetensors"),
        metadata={"format": "pt"},
    )
    # Last: a folder with a configuration is whole.
    write(folder, "config.json", config)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
