"""Search the draft length: speed, acceptance, equality and memory per point.

Every point is a run of its own, judged like any other: the candidate is launched anew
with its draft length, the same cases go to both routes, and what is picked is picked
on correct answers inside the SLO per second, for each load apart, never on acceptance.
"""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import msgspec
import yaml

from routeproof.engines.options_file import has_options_file, with_file
from routeproof.engines.template_options import impossible, with_options
from routeproof.engines.templates import with_draft_tokens
from routeproof.errors import ConfigError, EngineError
from routeproof.gates.facts import Row
from routeproof.jobs.gathering.gathered import gather_run
from routeproof.jobs.gathering.search_record import SEARCH_NAME
from routeproof.jobs.judge import judge
from routeproof.jobs.qualify import Listener, Options, qualify
from routeproof.jobs.report import load_judgement
from routeproof.jobs.tune_choice import Chosen, choose, coarse_first, is_hopeless
from routeproof.jobs.tune_rows import Setting, marked, rows_of
from routeproof.proof.file import load_proof
from routeproof.proof.proof import Proof
from routeproof.proof.route import LaunchSpec, RouteSpec
from routeproof.proof.workload import ArrivalSpec, LoadSpec
from routeproof.records.files import write_atomically
from routeproof.records.store import RunFolder
from routeproof.reports.judgement import Judgement
from routeproof.routes.resolve import resolve

SINGLE = 1
MOST_WARMUP = 1
"""The prompts are short and the engine has just been asked whether it answers."""
BLOCK = 2
"""Cases from one change of the route to the next: a single stream has no ramp to pay,
and more blocks make a narrower interval."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is sent at each point.

    Attributes:
        cases: The sample of equality and quality, and of the speed of a single
            stream; fewer than 8 have no interval there.
        seconds: How long each load beyond a single stream lasts on each route; less
            than 20 have no interval.
    """

    cases: int = 12
    seconds: float = 20.0


NORMAL_SIZE = Size()


@dataclass(frozen=True, slots=True)
class Grid:
    """What is tried.

    Attributes:
        draft_tokens: Draft lengths; the ends are run first, then halves of gaps.
        concurrency: Loads to try each at.
        options: Speculation options to vary as well, each with its values: every
            combination is tried with every draft length. SGLang's ``num_steps`` and
            ``eagle_topk``, llama.cpp's ``ngram_simple_size_n``, vLLM's
            ``prompt_lookup_max``.
        endpoints: Draft length to the base URL of a server that runs with it; other
            lengths are launched.
        within_s: No point is begun that, by the longest so far, would end later;
            ``None`` for no limit.
    """

    draft_tokens: Sequence[int]
    concurrency: Sequence[int]
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    endpoints: Mapping[int, str] = field(default_factory=dict)
    within_s: float | None = None


class Tuned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a search found.

    Attributes:
        rows: One per setting and load, short drafts first.
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
    grid: Grid,
    *,
    size: Size = NORMAL_SIZE,
    listener: Listener | None = None,
) -> Tuned:
    """Run the grid and pick.

    A point takes about as long as its cases on both routes, one after the other, and
    twice ``size.seconds`` for each load beyond a single stream.

    A search that was interrupted goes on when it is called again with the same folder:
    points that were judged are not run again, a point half done is resumed.

    Args:
        proof_path: A proof whose candidate speculates, and is launched unless every
            length has an endpoint.
        out: Folder of the search; each point is a run folder in it.
        grid: What is tried.
        size: How much is sent at each point.
        listener: Who is told.

    Raises:
        ConfigError: The proof cannot be tuned, or a point's proof is wrong.
        EngineError: No point could be run: an engine did not start, or died.
        StoredRunError: The folder cannot be used.
    """
    hears = listener or Listener()
    proof = load_proof(proof_path)
    _check(proof, proof_path, grid)
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    judgements: dict[str, Judgement] = {}
    last: EngineError | None = None
    engine = _engine(proof)
    time = _Time(grid.within_s)
    every = list(settings(grid.draft_tokens, grid.options))
    for place, setting in enumerate(every, 1):
        reason = (
            impossible(engine, setting.draft_tokens, dict(setting.options))
            or is_hopeless(rows, setting.draft_tokens, setting.words())
            or time.is_up()
        )
        if reason is not None:
            skipped[setting.name()] = reason
            continue
        named = f"draft length {setting.draft_tokens} {setting.words() or ''}".strip()
        hears.say(f"{named} (point {place} of {len(every)})")
        wanted = Point(setting, tuple(grid.concurrency), size)
        url = grid.endpoints.get(setting.draft_tokens)
        path = _point_file(proof, proof_path, out, wanted, url)
        try:
            with time.measured():
                found = _point(path, out / setting.name(), hears)
        except EngineError as error:
            failed[setting.name()], last = error.message, error
            continue
        judgements[setting.name()] = found
        run = gather_run(out / setting.name())
        rows += rows_of(setting, found, run, has_single=SINGLE in grid.concurrency)
    if last is not None and not judgements:
        raise last
    rows.sort(key=lambda row: (str(row.get("options")), *_place(row)))
    chosen = choose(rows)
    tuned = Tuned(
        rows=marked(rows, chosen), chosen=chosen, skipped=skipped, failed=failed
    )
    _keep(tuned, judgements, out)
    return tuned


def _place(row: Row) -> tuple[float, float]:
    values = row["draft_tokens"], row["concurrency"]
    one, other = (v if isinstance(v, int | float) else 0.0 for v in values)
    return one, other


@dataclass(slots=True)
class _Time:
    """What is left of the time of a search."""

    within_s: float | None
    begun_s: float = field(default_factory=monotonic)
    longest_s: float = 0.0

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """One point."""
        start = monotonic()
        yield
        self.longest_s = max(self.longest_s, monotonic() - start)

    def is_up(self) -> str | None:
        """Why no further point is begun, or ``None``."""
        if self.within_s is None:
            return None
        left = self.within_s - (monotonic() - self.begun_s)
        if self.longest_s <= left:
            return None
        return (
            f"no time left: a point took up to {self.longest_s:.0f} s, and "
            f"{max(left, 0.0):.0f} of {self.within_s:.0f} s are left"
        )


def settings(
    draft_tokens: Sequence[int], options: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Setting]:
    """Every combination of options, each with all draft lengths, the ends first."""
    varied = options or {}
    for values in itertools.product(*varied.values()):
        chosen = tuple(zip(varied, values, strict=True))
        for length in coarse_first(draft_tokens):
            yield Setting(length, chosen)


def _engine(proof: Proof) -> str:
    engine = proof.candidate.engine or proof.baseline.engine
    return engine.name if engine is not None else "llama.cpp"


def _check(proof: Proof, path: Path, grid: Grid) -> None:
    _, candidate = resolve(proof)
    unknown = sorted(set(grid.endpoints) - set(grid.draft_tokens))
    if unknown:
        raise ConfigError(
            f"there is an endpoint for {unknown[0]} draft tokens, which are not tried",
            key="--at",
            hint="add the length to --draft-tokens",
        )
    if grid.endpoints and grid.options:
        raise ConfigError(
            "options cannot be varied on servers that run already",
            key="--vary",
            hint="leave one of --vary and --at away",
        )
    missing = set(grid.draft_tokens) - set(grid.endpoints)
    if missing and proof.candidate.launch is None:
        raise ConfigError(
            "the candidate is not launched by this proof, so its draft length cannot "
            "be changed",
            path=path,
            key="candidate.launch",
            hint="add `launch:` to the candidate, or name a server for every length "
            f"(--at {min(missing)}=URL)",
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
        """The cases in a single stream, and each further load for so long.

        Both in at least the four blocks that an interval needs.
        """
        further = tuple(c for c in self.concurrency if c != SINGLE)
        sweep = ArrivalSpec(concurrency=further, duration_s=self.size.seconds)
        return LoadSpec(
            quality=ArrivalSpec(concurrency=(SINGLE,)),
            latency=None,
            sweep=sweep if further else None,
            block_size=min(like.block_size, BLOCK),
            warmup_requests=min(like.warmup_requests, MOST_WARMUP),
            request_timeout_s=like.request_timeout_s,
        )


def _point_file(
    proof: Proof, proof_path: Path, out: Path, point: Point, url: str | None
) -> Path:
    """The proof file of one point, written beside its run."""
    setting = point.setting
    path = out / f"{setting.name()}.yaml"
    candidate = _candidate(proof.candidate, setting, url, _engine(proof), path)
    most = point.size.cases
    workload = msgspec.structs.replace(
        proof.workload,
        cases=tuple(_absolute(c, proof_path.parent) for c in proof.workload.cases),
        max_cases=min(most, proof.workload.max_cases or most),
        classes_required={},
        load=point.load(proof.workload.load),
    )
    changed = msgspec.structs.replace(proof, candidate=candidate, workload=workload)
    text = yaml.safe_dump(msgspec.to_builtins(changed), sort_keys=False)
    write_atomically(path, text.encode())
    return path


def _candidate(
    spec: RouteSpec, setting: Setting, url: str | None, engine: str, path: Path
) -> RouteSpec:
    """The candidate with a setting: launched with it, or the server that has it."""
    assert spec.speculation is not None
    speculation = msgspec.structs.replace(
        spec.speculation, draft_tokens=setting.draft_tokens, options={}
    )
    changed = msgspec.structs.replace(spec, speculation=speculation)
    if url is not None:
        return msgspec.structs.replace(changed, launch=None, endpoint=url)
    assert spec.launch is not None
    launch = _launch(spec.launch, setting, engine, path)
    return msgspec.structs.replace(changed, launch=launch)


def _launch(
    launch: LaunchSpec, setting: Setting, engine: str, path: Path
) -> LaunchSpec:
    options = dict(setting.options)
    if has_options_file(launch, engine):
        target = path.with_suffix(".options.yaml")
        return with_file(launch, setting.draft_tokens, options, target)
    changed = with_draft_tokens(launch, engine, setting.draft_tokens)
    return with_options(changed, engine, options) if options else changed


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


def _keep(tuned: Tuned, points: Iterable[str], out: Path) -> None:
    """``tune.json``, beside the search and in the run of every point."""
    body = msgspec.json.format(msgspec.json.encode(tuned), indent=2)
    write_atomically(out / SEARCH_NAME, body)
    for name in points:
        write_atomically(out / name / SEARCH_NAME, body)
        judge(out / name)
