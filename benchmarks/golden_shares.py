"""What share of the golden set the embedded model gets right, class by class.

    .venv/bin/python benchmarks/golden_shares.py [--ngram] [--classes a,b] [--json]

Starts the embedded engine (fetched when it is not there), sends every golden case once,
greedy, one at a time, and prints per class: cases, share right by the headline scorer,
output tokens, decode time and accepted draft tokens as the engine reports them. With
``--ngram`` the engine speculates as in ``routeproof demo ngram``.
"""

import argparse
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from contextlib import contextmanager

from routeproof.engines.embedded import fetch_embedded
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.table import SCORERS
from routeproof.workloads.golden import chat_template_path, golden_cases

READY_S = 120
NGRAM = (
    "--spec-type", "ngram-simple",
    "--spec-ngram-simple-size-n", "3",
    "--spec-ngram-simple-size-m", "16",
)  # fmt: skip


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--ngram", action="store_true")
    asked.add_argument("--classes", default="")
    asked.add_argument("--json", action="store_true")
    options = asked.parse_args()
    # Without this a SIGTERM would leave the engine behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wanted = set(filter(None, options.classes.split(",")))
    cases = [c for c in golden_cases() if not wanted or c.class_ in wanted]
    with engine(NGRAM if options.ngram else ()) as url:
        rows = []
        for number, case in enumerate(cases, 1):
            rows.append(measure(case, url))
            print(f"\r{number} of {len(cases)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    table = summarise(rows)
    if options.json:
        print(json.dumps(table, indent=2))
        return
    heads = ("cases", "right", "tokens", "decode s", "drafts")
    print(f"{'class':<16}" + "".join(f"{head:>10}" for head in heads))
    for row in table:
        print(
            f"{row['class']:<16}{row['cases']:>10}{row['right']:>10.2f}"
            f"{row['tokens']:>10}{row['decode_s']:>10.1f}{row['accepted']:>10}"
        )


@contextmanager
def engine(arguments):
    embedded = fetch_embedded()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        embedded.server, "-m", embedded.model, "-a", "smollm2-135m",
        "--host", "127.0.0.1", "--port", str(port), "-np", "1", "-c", "2048",
        "-t", "2", "--device", "none", "--jinja",
        "--chat-template-file", chat_template_path(), *arguments,
    ]  # fmt: skip
    started = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url, started)
        yield url
    finally:
        started.terminate()
        started.wait(30)


def wait_until_ready(url, started):
    end = time.monotonic() + READY_S
    while time.monotonic() < end and started.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the engine did not become ready")


def measure(case, url):
    body = {"messages": case.messages, "temperature": 0, **case.parameters}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{case.id}: {error.read().decode()[:300]}") from error
    choice = answer["choices"][0]
    calls = choice["message"].get("tool_calls") or ()
    is_cut = choice["finish_reason"] == "length"
    scored = SCORERS[case.scorers[0]].of(
        case,
        ScoredAnswer(
            text=choice["message"].get("content") or "",
            outcome="truncated" if is_cut else "completed",
            finish_reason=choice["finish_reason"],
            tool_calls=tuple(call["function"] for call in calls),
        ),
    )
    return case.class_, scored.value, answer["timings"]


def summarise(rows):
    classes = defaultdict(list)
    for class_, value, timings in rows:
        classes[class_].append((value, timings))
    return [
        {
            "class": name,
            "cases": len(found),
            "right": sum(value == 1 for value, _ in found) / len(found),
            "tokens": sum(t["predicted_n"] for _, t in found),
            "decode_s": sum(t["predicted_ms"] for _, t in found) / 1e3,
            "accepted": sum(t.get("draft_n_accepted", 0) for _, t in found),
        }
        for name, found in classes.items()
    ]


if __name__ == "__main__":
    main()
