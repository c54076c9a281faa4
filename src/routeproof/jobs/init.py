"""A first proof file from two endpoints, with every choice explained in place."""

from dataclasses import dataclass

from routeproof.errors import ConfigError
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


CHANGES = (
    "speculation",
    "kv_cache",
    "weights",
    "engine",
    "attention_backend",
    "tokenizer",
    "hardware",
    "model",
)
"""Fields a newcomer is offered as what is being tested."""

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


def _fields(found: ReadBack) -> str:
    lines = [
        "  # revision:                 # pin it: a commit or digest of the weights"
    ]
    lines.append(f"  engine: {{{_engine(found)}}}")
    for name in ("weights", "kv_cache", "attention_backend"):
        value = found.fields.get(name)
        lines.append(
            f"  {name}: {_text(value)}"
            if value
            else f"  # {name}:                 # the endpoint cannot tell; please say"
        )
    return "\n".join(lines) + "\n"


def _engine(found: ReadBack) -> str:
    version = found.fields.get("engine.version")
    said = f", version: {_text(version)}" if version else ""
    return f"name: {_text(found.engine)}{said}, maturity: release"


def _changed(found: ReadBack, changes: tuple[str, ...]) -> str:
    lines = []
    for name in changes:
        if name == "speculation":
            method = found.fields.get("speculation.method")
            method = method if method and method != "none" else None
            lines.append(
                f"  speculation: {{method: {_text(method or 'ngram')}, "
                "draft_tokens: 4}"
                + ("" if method else "   # the endpoint cannot tell; please correct")
            )
        elif name == "engine":
            lines.append(f"  engine: {{{_engine(found)}}}")
        elif name == "model":
            lines.append(f"  model: {_text((found.models or ('?',))[0])}")
        else:
            value = found.fields.get(name)
            lines.append(f"  {name}: {_text(value) if value else '?   # please say'}")
    return "".join(f"{line}\n" for line in lines)


def _text(value: str | None) -> str:
    if value is None:
        return "null"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
