"""Recorded engine pages, where they are, and small pages of our own."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "shared" / "data"
CAPTURES = DATA.parent / "captures"


def recorded(*parts: str) -> Path:
    """A recorded file; the test is skipped where the recordings are absent."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no recordings at {DATA}")
    return path


def rows(*parts: str) -> list[dict]:
    """Rows of a recorded JSONL file."""
    return [json.loads(line) for line in recorded(*parts).read_text().splitlines()]


def bodies(*parts: str) -> list[dict]:
    """JSON events of a recorded stream (one row per received line)."""
    lines = [row["line"] for row in rows(*parts)]
    texts = [line.removeprefix("data: ") for line in lines if line.startswith("data:")]
    return [json.loads(text) for text in texts if text.strip() != "[DONE]"]


def merged(*parts: str) -> dict:
    """Top-level fields of the last three events of a stream, as a client keeps them."""
    fields: dict = {}
    for body in bodies(*parts)[-3:]:
        fields.update({k: v for k, v in body.items() if v or k != "choices"})
    return fields


PAGES = {
    "/v1/models": "models.json",
    "/version": "version.json",
    "/props": "props.json",
    "/slots": "slots_after.json",
    "/model_info": "model_info.json",
    "/server_info": "server_info.json",
    "/server_info?config_format=json": "server_info.json",
    "/metrics": "metrics_after.prom",
}


def answers(folder: str, route: str, *paths: str) -> dict[str, str]:
    """Recorded answers of a route by path, those that were recorded."""
    recorded(folder)
    found = {}
    for path in paths:
        file = DATA / folder / f"{route}.{PAGES[path]}"
        if file.exists():
            found[path] = file.read_text()
    return found
