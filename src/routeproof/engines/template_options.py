"""Launch commands with other options of their speculation."""

import json
from collections.abc import Mapping

import msgspec

from routeproof.engines.templates import change_config, set_flag
from routeproof.errors import ConfigError
from routeproof.proof.route import LaunchSpec
from routeproof.routes.fields import canonical

PREFIX = {"sglang": "--speculative-", "llama.cpp": "--spec-"}
"""Flags are these and the option's name; vLLM keeps its options in one JSON value."""


def with_options(
    launch: LaunchSpec, engine: str, options: Mapping[str, str]
) -> LaunchSpec:
    """The same launch command with other values of speculation options.

    Args:
        launch: A command that speculates already.
        engine: Name of the engine.
        options: Names as in ``speculation.options`` of a route (``num_steps``,
            ``eagle_topk``, ``ngram_simple_size_n``, ``prompt_lookup_max``).

    Raises:
        ConfigError: The engine keeps its options elsewhere, or the command has none.
    """
    words, name = list(launch.command), canonical("engine.name", engine)
    if name == "vllm":
        change_config(words, {key: _typed(value) for key, value in options.items()})
    elif name in PREFIX:
        for option, value in options.items():
            set_flag(words, f"{PREFIX[name]}{option.replace('_', '-')}", value)
    else:
        raise ConfigError(
            f"the options of {name} are not in its launch command",
            key="launch.command",
            hint="give each setting an endpoint of its own",
        )
    return msgspec.structs.replace(launch, command=tuple(words))


def impossible(
    engine: str, draft_tokens: int, options: Mapping[str, str]
) -> str | None:
    """Why an engine would refuse a setting, or ``None``.

    SGLang drafts a tree of ``eagle_topk`` branches and ``num_steps`` levels under a
    root; it cannot verify more tokens than the tree has.

    Example:
        >>> impossible("sglang", 7, {"num_steps": "3", "eagle_topk": "1"})
        '3 steps of 1 branches draft at most 3 tokens'
        >>> impossible("sglang", 3, {"num_steps": "3", "eagle_topk": "1"}) is None
        True
    """
    if canonical("engine.name", engine) != "sglang" or "num_steps" not in options:
        return None
    steps, branches = int(options["num_steps"]), int(options.get("eagle_topk", "1"))
    if steps * branches >= draft_tokens:
        return None
    return (
        f"{steps} steps of {branches} branches draft at most {steps * branches} tokens"
    )


def _typed(text: str) -> int | float | bool | str:
    """A value as JSON has it: numbers and switches are no texts."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | bool) else text
