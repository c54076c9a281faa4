"""The canary's Prometheus page."""

from collections.abc import Sequence

from routeproof.canary.admin.metric_families import Family


def metrics_page(families: Sequence[Family]) -> str:
    """The page in the Prometheus text format. What is unknown has no line."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.what}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, value in family.rows:
            inside = ",".join(f'{k}="{_quoted(v)}"' for k, v in labels.items())
            lines.append(f"{family.name}{{{inside}}} {value:.10g}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
