"""A complete proof file as people would write one, and edits of it."""

from pathlib import Path

CANARY = """\
canary:
  candidate: "fp8-kv + dflash"
  baseline: "bf16"
  online_sample: 5%
  quality_gate: within tolerance vs baseline
  perf_gate: SLO-valid on same workload
  rollback_if: quality < threshold
"""
"""The short form of a canary, as people write it."""

COMPLETE = """\
baseline:
  endpoint: http://127.0.0.1:8000/v1
  model: Qwen/Qwen3.8-27B
  revision: 5b2c...            # model, tokenizer and template revisions
  engine: {name: sglang, version: 0.5.23, maturity: release}
  weights: bf16
  kv_cache: bf16
candidate:
  like: baseline
  endpoint: http://127.0.0.1:8001/v1
  kv_cache: fp8_e4m3
  speculation:
    method: dflash
    draft: {model: Qwen/Qwen3.8-27B-DFlash2, revision: 77aa...}
    draft_tokens: 7
    placement: same_device
  changes: [kv_cache, speculation]
rollback: {to: baseline, drilled: null}

workload:
  cases: [cases/*.jsonl]
  classes_required: {factual_qa: 50, tool_call: 50, refusal: 50, structured: 50}
  sampling: {temperature: 0}
  trials: 1
  seed: 20261130
  load:
    latency: {concurrency: 1}
    sweep: {concurrency: [1, 4, 16, 64], duration_s: 60}

quality:
  - {metric: exact_match, tolerance: 0.01}
  - {metric: schema_valid, slice: {class: structured}, tolerance: 0.0}
  - {metric: pass_at_k, k: 1, samples: 5, tolerance: 0.02}
  - metric: preference_win_rate
    judge: {endpoint: "http://127.0.0.1:8002/v1", model: judge, api_key_env: JUDGE_KEY}
    tolerance: 0.03
performance:
  slo:
    time_to_first_token_s: {p95: 0.5}
    inter_token_latency_s: {p95: 0.05}
    request_latency_s: {p99: 20}
  gain: {metric: output_token_throughput, at_least: 1.2}
memory: {peak_bytes_ratio_max: 1.05, kv_capacity_ratio_min: 0.8}
policy: {alpha: 0.05, power: 0.8}

"""
COMPLETE += CANARY

SMALL = """\
baseline: {endpoint: "http://127.0.0.1:8000/v1", model: m}
candidate: {endpoint: "http://127.0.0.1:8001/v1", model: m}
"""


def written(folder: Path, text: str) -> Path:
    """The text as ``proof.yaml`` in a folder."""
    path = folder / "proof.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def edited(folder: Path, old: str, new: str) -> Path:
    """The complete proof with one passage replaced."""
    assert old in COMPLETE, old
    return written(folder, COMPLETE.replace(old, new, 1))
