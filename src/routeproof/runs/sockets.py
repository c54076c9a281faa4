"""One stream is one socket, and a process may open so many."""

import resource

from routeproof.errors import ConfigError

_OTHERS = 64
"""Files that a process has open beside its streams."""


def allow_streams(streams: int) -> None:
    """Raise the soft limit of open files as far as these streams need.

    Processes that are started afterwards have it too.

    Raises:
        ConfigError: The hard limit is below that.
    """
    needed = streams + _OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigError(
            f"{streams} streams in one process need as many sockets, and it may open "
            f"{hard} files",
            key="--concurrency",
            hint="spread them with --shards, or raise `ulimit -n`",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
