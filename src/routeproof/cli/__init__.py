"""One small file per command: read, call one job, print."""

from routeproof.cli.app import main

__all__ = ["main"]
