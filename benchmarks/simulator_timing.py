"""The simulator's timing and speculation beside real engines.

``python benchmarks/simulator_timing.py DATA``: DATA is a folder with the captures named
in docs/simulator.md. A handful of cells sets the model's constants; the other cells are
predicted. Prints Markdown tables.
"""

import csv
import json
import statistics
import sys
from pathlib import Path

import msgspec

from routeproof.simulator.cost import Load, pass_s
from routeproof.simulator.defects import EngineDefects
from routeproof.simulator.route import (
    Memory,
    Quality,
    SimulatedRoute,
    Speculation,
    Timing,
)
from routeproof.simulator.virtual import VirtualEngine

GLM5 = SimulatedRoute(
    timing=Timing(
        weights_s=0.0195,
        token_s=0.000112,
        context_token_s=1.0e-7,
        sequence_s=0.0003,
        max_batched_tokens=1024,
        max_running=256,
        jitter=0.0,
    ),
    memory=Memory(kv_capacity_tokens=276_000, prefix_cache=False),
    quality=Quality(filler_tokens=400),
)
"""GLM-5 FP8 on vLLM with TP 8, constants set by hand from six cells of the grid."""


PROMPTS, CONCURRENCY = (1024, 4096, 8192, 12288), (4, 16, 64)
"""Cells of the grid that are compared."""


def prompt(number, tokens):
    return f"{number} " + "a " * (tokens - 8)


def closed_loop(route, concurrency, tokens, output, requests):
    """Medians of a closed loop: to first token, per output token, whole request."""
    venue = VirtualEngine(route)
    coming = iter(range(requests))

    def send(at_s):
        number = next(coming, None)
        if number is None:
            return
        body = {
            "messages": [{"role": "user", "content": prompt(number, tokens)}],
            "max_tokens": output,
            "stream": True,
            "temperature": 0,
        }
        data = msgspec.json.encode(body)
        venue.send(at_s, "/v1/chat/completions", data, deadline_s=1e6)

    for _ in range(concurrency):
        send(0.0)
    first, per_token, whole = [], [], []
    while (done := venue.next_end()) is not None:
        start = done.pieces[1].due_s if len(done.pieces) > 1 else done.end_s
        first.append(done.pieces[0].due_s - done.sent_s)
        per_token.append((done.end_s - start) / max(output - 1, 1))
        whole.append(done.end_s - done.sent_s)
        send(done.end_s)
    return tuple(map(statistics.median, (first, per_token, whole)))


def grid(data):
    path = data / "bench_results_vllm_random" / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    cells = {}
    for row in rows:
        if row["model_id"].startswith("zai-org/GLM-5") and row["completed"]:
            tokens = round(row["total_input_tokens"] / row["completed"])
            output = round(row["total_output_tokens"] / row["completed"])
            if output == 128:
                cells[tokens, row["max_concurrency"]] = row
    print("| prompt tokens | concurrency | TTFT real, s | TTFT model, s |", end="")
    print(" per token real, ms | per token model, ms | request real, s |", end="")
    print(" request model, s |\n|---|---|---|---|---|---|---|---|")
    ratios = []
    for (tokens, concurrency), row in sorted(cells.items()):
        if tokens not in (1024, 4096, 12288) or concurrency not in (
            4,
            16,
            32,
            64,
        ):
            continue
        got = closed_loop(GLM5, concurrency, tokens, 128, concurrency * 8)
        real = (row["median_ttft"], row["median_tpot"], row["median_e2el"])
        ratios.append([mine / theirs for mine, theirs in zip(got, real, strict=True)])
        print(
            f"| {tokens} | {concurrency} | {row['median_ttft']:.2f} | {got[0]:.2f} "
            f"| {row['median_tpot'] * 1e3:.1f} | {got[1] * 1e3:.1f} "
            f"| {row['median_e2el']:.1f} | {got[2]:.1f} |"
        )
    names = ("time to first token", "time per output token", "request latency")
    for index, name in enumerate(names):
        values = sorted(r[index] for r in ratios)
        within = sum(0.67 <= v <= 1.5 for v in values)
        print(
            f"\n{name}: model / real, median {statistics.median(values):.2f}, from "
            f"{values[0]:.2f} to {values[-1]:.2f}; {within} of {len(values)} within 1.5"
        )


def draft_lengths(data):
    """Acceptance by position from the longest draft predicts the shorter ones."""
    path = data / "engine_captures_sglang" / "draft_length_grid.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    hists = {}
    for row in rows:
        meta = row.get("meta_info") or {}
        hist = meta.get("spec_correct_drafts_histogram")
        if hist and row["route"].startswith("draft-q2k-k"):
            k = int(row["route"].rsplit("k", 1)[1])
            total = hists.setdefault(k, [0] * (k + 1))
            for accepted, count in enumerate(hist):
                total[accepted] += count
    if not hists:
        return
    longest = max(hists)
    curve = conditional(hists[longest])
    print(f"\nConditional acceptance by position at k = {longest}:", end=" ")
    print(", ".join(f"{c:.2f}" for c in curve))
    print("\n| k | tokens per pass, real | tokens per pass, model |\n|---|---|---|")
    for k, hist in sorted(hists.items()):
        real = 1 + sum(j * h for j, h in enumerate(hist)) / sum(hist)
        print(f"| {k} | {real:.2f} | {modelled(curve, k):.2f} |")


def conditional(hist):
    left, out = sum(hist), []
    for accepted in range(len(hist) - 1):
        reached = left
        left -= hist[accepted]
        out.append(left / reached if reached else 0.0)
    return out


def modelled(curve, k):
    spec = Speculation(draft_tokens=k, acceptance=tuple(curve), spread=0.0)
    route = SimulatedRoute(speculation=spec, quality=Quality(filler_tokens=400))
    venue = VirtualEngine(route)
    for number in range(60):
        body = {
            "messages": [{"role": "user", "content": f"{number}"}],
            "temperature": 0,
        }
        venue.send(0.0, "/v1/chat/completions", msgspec.json.encode(body))
    while venue.next_end() is not None:
        pass
    tally = venue.engine.tally
    return 1 + tally.accepted / tally.spec_passes


def speedups(data):
    """Throughput ratio against acceptance length: what is the cost of a pass?"""
    path = data / "specdec_specforge" / "accept_length.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    plain = {}
    for row in rows:
        if row["draft"] == "none":
            key = (row["target"], row["benchmark"], row["batch_size"])
            plain[key] = float(row["output_throughput_tok_s"])
    costs = {}
    for row in rows:
        key = (row["target"], row["benchmark"], row["batch_size"])
        if row["draft"] == "none" or row["topk"] != "1" or key not in plain:
            continue
        gain = float(row["output_throughput_tok_s"]) / plain[key]
        length = float(row["accept_length"])
        costs.setdefault((int(row["batch_size"]), int(row["steps"])), []).append(
            (length, gain, length / gain)
        )
    print("\n| batch | draft steps | n | acceptance length | gain real |", end="")
    print(
        " cost of a pass real | cost of a pass model |\n|---|---|---|---|---|---|---|"
    )
    for (batch, steps), found in sorted(costs.items()):
        length, gain, cost = (statistics.median(v) for v in zip(*found, strict=True))
        print(
            f"| {batch} | {steps} | {len(found)} | {length:.2f} | {gain:.2f} "
            f"| {cost:.2f} | {pass_cost(batch, steps):.2f} |"
        )


def pass_cost(batch, steps):
    """A verify pass over a plain pass, in the model."""
    timing, spec = Timing(), Speculation(draft_tokens=steps)
    plain = Load(batch, 0, 0, 0, batch)
    verify = Load(batch, 0, 0, steps, batch)
    sound = EngineDefects()
    return pass_s(verify, timing, spec, sound) / pass_s(plain, timing, None, sound)


def main():
    data = Path(sys.argv[1])
    grid(data)
    draft_lengths(data)
    speedups(data)


if __name__ == "__main__":
    main()
