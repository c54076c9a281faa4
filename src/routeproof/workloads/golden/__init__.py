"""The golden set: cases of our own that ship with the package.

Nine classes, one JSONL file each. Prompts and answers are short, so that a 135M
model on two CPU cores gets through them in minutes; see ``docs/workloads.md`` for
what share of each class such a model gets right.
"""

from importlib import resources
from pathlib import Path

import msgspec

from routeproof.workloads.case import Case

GOLDEN_CLASSES = (
    "factual_qa",
    "arithmetic",
    "extraction",
    "tool_call",
    "copy_edit",
    "classification",
    "refusal",
    "long_form",
    "multi_turn",
)
"""Classes in the order in which the cases are given; also the names of the files."""


def golden_cases() -> tuple[Case, ...]:
    """Every case of the golden set, class by class, in file order."""
    decoder = msgspec.json.Decoder(Case)
    folder = resources.files(__name__)
    return tuple(
        case
        for name in GOLDEN_CLASSES
        for case in decoder.decode_lines(folder.joinpath(f"{name}.jsonl").read_bytes())
    )


def chat_template_path() -> Path:
    """A chat template for SmolLM2 that can show tools and earlier calls.

    The template inside that model's GGUF knows neither: llama-server then drops
    ``tools`` without a word and no call is ever made. Give it to the server as
    ``--chat-template-file`` on both routes. Prompts without tools come out as with
    the model's own template.
    """
    return Path(__file__).parent / "chat_template_tools.jinja"
