"""Puts the chart library (Vega, Vega-Lite, Vega-Embed) into the package as one file.

The bundle is taken from the vl-convert wheel, so that no copy of it is kept in the
repository and a reader of a report needs no network.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLE = Path("src/routeproof/reports/page/vega.js")


class ChartBundle(BuildHookInterface):
    """Write the bundle before the wheel is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the bundle unless it is there.

        An editable install goes on without it (reports then have tables only); a wheel
        does not.
        """
        target = Path(self.root) / BUNDLE
        if target.exists():
            return
        try:
            import vl_convert
        except ImportError:
            if version == "editable":
                return
            raise
        target.write_text(vl_convert.javascript_bundle(), encoding="utf-8")
