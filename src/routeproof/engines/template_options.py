"""Launch commands with other options of their speculation."""

import json
from collections.abc import Mapping

import msgspec

from routeproof.errors import ConfigError
from routeproof.proof.route import LaunchSpec
from routeproof.routes.fields import canonical

PREFIX = {"sglang": "--speculative-", "llama.cpp": "--spec-"}
"""Flags are these and the option's name; vLLM keeps its options in one JSON value."""

CONFIG_FLAGS = ("--speculative-config", "--speculative_config")


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
        _into_config(words, options)
    elif name in PREFIX:
        for option, value in options.items():
            _set(words, f"{PREFIX[name]}{option.replace('_', '-')}", value)
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


def _into_config(words: list[str], options: Mapping[str, str]) -> None:
    for index, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag not in CONFIG_FLAGS:
            continue
        text = value if equals else "".join(words[index + 1 : index + 2])
        try:
            config = json.loads(text)
        except ValueError:
            raise ConfigError(
                f"the value of {flag} is not JSON", key="launch.command"
            ) from None
        config.update({name: _typed(each) for name, each in options.items()})
        made = json.dumps(config)
        if equals:
            words[index] = f"{flag}={made}"
        else:
            words[index + 1 : index + 2] = [made]
        return
    raise ConfigError(
        "the launch command does not speculate",
        key="launch.command",
        hint="add --speculative-config",
    )


def _typed(text: str) -> int | float | bool | str:
    """A value as JSON has it: numbers and switches are no texts."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | bool) else text


def _set(words: list[str], flag: str, value: str) -> None:
    for index, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name == flag:
            if equals:
                words[index] = f"{flag}={value}"
            else:
                words[index + 1 : index + 2] = [value]
            return
    words += [flag, value]
