"""Ending the quality stage of a run as soon as every required question is settled."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from math import ceil

import msgspec

from routeproof.errors import ConfigError
from routeproof.gates.evidence import Agreed
from routeproof.gates.facts import QualityRow
from routeproof.gates.in_order import Order
from routeproof.gates.measure_quality import Answers, Standing, standings
from routeproof.gates.questions import questions
from routeproof.gates.slices import case_facts
from routeproof.jobs.gathering.gathered import scores_of
from routeproof.jobs.gathering.pass_rates import with_pass_rates
from routeproof.metrics.requests import gather
from routeproof.metrics.score_table import score_table
from routeproof.proof.proof import Proof
from routeproof.records.store import RunFolder
from routeproof.runs.blocks import Block, Plan, Planned
from routeproof.workloads.case import Case

ROUND_GROWTH = 0.05
"""Each round adds so many cases, as a share of those there are."""
NOTE = "until_decided"
"""Key under which the manifest's notes tell how the run stopped."""
_COLUMNS = ("arm", "phase", "level", "case_id")


def check_stage(proof: Proof) -> None:
    """Refuse a quality stage that cannot be stopped at any case.

    Raises:
        ConfigError: It has several levels, or does not send every case once a trial.
    """
    quality = proof.workload.load.quality
    closed = len(quality.concurrency) == 1 and not quality.request_rate
    whole = quality.trace is None and quality.duration_s is quality.requests is None
    if not (closed and whole):
        raise ConfigError(
            "stopping as soon as it is decided needs one level of concurrency that "
            "sends every case",
            key="workload.load.quality",
            hint="write `quality: {concurrency: [1]}`, or leave `--until-decided` out",
        )


def standings_of(
    folder: RunFolder, cases: Sequence[Case], agreed: Agreed, *, seed: int
) -> tuple[Standing, ...]:
    """How every required question stands, from what is on disk.

    Answers that have no score yet are scored, and their scores stored.

    Args:
        folder: The run.
        cases: In the order in which they were drawn.
        agreed: Questions, tolerances and the stopping rule.
        seed: Of resampling.
    """
    assert agreed.policy.until_decided is not None
    scores = scores_of(folder, tuple(cases))
    assert scores is not None
    facts = case_facts(cases, {}, {})
    scores, _ = with_pass_rates(scores, questions(agreed, facts), "quality")
    requests = gather(folder.parts(only=_COLUMNS))
    order = Order.of(agreed.policy.until_decided, cases, requests, trials=agreed.trials)
    return standings(
        Answers(
            table=score_table(scores),
            requests=requests,
            facts=facts,
            agreed=agreed,
            seed=seed,
            order=order,
        )
    )


class UntilDecided:
    """Implements ``runs.until.Until`` for the quality stage.

    Looks after whole rounds only: all arms and all trials of some cases are there.
    A round adds a twentieth of the cases so far, so that looking costs little and
    little is sent beyond what was needed.
    """

    def __init__(
        self,
        plan: Plan,
        folder: RunFolder,
        agreed: Agreed,
        *,
        keep_going: bool,
        say: Callable[[str], None],
    ) -> None:
        """``keep_going``: settle the other questions although one has failed."""
        self._plan = plan
        self._folder = folder
        self._agreed = agreed
        self._keep_going = keep_going
        self._say = say
        self._wanted: frozenset[str] | None = None
        rule = agreed.policy.until_decided
        assert rule is not None
        self._rounds = _rounds(plan, rule.floor)
        self._is_told = False

    def is_wanted(self, block: Block, planned: Planned) -> bool:
        """Whether some open question needs the case."""
        if block.phase != "quality" or self._wanted is None:
            return True
        return self._plan.cases[planned.case].id in self._wanted

    def is_due(self, block: Block) -> bool:
        """Whether a round ends with ``block``."""
        is_open = self._wanted is None or bool(self._wanted)
        return block.number in self._rounds and is_open

    async def look(self) -> None:
        """Answer every required question from what is on disk."""
        await asyncio.to_thread(self._look)

    def _look(self) -> None:
        found = standings_of(
            self._folder, self._plan.cases, self._agreed, seed=self._plan.seed
        )
        harmed = [row for each in found for row in each.rows if _is_harmed(row)]
        wanted = frozenset(case for each in found for case in each.wanted)
        if harmed and not self._keep_going:
            wanted = frozenset()
        self._wanted = wanted
        self._note(found, harmed)

    def _note(self, found: Iterable[Standing], harmed: list[QualityRow]) -> None:
        rows = [row for each in found for row in each.rows]
        sent = self._sent()
        why = None
        if not self._wanted:
            why = "every required question is settled"
            if harmed and not all(row.settled_after for row in rows):
                why = f"{harmed[0].question} failed"
            if sent >= len(self._plan.cases):
                why = "every case was sent"
        manifest = self._folder.read_manifest()
        note = {
            "cases_sent": sent,
            "cases_planned": len(self._plan.cases),
            "ended_because": why,
            "questions": {
                row.question: {
                    "decision": None if row.answer is None else row.answer.decision,
                    "settled_after": row.settled_after,
                    "ceiling": row.ceiling,
                }
                for row in rows
            },
        }
        notes = {**manifest.notes, NOTE: note}
        self._folder.write_manifest(msgspec.structs.replace(manifest, notes=notes))
        if why is not None and not self._is_told:
            self._is_told = True
            self._say(f"{why} after {sent} of {len(self._plan.cases)} cases")

    def _sent(self) -> int:
        """Cases with a record of the candidate."""
        sent: set[str] = set()
        for part in self._folder.parts(only=_COLUMNS):
            keep = part.is_in("phase", "quality") & part.is_in("arm", "candidate")
            sent.update(part.where(keep).text("case_id").tolist())
        return len(sent)


def _is_harmed(row: QualityRow) -> bool:
    return row.answer is not None and row.answer.decision == "harmed"


def _rounds(plan: Plan, floor: int) -> frozenset[int]:
    """Numbers of the blocks after which to look."""
    last_of_group: dict[int, Block] = {}
    for stage in plan.stages:
        for block in stage.blocks:
            if block.phase == "quality":
                last_of_group[block.group] = block
    trials = plan.workload.trials
    due, cases, after = [], 0, min(floor, len(plan.cases))
    for block in last_of_group.values():
        if block.first_trial != trials - 1:
            continue
        cases += block.count or 0
        if cases >= min(after, len(plan.cases)):
            due.append(block.number)
            after = cases + max(1, ceil(ROUND_GROWTH * cases))
    return frozenset(due)
