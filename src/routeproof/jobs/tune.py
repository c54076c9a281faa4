"""Search the draft length: speed, acceptance, equality and memory per point.

Every point is a run of its own, judged like any other: the candidate is launched anew
with its draft length, the same cases go to both routes, and what is picked is picked
on correct answers inside the SLO per second, for each load apart, never on acceptance.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from routeproof.engines.template_options import impossible, with_options
from routeproof.engines.templates import with_draft_tokens
from routeproof.errors import ConfigError, EngineError
from routeproof.gates.facts import LoadRow, RatioRow, Row
from routeproof.jobs.gathering.search_record import SEARCH_NAME
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Listener, Options, qualify
from routeproof.jobs.report import load_judgement
from routeproof.jobs.tune_choice import Chosen, choose, is_hopeless
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.proof.workload import ArrivalSpec, LoadSpec
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder
from routeproof.reports.judgement import Judgement
from routeproof.routes.resolve import resolve
from routeproof.stats.ratio import FEWEST_BLOCKS

NO_OPTIONS: Mapping[str, Sequence[str]] = {}
SINGLE = 1
REQUESTS = 4 * FEWEST_BLOCKS
"""Requests of a single stream on each route."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is sent at each point.

    Attributes:
        cases: The sample of equality and quality.
        seconds: How long each load beyond a single stream lasts on each route.
    """

    cases: int = 12
    seconds: float = 20.0


NORMAL_SIZE = Size()


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to speculate: a draft length and values of further options."""

    draft_tokens: int
    options: tuple[tuple[str, str], ...] = ()

    def words(self) -> str | None:
        """The options in words, ``None`` where none is varied."""
        return " ".join(f"{name}={value}" for name, value in self.options) or None

    def name(self) -> str:
        """Of its run folder.

        Example:
            >>> Setting(4, (("num_steps", "3"),)).name()
            'k4-num_steps3'
        """
        parts = (f"{name}{re.sub('[^A-Za-z0-9.]', '_', v)}" for name, v in self.options)
        return "-".join((f"k{self.draft_tokens}", *parts))


class Tuned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a search found.

    Attributes:
        rows: One per setting and load, in the order in which they ran.
        chosen: Per load, the setting to use, or none.
        skipped: Settings not run, and why.
        failed: Settings whose engine did not come up or died, with its words.
    """

    rows: tuple[Row, ...]
    chosen: tuple[Chosen, ...]
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}


def tune(
    proof_path: Path,
    out: Path,
    *,
    draft_tokens: Sequence[int],
    concurrency: Sequence[int],
    options: Mapping[str, Sequence[str]] = NO_OPTIONS,
    size: Size = NORMAL_SIZE,
    listener: Listener | None = None,
) -> Tuned:
    """Run the grid and pick.

    A point takes about as long as its cases and 16 requests more on both routes, one
    after the other, and twice ``size.seconds`` for each load beyond a single stream.

    A search that was interrupted goes on when it is called again with the same folder:
    points that were judged are not run again, a point half done is resumed.

    Args:
        proof_path: A proof whose candidate is launched and speculates.
        out: Folder of the search; each point is a run folder in it.
        draft_tokens: Draft lengths to try, in the order given.
        concurrency: Loads to try each at.
        options: Speculation options to vary as well, each with its values: every
            combination is tried with every draft length. SGLang's ``num_steps`` and
            ``eagle_topk``, llama.cpp's ``ngram_simple_size_n``, vLLM's
            ``prompt_lookup_max``.
        size: How much is sent at each point.
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
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    judgements: dict[str, Judgement] = {}
    engine = _engine(proof)
    for setting in settings(draft_tokens, options):
        reason = impossible(
            engine, setting.draft_tokens, dict(setting.options)
        ) or is_hopeless(rows, setting.words())
        if reason is not None:
            skipped[setting.name()] = reason
            continue
        hears.say(
            f"draft length {setting.draft_tokens} {setting.words() or ''}".strip()
        )
        wanted = Point(setting, tuple(concurrency), size)
        path = _point_file(proof, proof_path, out, wanted)
        try:
            found = _point(path, out / setting.name(), hears)
        except EngineError as error:
            failed[setting.name()] = error.message
            continue
        judgements[setting.name()] = found
        rows += rows_of(setting, found)
    chosen = choose(rows)
    tuned = Tuned(
        rows=_marked(rows, chosen), chosen=chosen, skipped=skipped, failed=failed
    )
    _keep(tuned, judgements, out)
    return tuned


def settings(
    draft_tokens: Sequence[int], options: Mapping[str, Sequence[str]] = NO_OPTIONS
) -> Iterator[Setting]:
    """Every combination of options, each with all draft lengths in their order."""
    for values in itertools.product(*options.values()):
        chosen = tuple(zip(options, values, strict=True))
        for length in draft_tokens:
            yield Setting(length, chosen)


def _engine(proof: Proof) -> str:
    engine = proof.candidate.engine or proof.baseline.engine
    return engine.name if engine is not None else "llama.cpp"


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
    """One setting of the grid, and how it is measured; see `tune`."""

    setting: Setting
    concurrency: tuple[int, ...]
    size: Size

    def load(self, like: LoadSpec) -> LoadSpec:
        """A single stream sends so many requests, further loads last so long.

        Both in at least the four blocks that an interval needs.
        """
        further = tuple(c for c in self.concurrency if c != SINGLE)
        single = ArrivalSpec(concurrency=(SINGLE,), requests=REQUESTS)
        sweep = ArrivalSpec(concurrency=further, duration_s=self.size.seconds)
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
    name, setting = _engine(proof), point.setting
    options = dict(setting.options)
    changed_launch = with_draft_tokens(launch, name, setting.draft_tokens)
    candidate = msgspec.structs.replace(
        proof.candidate,
        speculation=msgspec.structs.replace(
            spec, draft_tokens=setting.draft_tokens, options={}
        ),
        launch=with_options(changed_launch, name, options)
        if options
        else changed_launch,
    )
    most = point.size.cases
    workload = msgspec.structs.replace(
        proof.workload,
        cases=tuple(_absolute(c, proof_path.parent) for c in proof.workload.cases),
        max_cases=min(most, proof.workload.max_cases or most),
        classes_required={},
        load=point.load(proof.workload.load),
    )
    changed = msgspec.structs.replace(proof, candidate=candidate, workload=workload)
    path = out / f"{setting.name()}.yaml"
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
        has_features=False,
        resume=(folder / "manifest.json").exists(),
    )
    return qualify(path, folder, options=options, listener=listener)


def rows_of(setting: Setting, found: Judgement) -> list[Row]:
    """The rows of one point: one for each load."""
    further: Row = {} if setting.words() is None else {"options": setting.words()}
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
                "draft_tokens": setting.draft_tokens,
                **further,
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
    picked = {(c.concurrency, c.draft_tokens, c.options) for c in chosen}
    return tuple(
        {
            **row,
            "chosen": (row["concurrency"], row["draft_tokens"], row.get("options"))
            in picked,
        }
        for row in rows
    )


def _keep(tuned: Tuned, points: Iterable[str], out: Path) -> None:
    """``tune.json``, beside the search and in the run of every point."""
    body = msgspec.json.format(msgspec.json.encode(tuned), indent=2)
    write_atomically(out / SEARCH_NAME, body)
    for name in points:
        write_atomically(out / name / SEARCH_NAME, body)
        judge(out / name)
