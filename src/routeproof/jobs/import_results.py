"""Bring other people's data in: data sets, traces, logs, results of other tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from routeproof.errors import ConfigError
from routeproof.proof.nearest import nearest
from routeproof.stats.interval import NonInferiority
from routeproof.stats.paired_binary import non_inferiority
from routeproof.workloads.cases import write_cases
from routeproof.workloads.importers.table import IMPORTERS
from routeproof.workloads.results.compare import Comparison, Pairs, compare_results
from routeproof.workloads.results.result import Result
from routeproof.workloads.results.table import RESULTS
from routeproof.workloads.synthesize import read_chat_log, synthesize
from routeproof.workloads.trace import Trace
from routeproof.workloads.trace_readers import TRACES, read_trace, write_trace

TRACE_KINDS = {
    "trace": "a traffic trace, told by its columns: " + ", ".join(TRACES),
    "chat-log": "JSONL of chat requests with times; only its shape is kept",
}
"""Kinds that are traces, and what their files are."""

DEFAULT_SEED = 20261130


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What was written.

    Attributes:
        what: ``cases``, ``requests`` or ``results``.
        counts: By class for cases; empty for the rest.
        left_out: What could not be taken over, by reason.
        notes: What a reader of the numbers should know, and faults found.
    """

    path: Path
    what: str
    n: int
    counts: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def kinds() -> dict[str, str]:
    """Every kind that can be imported and what its file is."""
    sets = {name: f"cases: {one.form}" for name, one in IMPORTERS.items()}
    traces = {name: f"trace: {form}" for name, form in TRACE_KINDS.items()}
    results = {name: f"results: {one.form}" for name, one in RESULTS.items()}
    return sets | traces | results


def import_file(
    kind: str,
    source: Path,
    out: Path,
    *,
    synthesize_requests: int | None = None,
    seed: int = DEFAULT_SEED,
) -> ImportSummary:
    """Read a file of a kind and write what it holds as JSONL.

    Data sets become cases, traces their shape (or cases of that shape), results of
    other tools records of our own that keep each tool's definitions.

    Args:
        kind: One of ``kinds()``.
        source: The file or folder.
        out: Where to write.
        synthesize_requests: Traces only: write cases in the shape of so many requests
            from the beginning, not the shape itself.
        seed: Decides the words of synthesised cases.

    Raises:
        ConfigError: Unknown kind, or a file that cannot be read or written.
        FormatError: The file is not of this kind; names the line.
    """
    check_kind(kind)
    if out.exists() and source.exists() and out.samefile(source):
        raise ConfigError("would overwrite the file that is read", path=out)
    try:
        if kind in IMPORTERS:
            return _import_cases(kind, source, out)
        if kind in TRACE_KINDS:
            trace = read_chat_log(source) if kind == "chat-log" else read_trace(source)
            if synthesize_requests is not None:
                return _synthesize(trace, out, synthesize_requests, seed)
            write_trace(trace, out)
            return _of_trace(trace, "requests", out)
        return _import_results(kind, source, out)
    except OSError as error:
        raise ConfigError(f"cannot write: {error.strerror}", path=out) from error


def check_kind(kind: str) -> None:
    """Refuse a kind that is none, with the nearest one.

    Raises:
        ConfigError: It is none.
    """
    known = kinds()
    if kind not in known:
        near = nearest(kind, known)
        raise ConfigError(
            f"unknown kind `{kind}`",
            hint=(f"did you mean `{near}`? " if near else "")
            + f"known: {', '.join(known)}",
        )


def _import_cases(kind: str, source: Path, out: Path) -> ImportSummary:
    found = IMPORTERS[kind].of(source)
    write_cases(found.cases, out)
    counts: dict[str, int] = {}
    for case in found.cases:
        counts[case.class_] = counts.get(case.class_, 0) + 1
    return ImportSummary(out, "cases", len(found.cases), counts, found.left_out)


def _synthesize(trace: Trace, out: Path, n: int, seed: int) -> ImportSummary:
    part = trace.window(max_requests=n)
    write_cases(synthesize(part, seed=seed), out)
    return _of_trace(part, "cases", out)


def _of_trace(trace: Trace, what: str, out: Path) -> ImportSummary:
    return ImportSummary(out, what, len(trace), {}, trace.left_out, _shape(trace))


def _shape(trace: Trace) -> tuple[str, ...]:
    rate, shared = trace.rate_per_s, trace.shared_share()
    notes = [
        f"prompts of {trace.input_tokens.mean():.0f} and answers of "
        f"{trace.output_tokens.mean():.0f} tokens on average"
    ]
    if rate is not None:
        notes.append(f"{rate:.2f} requests/s over {trace.offsets_s[-1]:.0f} s")
    if shared is not None:
        notes.append(f"{shared:.0%} of the prompt blocks repeat an earlier beginning")
    return tuple(notes)


def _import_results(kind: str, source: Path, out: Path) -> ImportSummary:
    results = RESULTS[kind].of(source)
    encoder = msgspec.json.Encoder()
    with out.open("wb") as file:
        for one in results:
            file.write(encoder.encode(one) + b"\n")
    said = [note for one in results for note in (*one.faults, *one.notes)]
    return ImportSummary(out, "results", len(results), notes=tuple(dict.fromkeys(said)))


@dataclass(frozen=True, slots=True)
class Against:
    """Two imported runs compared.

    Attributes:
        decided: Non-inferiority of each binary scorer, by its name.
    """

    comparison: Comparison
    decided: Mapping[str, NonInferiority]


def compare_files(
    kind: str,
    baseline: Path,
    candidate: Path,
    *,
    changes: Sequence[str] = (),
    tolerance_share: float = 0.02,
    alpha: float = 0.05,
) -> Against:
    """Compare two results of one tool, or say why they cannot be.

    Args:
        kind: A kind of results.
        baseline: File of the trusted route.
        candidate: File of the other one.
        changes: Conditions under test.
        tolerance_share: Loss still allowed, for scores that are right or wrong.
        alpha: One-sided error rate.

    Raises:
        ConfigError: The two are not comparable; names every difference.
        FormatError: A file is not of this kind.
    """
    check_kind(kind)
    if kind not in RESULTS:
        raise ConfigError(
            f"`{kind}` holds no results to compare",
            hint=f"kinds with results: {', '.join(RESULTS)}",
        )
    if not 0 < tolerance_share < 1:
        raise ConfigError(
            f"the tolerance must lie between 0 and 1, got {tolerance_share}"
        )
    comparison = compare_results(
        _of_route(kind, baseline), _of_route(kind, candidate), changes=changes
    )
    decided = {
        pairs.scorer: _decide(pairs, tolerance_share, alpha)
        for pairs in comparison.pairs
        if pairs.n and all(d in (-1.0, 0.0, 1.0) for d in pairs.differences)
    }
    return Against(comparison, decided)


def _of_route(kind: str, path: Path) -> tuple[Result, ...]:
    """Results of a file; ``FILE::NAME`` takes those whose label begins with NAME.

    One file may hold a whole sweep over several routes.
    """
    name = ""
    if not path.exists() and "::" in path.name:
        file, name = path.name.rsplit("::", 1)
        path = path.with_name(file)
    results = RESULTS[kind].of(path)
    if not name:
        return results
    chosen = tuple(one for one in results if one.label.split(",")[0] == name)
    if not chosen:
        labels = dict.fromkeys(one.label.split(",")[0] for one in results)
        raise ConfigError(
            f"no result `{name}` in it",
            path=path,
            hint=f"it has {', '.join(labels)}",
        )
    return chosen


def _decide(pairs: Pairs, tolerance_share: float, alpha: float) -> NonInferiority:
    return non_inferiority(
        losses=pairs.losses,
        gains=pairs.gains,
        n=pairs.n,
        tolerance=tolerance_share,
        alpha=alpha,
        missing=pairs.unscored + pairs.missing,
    )
