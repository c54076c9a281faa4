"""Launch commands that keep their speculation in a YAML file, as trtllm-serve does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from routeproof.errors import ConfigError
from routeproof.proof.route import LaunchSpec
from routeproof.routes.fields import canonical
from routeproof.routes.option_files import OPTION_FILES

LENGTH = {"mtp": "num_nextn_predict_layers"}
"""Key of the draft length by decoding type, where it is not ``max_draft_len``."""


def has_options_file(launch: LaunchSpec, engine: str) -> bool:
    """Whether the draft length of this command stands in a file."""
    return canonical("engine.name", engine) == "tensorrt-llm" and any(
        _names_a_file(word) for word in launch.command
    )


def with_file(
    launch: LaunchSpec, draft_tokens: int, options: Mapping[str, str], target: Path
) -> LaunchSpec:
    """The same command with a changed copy of its options file.

    Args:
        launch: A command that names the file; a relative path is looked up from the
            folder that the command runs in.
        draft_tokens: Drafts per pass.
        options: Further keys of ``speculative_config``, such as ``relaxed_topk``.
        target: Where the copy goes.

    Raises:
        ConfigError: The file cannot be read, or does not speculate.
    """
    words = list(launch.command)
    place = _place(words)
    given = words[place].partition("=")[2] or words[place]
    source = Path(launch.cwd or ".") / given
    try:
        content = yaml.safe_load(source.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(
            f"the options of the engine cannot be read: {error}",
            path=source,
            key="launch.command",
        ) from None
    config = content.get("speculative_config") if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise ConfigError(
            "the options of the engine have no `speculative_config`",
            path=source,
            key="launch.command",
            hint="write `speculative_config: {decoding_type: ..., max_draft_len: ...}`",
        )
    changed = {**content, "speculative_config": _changed(config, draft_tokens, options)}
    target.write_text(yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")
    flag, equals, _ = words[place].partition("=")
    path = str(target.resolve())
    words[place] = f"{flag}={path}" if equals else path
    return msgspec.structs.replace(launch, command=tuple(words))


def _changed(
    config: Mapping[str, Any], draft_tokens: int, options: Mapping[str, str]
) -> dict[str, Any]:
    kind = str(config.get("decoding_type", "")).lower()
    key = LENGTH.get(kind, "max_draft_len")
    if key not in config and "max_draft_len" in config:
        key = "max_draft_len"
    more = {name: yaml.safe_load(value) for name, value in options.items()}
    return {**config, key: draft_tokens, **more}


def _place(words: list[str]) -> int:
    """Index of the word that holds the path."""
    for index, word in enumerate(words):
        flag, equals, _ = word.partition("=")
        if _names_a_file(flag):
            if equals or index + 1 == len(words):
                return index
            return index + 1
    raise ConfigError(
        "the launch command names no file of options",
        key="launch.command",
        hint="add --extra_llm_api_options FILE",
    )


def _names_a_file(word: str) -> bool:
    return word.partition("=")[0].replace("_", "-") in OPTION_FILES
