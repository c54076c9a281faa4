"""Scorers, metrics, engines and report formats of other packages.

A package names a function in the entry-point group ``routeproof``; the command line
calls it with the doors below before any command runs. Nothing is loaded by
``import routeproof``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from routeproof.errors import ConfigError

if TYPE_CHECKING:
    from routeproof.engines.adapter import TableAdapter
    from routeproof.metrics.metric import Metric
    from routeproof.reports.formats import Format
    from routeproof.scorers.score import Scorer

GROUP = "routeproof"


class Doors:
    """What a plug-in is called with: one method for each table it may add to.

    Every method raises ``ConfigError`` when the name is taken: a plug-in cannot change
    what a built-in name means.
    """

    def add_scorer(self, scorer: Scorer) -> None:
        """A further name for ``scorers`` of a case and ``metric`` of a quality gate."""
        from routeproof.scorers.table import SCORERS

        _add(SCORERS, scorer.name, scorer, "scorer")

    def add_metric(self, metric: Metric) -> None:
        """A further number of every request, compared like the built-in ones."""
        from routeproof.metrics.table import METRICS

        _add(METRICS, metric.name, metric, "metric")

    def add_engine(self, adapter: TableAdapter) -> None:
        """A further ``engine.name``."""
        from routeproof.engines.adapters import ADAPTERS

        _add(ADAPTERS, adapter.name, adapter, "engine")

    def add_format(self, shape: Format) -> None:
        """A further ``--format`` of ``routeproof report``."""
        from routeproof.reports.formats import FORMATS

        _add(FORMATS, shape.name, shape, "report format")


def load_plugins(found: Iterable[EntryPoint] | None = None) -> tuple[str, ...]:
    """Call every plug-in once; returns their names.

    Raises:
        ConfigError: A plug-in cannot be loaded, or takes a name that is taken. Going
            on without it would give another verdict in silence.
    """
    entries = entry_points(group=GROUP) if found is None else found
    doors = Doors()
    names = []
    for entry in sorted(entries, key=lambda each: each.name):
        if entry.name in _LOADED:
            continue
        try:
            entry.load()(doors)
        except ConfigError:
            raise
        except (ImportError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"the plug-in `{entry.name}` ({entry.value}) cannot be loaded: {error}",
                hint="mend or uninstall the package that brings it",
            ) from error
        _LOADED.add(entry.name)
        names.append(entry.name)
    return tuple(names)


_LOADED: set[str] = set()
"""Names of plug-ins whose rows are in the tables of this process."""


def _add(table: dict[str, Any], name: str, row: object, kind: str) -> None:
    if name in table:
        raise ConfigError(
            f"a plug-in adds the {kind} `{name}`, which is there already",
            hint=f"give the {kind} of the plug-in a name of its own",
        )
    table[name] = row
