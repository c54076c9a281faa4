"""The release sheet: what is being shipped, how far it was proven, how to go back."""

from collections.abc import Iterator, Sequence

from routeproof.gates.facts import Row
from routeproof.gates.result import Status
from routeproof.reports import figures
from routeproof.reports.agreed import NOBODY, agreed_rows
from routeproof.reports.judgement import Judgement
from routeproof.reports.markup import table, words
from routeproof.reports.tables import cell_text
from routeproof.routes.inventory import Field, RouteDiff

NOT_WRITTEN = "not written down"

_PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Target",
        ("model", "revision", "weights", "kv_cache", "tokenizer", "context_limit"),
    ),
    ("Draft", ("speculation",)),
    ("Engine", ("engine", "attention_backend", "launch", "sampler_defaults")),
    ("Topology", ("hardware",)),
)


def render(judgement: Judgement) -> str:
    """Markdown for the change record of a release."""
    return "\n".join(_lines(judgement)) + "\n"


def _lines(judgement: Judgement) -> Iterator[str]:
    run = judgement.provenance
    word = figures.DECISION_WORD[judgement.verdict.decision]
    yield f"# Release sheet: {word}"
    yield ""
    yield judgement.headline
    yield ""
    yield from table(
        ("run", "value"),
        (
            ("id", run.run_id),
            ("started", run.started_at or figures.UNKNOWN),
            ("workload fingerprint", run.workload_fingerprint or figures.UNKNOWN),
            ("baseline digest", run.baseline_digest or figures.UNKNOWN),
            ("candidate digest", run.candidate_digest or figures.UNKNOWN),
            ("routeproof", run.routeproof_version),
            ("measurement version", str(run.measurement_version)),
        ),
    )
    yield from _pair(judgement.evidence.routes)
    yield from _search(judgement)
    yield from _tolerances(judgement)
    yield from _gates(judgement)
    yield from _way_back(judgement)


def _pair(routes: RouteDiff | None) -> Iterator[str]:
    if routes is None:
        yield f"## Routes\n\n{NOT_WRITTEN}\n"
        return
    baseline = {field.name: field for field in routes.baseline.fields}
    candidate = {field.name: field for field in routes.candidate.fields}
    names = list(dict.fromkeys([*baseline, *candidate]))
    for title, roots in (*_PARTS, ("Other fields", ())):
        wanted = [name for name in names if _belongs(name, roots)]
        if not wanted and not roots:
            continue
        yield f"## {title}"
        yield ""
        if not wanted:
            yield NOT_WRITTEN
            yield ""
            continue
        yield from table(
            ("field", "baseline", "candidate", "how it is known"),
            (
                (
                    name,
                    _value(baseline.get(name)),
                    _value(candidate.get(name)),
                    _known(candidate.get(name) or baseline.get(name)),
                )
                for name in wanted
            ),
        )


def _belongs(name: str, roots: Sequence[str]) -> bool:
    if roots:
        return any(name.startswith(root) for root in roots)
    return not any(name.startswith(root) for _, each in _PARTS for root in each)


def _value(field: Field | None) -> str:
    if field is None:
        return NOT_WRITTEN
    return figures.UNKNOWN if field.value is None else field.value


def _known(field: Field | None) -> str:
    return "" if field is None else field.known.replace("_", " ")


def _search(judgement: Judgement) -> Iterator[str]:
    yield "## Draft length and how it was chosen"
    yield ""
    rows: Sequence[Row] = judgement.tables.get("tune", ())
    if not rows:
        yield "No search was made in this run (`routeproof tune` makes one)."
        yield ""
        return
    chosen = [row for row in rows if row.get("chosen")]
    for row in chosen:
        yield f"Chosen: {row.get('draft_tokens', figures.UNKNOWN)} drafted tokens."
        yield ""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    yield from table(
        tuple(name.replace("_", " ") for name in columns),
        (tuple(cell_text(name, row.get(name)) for name in columns) for row in rows),
    )


def _tolerances(judgement: Judgement) -> Iterator[str]:
    agreed = judgement.evidence.agreed
    by = agreed.policy.agreed_by
    yield "## Tolerances"
    yield ""
    yield f"Agreed by: {words(by) if by else NOBODY}."
    yield f"One-sided alpha {agreed.policy.alpha:g}."
    yield ""
    yield from table(("what", "where", "limit"), agreed_rows(agreed))


def _gates(judgement: Judgement) -> Iterator[str]:
    yield "## Gates"
    yield ""
    yield from table(
        ("gate", "status", "reason"),
        (
            (
                figures.GATE_TITLE[gate.gate],
                figures.STATUS_WORD[gate.status].lower(),
                gate.reason,
            )
            for gate in judgement.gates
        ),
    )


def _way_back(judgement: Judgement) -> Iterator[str]:
    rollback = judgement.evidence.agreed.rollback
    drill = next((g for g in judgement.gates if g.gate == "rollback"), None)
    yield "## Way back"
    yield ""
    yield f"- Rollback path: route all traffic to `{rollback.to}`."
    drilled = rollback.drilled or "never drilled"
    yield f"- Drill: {words(drilled)}."
    if drill is not None and drill.status is not Status.NOT_MEASURED:
        yield f"- Rollback gate: {words(drill.reason)}"
    yield ""
    yield f"- Requests to route around the candidate: {_around(judgement)}."
    yield ""
    yield "Fall back at once when one of these holds:"
    yield ""
    verdict = judgement.verdict
    for name in verdict.stop_use:
        yield f"- `{name}` (holds in this run)"
    for sentence in _FALLBACK:
        yield f"- {sentence}"
    yield ""
    if verdict.retest:
        yield "Test again when:"
        yield ""
        yield from (f"- {words(sentence)}" for sentence in verdict.retest)
        yield ""


def _around(judgement: Judgement) -> str:
    features = judgement.evidence.fallback
    if features is None:
        return "not asked in this run"
    if not features:
        return "none"
    rules = dict.fromkeys(CANARY_RULES.get(name, name) for name in features)
    named = ", ".join(f"`{name}`" for name in features)
    return f"{named}; for the canary: `traffic: {{fallback: [{', '.join(rules)}]}}`"


CANARY_RULES = {"json_object": "structured_output", "json_schema": "structured_output"}
"""Features as the route checks name them, to the canary's names where these differ."""


_FALLBACK = (
    "a quality gate above is outside its tolerance on sampled live answers",
    "a latency limit above is missed under the declared load",
    "the engine restarts, leaks, or stops answering",
)
