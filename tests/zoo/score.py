"""Run the whole zoo and write its score: ``python tests/zoo/score.py [--check]``.

Prints a table and rewrites the generated part of ``docs/zoo.md``. Rows are shared out
over two worker processes. With names as arguments only those rows are played, and
nothing is written.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from zoo import zoo_play, zoo_rows, zoo_unseen  # noqa: E402

PAGE = HERE.parent.parent / "docs" / "zoo.md"
MARK = "<!-- below this line: written by tests/zoo/score.py -->"
WORKERS = 2


def rows_of(names):
    rows = [*zoo_rows.fault_rows(), *zoo_rows.HARMLESS]
    chosen = [r for r in rows if not names or r.name in names]
    # One worker plays all rows of a proof, so that its baseline is played once.
    return sorted(chosen, key=lambda r: r.proof)


def work(names):
    """A worker: play rows and print one line of JSON for each."""
    with tempfile.TemporaryDirectory(prefix="routeproof-zoo-") as place:
        for row in rows_of(names):
            found = zoo_play.play(row, Path(place) / row.name.strip("~"))
            print(json.dumps(zoo_play.plain(row, found)), flush=True)
            print(f"{row.name} {found.seconds:.1f} s", file=sys.stderr, flush=True)


def share_out(rows):
    """Halves of about equal weight; a load row costs two."""
    weights = {"answers": 1.0, "load": 1.2, "load_sglang": 4.0, "sampled": 1.0}
    total = sum(weights.get(r.proof, 1.5) for r in rows)
    parts, done = [[] for _ in range(WORKERS)], 0.0
    for row in rows:
        parts[min(int(done / total * WORKERS), WORKERS - 1)].append(row.name)
        done += weights.get(row.proof, 1.5)
    return [part for part in parts if part]


def play_all(names):
    parts = share_out(rows_of(names))
    command = [sys.executable, str(HERE / "score.py"), "--worker"]
    running = [
        subprocess.Popen([*command, *part], stdout=subprocess.PIPE, text=True)
        for part in parts
    ]
    results = []
    for each in running:
        out, _ = each.communicate()
        if each.returncode:
            raise SystemExit(f"a worker of the zoo failed with {each.returncode}")
        results += [json.loads(line) for line in out.splitlines()]
    return results


def told(result):
    if result["harmless"]:
        return "failed" if result["failed"] else "not failed"
    if result["detected"]:
        return "detected"
    return "wrong reason" if result["failed"] else "not seen"


def score(results):
    faults = [r for r in results if not r["harmless"]]
    harmless = [r for r in results if r["harmless"]]
    return {
        "detected": sum(r["detected"] for r in faults),
        "faults": len(faults),
        "wrong_reason": [r["name"] for r in faults if told(r) == "wrong reason"],
        "not_seen": [r["name"] for r in faults if told(r) == "not seen"],
        "not_failed": sum(not r["failed"] for r in harmless),
        "harmless": len(harmless),
        "blamed": [r["name"] for r in harmless if r["failed"]],
    }


def page_of(results):
    found = score(results)
    lines = [
        MARK,
        "",
        f"**Detected for the right reason: {found['detected']} of {found['faults']}. "
        f"Harmless changes not failed: {found['not_failed']} of {found['harmless']}.**",
        "",
        "## Faults",
        "",
        "| fault | seen in | strength | result | verdict | by |",
        "|---|---|---|---|---|---|",
    ]
    order = sorted(results, key=lambda r: (r["family"], r["name"]))
    for r in order:
        if r["harmless"]:
            continue
        strength = "" if r["strength"] is None else f"{r['strength']:g}"
        by = r["by"] or ", ".join(r["failed"][:2]) or "-"
        lines.append(
            f"| {r['name']} ({r['family']}) | {r['reference']} | {strength} "
            f"| {told(r)} | {r['decision']} | {by} |"
        )
    lines += ["", "## Harmless changes", "", "| change | result | verdict | what |"]
    lines += ["|---|---|---|---|"]
    for r in order:
        if r["harmless"]:
            blamed = (
                f"{told(r)}: {', '.join(r['failed'][:2])}" if r["failed"] else told(r)
            )
            lines.append(f"| {r['name']} | {blamed} | {r['decision']} | {r['what']} |")
    lines += ["", "## Not caught, and the evidence it would need", ""]
    missed = [r for r in order if not r["harmless"] and not r["detected"]]
    lines += ["| fault | what happened | evidence it would need |", "|---|---|---|"]
    for r in missed:
        need = zoo_unseen.NEEDS.get(r["name"], "not analysed yet")
        lines.append(f"| {r['name']} | {told(r)} | {need} |")
    if not missed:
        lines.append("| none | | |")
    return "\n".join(lines) + "\n"


def write(results):
    text = PAGE.read_text() if PAGE.exists() else ""
    before = text.split(MARK)[0]
    PAGE.write_text(before + page_of(results))


def main(arguments):
    if arguments and arguments[0] == "--worker":
        work(arguments[1:])
        return 0
    started = time.perf_counter()
    results = play_all(arguments)
    for r in sorted(results, key=lambda r: (r["harmless"], r["family"], r["name"])):
        by = r["by"] or ", ".join(r["failed"][:2]) or "-"
        print(
            f"{told(r):<13} {r['family']:<13} {r['name']:<32} {r['decision']:<11} {by}"
        )
    found = score(results)
    print(
        f"\ndetected for the right reason {found['detected']} / {found['faults']}, "
        f"harmless not failed {found['not_failed']} / {found['harmless']}, "
        f"{time.perf_counter() - started:.0f} s"
    )
    for name in ("wrong_reason", "not_seen", "blamed"):
        if found[name]:
            print(f"{name.replace('_', ' ')}: {', '.join(found[name])}")
    if not arguments:
        write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
