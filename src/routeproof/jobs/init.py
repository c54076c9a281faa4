"""A first proof file from two endpoints, with every choice explained in place."""

from dataclasses import dataclass

from routeproof.errors import ConfigError
from routeproof.routes.fields import canonical, is_compared, same
from routeproof.routes.read_back import ReadBack


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person decides for a first proof.

    Attributes:
        changes: Top-level route fields under test, such as ``kv_cache``.
        cases: Paths, globs, or ``golden``.
        tolerance_share: Loss of the mean score that is acceptable.
        temperature: Sampling temperature of the product.
        concurrency: Load levels of the sweep.
        gain_at_least: Throughput ratio that makes the change worth it.
        trials: Answers per case and arm; more than 1 when sampling.
    """

    changes: tuple[str, ...]
    cases: tuple[str, ...] = ("golden",)
    tolerance_share: float = 0.02
    temperature: float = 0.0
    concurrency: tuple[int, ...] = (1, 4, 16)
    gain_at_least: float = 1.1
    trials: int = 1


CHANGES: dict[str, str] = {
    "speculation": "drafts that the target verifies (EAGLE, DFlash, MTP, n-gram)",
    "kv_cache": "the number format of the KV cache",
    "weights": "the number format of the weights (FP8, AWQ, Q4)",
    "engine": "the engine or its version",
    "attention_backend": "the attention kernels",
    "tokenizer": "the tokenizer or the chat template",
    "sampler_defaults": "what the server samples with when nobody asks",
    "hardware": "the device, its number, its topology",
    "model": "the model itself",
}
"""Fields a newcomer is offered as what is being tested, and what each stands for."""


def differing(baseline: ReadBack, candidate: ReadBack) -> tuple[str, ...]:
    """Fields of ``CHANGES`` that the two endpoints themselves report differently."""
    pairs = {
        name.split(".")[0]
        for name in baseline.fields.keys() | candidate.fields.keys()
        if is_compared(name)
        and not same(
            name,
            baseline.fields.get(name, _absent(name)),
            candidate.fields.get(name, _absent(name)),
        )
        and (_both(name, baseline, candidate) or name.startswith("speculation."))
    }
    return tuple(name for name in CHANGES if name in pairs)


def _both(name: str, baseline: ReadBack, candidate: ReadBack) -> bool:
    return name in baseline.fields and name in candidate.fields


def _absent(name: str) -> str:
    return "none" if name == "speculation.method" else ""


_FILE = """\
# A first proof, written by `routeproof init`. Everything below can be changed.
# `routeproof diff` shows what differs between the routes, `routeproof plan` what the
# tolerances cost, `routeproof qualify` runs it.

baseline:                       # the route you trust
  endpoint: {baseline_url}
  model: {model}
{baseline_fields}
candidate:                      # the faster one; what is not named is as above
  like: baseline
  endpoint: {candidate_url}
{candidate_fields}  changes: [{changes}]   # any other difference is a parity error

workload:
  cases: [{cases}]              # `golden` ships with routeproof; better: your own
  sampling: {{temperature: {temperature}}}
  trials: {trials}                     # above temperature 0 one answer proves nothing
  load:
    latency: {{concurrency: 1, requests: 50}}
    sweep: {{concurrency: [{concurrency}], requests: 100}}

quality:                        # the loss you can live with, agreed beforehand
  - {{metric: headline, tolerance: {tolerance}}}
performance:
  slo: {{}}                      # such as {{time_to_first_token_s: {{p95: 0.5}}}}
  gain: {{metric: output_token_throughput, at_least: {gain}}}
policy: {{alpha: 0.05, power: 0.8}}
"""


def init_proof(
    baseline: ReadBack,
    candidate: ReadBack,
    *,
    baseline_url: str,
    candidate_url: str,
    choices: Choices,
) -> str:
    """The text of a proof file for two probed endpoints.

    What the endpoints say is written down; what they cannot say is left as a comment
    to fill in, since it would cap the verdict otherwise.

    Raises:
        ConfigError: The endpoints serve no common model and ``model`` is not under
            test, or a trial count that proves nothing.
    """
    common = [m for m in baseline.models if m in candidate.models]
    if not common and "model" not in choices.changes:
        raise ConfigError(
            f"the endpoints serve no common model: {', '.join(baseline.models)} "
            f"and {', '.join(candidate.models)}",
            hint="name `model` among the changes if that is what you are testing",
        )
    if choices.temperature > 0 and choices.trials < 2:
        raise ConfigError(
            "one answer per case at a temperature above 0 is an anecdote",
            hint="ask for at least 3 trials, or test at temperature 0",
        )
    return _FILE.format(
        baseline_url=baseline_url,
        candidate_url=candidate_url,
        model=_text((common or list(baseline.models) or ["?"])[0]),
        baseline_fields=_fields(baseline),
        candidate_fields=_changed(candidate, choices.changes),
        changes=", ".join(choices.changes),
        cases=", ".join(choices.cases),
        temperature=f"{choices.temperature:g}",
        trials=choices.trials,
        concurrency=", ".join(str(c) for c in choices.concurrency),
        tolerance=f"{choices.tolerance_share:g}",
        gain=f"{choices.gain_at_least:g}",
    )


_SAY = {
    "revision": "pin it: a commit or digest of the weights",
    "weights": "such as bf16, fp8, q4_0",
    "kv_cache": "such as bf16, fp8_e4m3",
    "context_limit_tokens": "such as 32768",
    "attention_backend": "such as flash_attn",
}
"""Fields of a route that stand on a line of their own, and what to write there."""


def _fields(found: ReadBack) -> str:
    """What the endpoint says, and as comments what somebody has to say for it."""
    lines = [f"  engine: {{{_engine(found)}}}"]
    for name, such in _SAY.items():
        value = found.fields.get(name)
        lines.append(
            f"  {name}: {_plain(name, value)}" if value else _missing(name, such)
        )
    digest = found.fields.get("tokenizer.chat_template_digest")
    if digest:
        lines.append(f"  tokenizer: {{chat_template_digest: {_text(digest)}}}")
    else:
        lines.append(_missing("tokenizer", "{chat_template_digest: ...}"))
    device = found.fields.get("hardware.device")
    if device:
        lines.append(f"  hardware: {{device: {_text(device)}}}")
    else:
        lines.append(_missing("hardware", "{device: cuda, count: 1}"))
    return "\n".join(lines) + "\n"


def _missing(name: str, such: str) -> str:
    return f"  # {name}:   # the endpoint cannot tell; please say, {such}"


def _plain(name: str, value: str) -> str:
    """A value in the spelling of proof files; a number stays a number."""
    return value if value.isdecimal() else _text(canonical(name, value))


def _engine(found: ReadBack) -> str:
    version = found.fields.get("engine.version")
    said = f", version: {_text(version)}" if version else ""
    return f"name: {_text(found.engine)}{said}, maturity: release"


def _changed(found: ReadBack, changes: tuple[str, ...]) -> str:
    lines = []
    for name in changes:
        if name == "speculation":
            lines += _speculation(found)
        elif name == "engine":
            lines.append(f"  engine: {{{_engine(found)}}}")
        elif name == "model":
            lines.append(f"  model: {_text((found.models or ('?',))[0])}")
        else:
            value = found.fields.get(name)
            said = _plain(name, value) if value else "?   # please say"
            lines.append(f"  {name}: {said}")
    return "".join(f"{line}\n" for line in lines)


def _speculation(found: ReadBack) -> list[str]:
    method = found.fields.get("speculation.method", "none")
    guess = "" if method != "none" else "   # the endpoint cannot tell; please correct"
    lines = [
        "  speculation:",
        f"    method: {_text(method if method != 'none' else 'ngram')}{guess}",
        f"    draft_tokens: {found.fields.get('speculation.draft_tokens', '4')}",
        "    placement: same_device   # or other_device",
    ]
    model = found.fields.get("speculation.draft.model")
    if model:
        revision = found.fields.get("speculation.draft.revision")
        pin = f", revision: {_text(revision)}" if revision else ""
        lines.append(f"    draft: {{model: {_text(model)}{pin}}}")
    return lines


def _text(value: str | None) -> str:
    if value is None:
        return "null"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
