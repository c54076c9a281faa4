"""The main job on the embedded default: a real engine, a real model, this CPU."""

from dataclasses import dataclass
from pathlib import Path

from routeproof.engines.embedded import MODEL, declared_version
from routeproof.errors import ConfigError
from routeproof.workloads.golden import GOLDEN_CLASSES


@dataclass(frozen=True, slots=True)
class Variant:
    """A candidate the demo offers.

    Attributes:
        summary: One line for ``routeproof demo --help``.
        fields: Route fields of the candidate, as YAML below ``candidate:``.
        arguments: What its launch command adds. ``{demo_model}`` is the model file and
            ``{llama_server}`` the engine, filled in when the engine is launched.
        gain_at_least: Throughput ratio asked; 1 asks only for "not slower".
    """

    summary: str
    fields: str
    arguments: tuple[str, ...]
    gain_at_least: float = 1.05


VARIANTS: dict[str, Variant] = {
    "ngram": Variant(
        summary="n-gram speculation: drafts are copied from the text so far",
        fields="""\
  speculation:
    method: ngram-simple
    draft_tokens: 8
    placement: same_device
    options: {ngram_simple_size_n: 4, ngram_simple_size_m: 8}
  changes: [speculation]
""",
        arguments=(
            "--spec-type", "ngram-simple",
            "--spec-ngram-simple-size-n", "4",
            "--spec-ngram-simple-size-m", "8",
        ),
    ),
    "draft": Variant(
        summary="a draft model as large as its target: it costs more than it saves",
        fields=f"""\
  speculation:
    method: draft-simple
    draft: {{model: {MODEL.member}, revision: "sha256:{MODEL.sha256}"}}
    draft_tokens: 4
    placement: same_device
  changes: [speculation]
""",
        arguments=(
            "--spec-type", "draft-simple",
            "--spec-draft-model", "{demo_model}",
            "--spec-draft-n-max", "4",
            "--spec-draft-device", "none",
        ),
    ),
    "kv": Variant(
        summary="a 4-bit KV cache: lossy, so quality has to be proven",
        fields="""\
  kv_cache: q4_0
  changes: [kv_cache]
""",
        arguments=("-ctk", "q4_0", "-ctv", "q4_0", "--flash-attn", "on"),
    ),
    "same": Variant(
        summary="the baseline again: a proof that no difference is invented",
        fields="  changes: []\n",
        arguments=(),
        gain_at_least=1.0,
    ),
}  # fmt: skip

_PROOF = """\
# Written by `routeproof demo {name}`: {summary}.
# Run it again with `routeproof qualify {file}`.
baseline:
  model: smollm2-135m
  revision: "sha256:{sha256}"
  engine: {{name: llama.cpp, {version}maturity: release}}
  weights: q4_1
  kv_cache: f16
  tokenizer: {{name: {member}, revision: "sha256:{sha256}"}}
  hardware: {{device: cpu, count: 1, topology: single}}
  context_limit_tokens: 2048
  launch:
    command:
{baseline}
candidate:
  like: baseline
{fields}  launch:
    command:
{candidate}

workload:
  cases: [golden]
  max_cases: {cases}
  classes_required: {{{required}}}
  sampling: {{temperature: 0}}
  load:
    cache: as_is              # both engines run without a prompt cache
    block_size: 8
    warmup_requests: 2
    quality: {{concurrency: [1]}}
    # The quality stage is a single stream and speed is judged on it. For more load:
    # sweep: {{concurrency: [2], requests: 64}}
    latency: null
    sweep: null

# A tolerance that a few minutes can decide: with no flip at all, {cases} pairs
# rule out a loss of more than {tolerance_share:.0%}; the {smallest} cases of a class
# can rule out a large loss only, and the report says how large.
quality:
  - {{metric: headline, tolerance: {tolerance_share}}}
performance:
  slo:
    time_to_first_token_s: {{p95: 10.0}}
    request_latency_s: {{p95: 30.0}}
  gain: {{metric: output_token_throughput, at_least: {gain}}}
  worse_tolerance_ratio: 1.1
memory: {{peak_bytes_ratio_max: 1.5}}
policy: {{alpha: 0.05}}
"""


@dataclass(frozen=True, slots=True)
class DemoSize:
    """How much the demo sends."""

    cases: int = 72
    required_per_class: int = 8
    tolerance_share: float = 0.05


def demo_proof(name: str, file: Path, *, size: DemoSize | None = None) -> str:
    """The text of the demo's proof file.

    Args:
        name: A key of ``VARIANTS``.
        file: The path the text will be written to, for its first comment.
        size: How much to send.

    Raises:
        ConfigError: There is no such variant.
    """
    variant = VARIANTS.get(name)
    if variant is None:
        raise ConfigError(
            f"there is no demo `{name}`", hint=f"choose one of {', '.join(VARIANTS)}"
        )
    chosen = size or DemoSize()
    return _PROOF.format(
        name=name,
        summary=variant.summary,
        file=file,
        sha256=MODEL.sha256,
        member=MODEL.member,
        baseline=_command(()),
        candidate=_command(variant.arguments),
        fields=variant.fields,
        cases=chosen.cases,
        gain=f"{variant.gain_at_least:g}",
        version=f'version: "{version}", ' if (version := declared_version()) else "",
        required=", ".join(f"{c}: {chosen.required_per_class}" for c in GOLDEN_CLASSES),
        tolerance_share=chosen.tolerance_share,
        smallest=chosen.required_per_class,
    )


def _command(arguments: tuple[str, ...]) -> str:
    parts = [
        "{llama_server}",
        "-m", "{demo_model}",
        "-a", "smollm2-135m",
        "--host", "127.0.0.1",
        "--port", "{port}",
        "-np", "2",
        "-c", "4096",
        "-t", "2",
        "--device", "none",
        "--jinja",
        "--chat-template-file", "{chat_template}",
        "--metrics",
        "--slots",
        "--no-webui",
        "--no-cache-prompt",
        "--cache-ram", "0",
        *arguments,
    ]  # fmt: skip
    return "\n".join(f"      - {_quoted(part)}" for part in parts)


def _quoted(part: str) -> str:
    return '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
