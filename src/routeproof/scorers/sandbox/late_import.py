"""Imports of the standard library by paths relative to the working directory.

Python's own finder makes every path absolute, and the user a program runs as may not
pass through the directories above the library (a Python in a home directory is a
common case). A relative path needs no right on them.
"""

import os
from collections.abc import Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    BuiltinImporter,
    ExtensionFileLoader,
    FrozenImporter,
    ModuleSpec,
    SourceFileLoader,
)
from types import ModuleType
from typing import Any


class LibraryFinder:
    """Finds modules below the working directory, which is the standard library's."""

    @classmethod
    def find_spec(
        cls,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The module's spec, or ``None`` when the library does not have it."""
        base = "./" + fullname.replace(".", "/")
        name = fullname.rpartition(".")[2]
        for file, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
            if os.path.exists(file):
                return _spec(
                    fullname, SourceFileLoader(fullname, file), file, is_package
                )
        for suffix in EXTENSION_SUFFIXES:
            file = f"./lib-dynload/{name}{suffix}"
            if os.path.exists(file):
                return _spec(fullname, ExtensionFileLoader(fullname, file), file, False)
        return None


def _spec(name: str, loader: Any, file: str, is_package: bool) -> ModuleSpec:
    spec = ModuleSpec(name, loader, origin=file, is_package=is_package)
    spec.has_location = True
    if is_package:
        spec.submodule_search_locations = [os.path.dirname(file)]
    return spec


def finders() -> list[Any]:
    """What ``sys.meta_path`` holds inside of the sandbox."""
    return [BuiltinImporter, FrozenImporter, LibraryFinder]
