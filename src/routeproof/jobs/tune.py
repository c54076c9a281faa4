"""Search the draft length: speed, acceptance, equality and memory per point.

Every point is a run of its own, judged like any other: the candidate is launched anew
with its draft length, the same cases go to both routes, and what is picked is picked
on correct answers inside the SLO per second, for each load apart, never on acceptance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from routeproof.engines.templates import with_draft_tokens
from routeproof.errors import ConfigError, EngineError
from routeproof.gates.facts import LoadRow, RatioRow, Row
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Listener, Options, qualify
from routeproof.jobs.report import load_judgement
from routeproof.jobs.search_record import SEARCH_NAME
from routeproof.jobs.tune_choice import Chosen, choose, is_hopeless
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.proof.workload import ArrivalSpec, LoadSpec
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder
from routeproof.reports.judgement import Judgement
from routeproof.routes.resolve import resolve
from routeproof.stats.ratio import FEWEST_BLOCKS

SINGLE = 1
REQUESTS = 4 * FEWEST_BLOCKS
"""Requests of a single stream on each route."""


class Tuned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a search found.

    Attributes:
        rows: One per draft length and load, in the order in which they ran.
        chosen: Per load, the draft length to use, or none.
        skipped: Draft lengths not run, and why.
        failed: Draft lengths whose engine did not come up or died, with its words.
    """

    rows: tuple[Row, ...]
    chosen: tuple[Chosen, ...]
    skipped: dict[int, str] = {}
    failed: dict[int, str] = {}


def tune(
    proof_path: Path,
    out: Path,
    *,
    draft_tokens: Sequence[int],
    concurrency: Sequence[int],
    cases: int = 12,
    seconds: float = 20.0,
    listener: Listener | None = None,
) -> Tuned:
    """Run the grid and pick.

    A point takes about as long as its cases and 16 requests more on both routes, one
    after the other, and twice ``seconds`` for each load beyond a single stream.

    A search that was interrupted goes on when it is called again with the same folder:
    points that were judged are not run again, a point half done is resumed.

    Args:
        proof_path: A proof whose candidate is launched and speculates.
        out: Folder of the search; each point is a run folder in it.
        draft_tokens: Draft lengths to try, in the order given.
        concurrency: Loads to try each at.
        cases: The sample of equality and quality.
        seconds: How long each load beyond a single stream lasts on each route.
        listener: Who is told.

    Raises:
        ConfigError: The proof cannot be tuned, or a point's proof is wrong.
        EngineError: The baseline did not start.
        StoredRunError: The folder cannot be used.
    """
    hears = listener or Listener()
    proof = load_proof(proof_path)
    _check(proof, proof_path)
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    skipped: dict[int, str] = {}
    failed: dict[int, str] = {}
    judgements: dict[int, Judgement] = {}
    for length in draft_tokens:
        reason = is_hopeless(rows)
        if reason is not None:
            skipped[length] = reason
            continue
        hears.say(f"draft length {length}")
        wanted = Point(length, tuple(concurrency), cases, seconds)
        path = _point_file(proof, proof_path, out, wanted)
        try:
            found = _point(path, out / f"k{length}", hears)
        except EngineError as error:
            failed[length] = error.message
            continue
        judgements[length] = found
        rows += rows_of(length, found)
    chosen = choose(rows)
    tuned = Tuned(
        rows=_marked(rows, chosen), chosen=chosen, skipped=skipped, failed=failed
    )
    _keep(tuned, judgements, out)
    return tuned


def _check(proof: Proof, path: Path) -> None:
    _, candidate = resolve(proof)
    if proof.candidate.launch is None:
        raise ConfigError(
            "the candidate is not launched by this proof, so its draft length cannot "
            "be changed",
            path=path,
            key="candidate.launch",
            hint="add `launch:` to the candidate",
        )
    if candidate.speculation is None:
        raise ConfigError(
            "the candidate does not speculate", path=path, key="candidate.speculation"
        )


@dataclass(frozen=True, slots=True)
class Point:
    """One draft length of the grid, and how it is measured; see `tune`."""

    draft_tokens: int
    concurrency: tuple[int, ...]
    cases: int
    seconds: float

    def load(self, like: LoadSpec) -> LoadSpec:
        """A single stream sends so many requests, further loads last so long.

        Both in at least the four blocks that an interval needs.
        """
        further = tuple(c for c in self.concurrency if c != SINGLE)
        single = ArrivalSpec(concurrency=(SINGLE,), requests=REQUESTS)
        sweep = ArrivalSpec(concurrency=further, duration_s=self.seconds)
        return LoadSpec(
            quality=ArrivalSpec(concurrency=(SINGLE,)),
            latency=single if SINGLE in self.concurrency else None,
            sweep=sweep if further else None,
            block_size=min(like.block_size, REQUESTS // FEWEST_BLOCKS),
            warmup_requests=like.warmup_requests,
            request_timeout_s=like.request_timeout_s,
        )


def _point_file(proof: Proof, proof_path: Path, out: Path, point: Point) -> Path:
    """The proof file of one point, written beside its run."""
    spec = proof.candidate.speculation
    launch = proof.candidate.launch
    assert spec is not None and launch is not None
    engine = proof.candidate.engine or proof.baseline.engine
    name = engine.name if engine is not None else "llama.cpp"
    length = point.draft_tokens
    candidate = msgspec.structs.replace(
        proof.candidate,
        speculation=msgspec.structs.replace(spec, draft_tokens=length, options={}),
        launch=with_draft_tokens(launch, name, length),
    )
    workload = msgspec.structs.replace(
        proof.workload,
        cases=tuple(_absolute(c, proof_path.parent) for c in proof.workload.cases),
        max_cases=min(point.cases, proof.workload.max_cases or point.cases),
        classes_required={},
        load=point.load(proof.workload.load),
    )
    changed = msgspec.structs.replace(proof, candidate=candidate, workload=workload)
    path = out / f"k{length}.yaml"
    text = yaml.safe_dump(msgspec.to_builtins(changed), sort_keys=False)
    write_atomically(path, text.encode())
    return path


def _absolute(pattern: str, base: Path) -> str:
    return pattern if pattern == "golden" else str((base / pattern).resolve())


def _point(path: Path, folder: Path, listener: Listener) -> Judgement:
    if (folder / "judgement.json").exists() and RunFolder(
        folder
    ).read_manifest().finished:
        return load_judgement(folder)
    # The probes would be the same at every point; `qualify` puts them to the winner.
    options = Options(
        keep_going=True,
        has_control=False,
        has_probes=False,
        resume=(folder / "manifest.json").exists(),
    )
    return qualify(path, folder, options=options, listener=listener)


def rows_of(length: int, found: Judgement) -> list[Row]:
    """The rows of one point: one for each load."""
    evidence = found.evidence
    equal = next((e for e in evidence.quality.equality if e.pair == "candidate"), None)
    correctness = found.gate("correctness").status.value
    sizes = [m for m in evidence.stability.memory if m.name.endswith("_bytes")]
    peak = sizes[0] if sizes else None
    rows: list[Row] = []
    for load in evidence.speed.loads:
        if load.arm != "candidate" or load.phase not in ("latency", "sweep"):
            continue
        ratio = _ratio(evidence.speed.ratios, load)
        interval = ratio.gain_interval if ratio else None
        rows.append(
            {
                "draft_tokens": length,
                "concurrency": load.asked,
                "gain": ratio.gain if ratio else None,
                "gain_low": interval.low if interval else None,
                "gain_high": interval.high if interval else None,
                "correct_goodput_per_s": load.correct_goodput_per_s,
                "output_tokens_per_s": load.output_tokens_per_s,
                "tokens_per_pass": evidence.acceptance.overall.get("tokens_per_pass"),
                "acceptance_rate": evidence.acceptance.overall.get("acceptance_rate"),
                "equal_share": equal.equal / equal.pairs
                if equal and equal.pairs
                else None,
                "correctness": correctness,
                "memory_ratio": peak.peak.ratio() if peak else None,
            }
        )
    return rows


def _ratio(ratios: Sequence[RatioRow], load: LoadRow) -> RatioRow | None:
    return next(
        (
            r
            for r in ratios
            if r.metric == "output_token_throughput"
            and (r.phase, r.level) == (load.phase, load.level)
        ),
        None,
    )


def _marked(rows: Sequence[Row], chosen: Sequence[Chosen]) -> tuple[Row, ...]:
    picked = {(c.concurrency, c.draft_tokens) for c in chosen}
    return tuple(
        {**row, "chosen": (row["concurrency"], row["draft_tokens"]) in picked}
        for row in rows
    )


def _keep(tuned: Tuned, lengths: Iterable[int], out: Path) -> None:
    """``tune.json``, beside the search and in the run of every point."""
    body = msgspec.json.format(msgspec.json.encode(tuned), indent=2)
    write_atomically(out / SEARCH_NAME, body)
    for length in lengths:
        point = out / f"k{length}"
        write_atomically(point / SEARCH_NAME, body)
        judge(point)
