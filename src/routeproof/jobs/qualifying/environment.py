"""What took a measurement: versions and facts of the machine."""

import os
import platform
import sys
from importlib.metadata import version

import psutil

from routeproof import __version__
from routeproof.records.manifest import Versions

PACKAGES = ("numpy", "scipy", "httptools", "uvloop", "msgspec", "arro3-core")
"""Packages whose version can move a number."""


def versions() -> Versions:
    """Versions of routeproof, Python and the packages that matter."""
    return Versions(
        routeproof=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        event_loop="uvloop",
        packages={name: version(name) for name in PACKAGES},
    )


def environment() -> dict[str, object]:
    """Facts of this machine at this moment."""
    return {
        "processors": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "machine": platform.machine(),
        "load_average": list(os.getloadavg()),
        "byte_order": sys.byteorder,
    }
