"""Launch arguments of an engine as settings that can be compared."""

import shlex
from collections.abc import Sequence


def read_arguments(args: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Settings by name, and what in the list cannot have been read as meant.

    ``--no-enable-x`` is ``enable_x: false``, a flag alone is ``true``, dashes and
    underscores are the same.

    Example:
        >>> read_arguments(["--max-num-seqs=128", "--no-enable-prefix-caching"])[0]
        {'max_num_seqs': '128', 'enable_prefix_caching': 'false'}
    """
    settings: dict[str, str] = {}
    faults = []
    waiting: str | None = None
    for argument in args:
        if not argument.startswith("--"):
            if waiting is None:
                faults.append(f"the argument `{argument}` belongs to no option")
            else:
                settings[waiting] = argument
            waiting = None
            continue
        head = argument.split("=", 1)[0]
        if " " in head:
            faults.append(
                f"the argument `{argument}` holds {len(shlex.split(argument))} words: "
                "the engine sees one unknown option, not an option with a value"
            )
            waiting = None
            continue
        name, sign, value = argument.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        waiting = None
        if sign:
            settings[name] = value
        elif name.startswith("no_"):
            settings[name.removeprefix("no_")] = "false"
        else:
            settings[name] = "true"
            waiting = name
    return settings, tuple(faults)
