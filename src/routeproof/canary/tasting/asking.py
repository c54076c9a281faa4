"""The thread that asks others about tasted answers, within a budget.

It never holds up the taster: what does not fit waits in a bounded queue or is dropped,
counted by arm. Prompts are in this queue and nowhere else, and only until they were
asked about.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from routeproof.canary.samples.signals import Tasting
from routeproof.canary.samples.spool import Sample
from routeproof.canary.tasting.graders import Exchange, Grader, Opinion
from routeproof.canary.tasting.responses import CHAT_PATH
from routeproof.canary.tasting.responses import PATH as RESPONSES
from routeproof.canary.tasting.shadow_pairs import TastedPair
from routeproof.canary.tasting.taster import Taster
from routeproof.canary.tasting.tee import Copy
from routeproof.canary.tasting.waiting import Waiting
from routeproof.canary.weighing.health import Budget
from routeproof.canary.weighing.policies import PREFERENCE, SHADOW_OFF_TOPIC
from routeproof.scorers.judge.preference import AnswerPair, judge_pairs
from routeproof.scorers.judge.question import Ask
from routeproof.scorers.score import ScoredAnswer
from routeproof.workloads.case import Case

BATCH = 8


@dataclass(slots=True)
class Asker:
    """Asks graders about single answers and a judge about pairs.

    Attributes:
        graders: Signal name to who is asked.
        judge: Who is asked which answer of a pair is better; ``None`` for nobody.
        budget: For single answers; pairs have the budget of the replays.
        over_budget, dropped: Answers not asked about, by arm: for the budget, which
            takes both arms alike, and for a full queue.
        last_error: What broke last, in words; ``None`` while all is well.
    """

    taster: Taster
    graders: Mapping[str, Grader]
    judge: Ask | None
    budget: Budget
    waiting_max: int = 200
    asked: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    over_budget: Counter[str] = field(default_factory=Counter, init=False)
    dropped: Counter[str] = field(default_factory=Counter, init=False)
    last_error: str | None = field(default=None, init=False)
    _waiting: "Waiting[Exchange | TastedPair]" = field(init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._waiting = Waiting(self.waiting_max)

    def offer(self, sample: Sample, copy: Copy) -> None:
        """Take one tasted answer, if the budget and the queue have room."""
        if sample.arm == "baseline" or not self.graders:
            return
        if not self.budget.take():
            self.over_budget[sample.arm] += 1
            return
        path = CHAT_PATH if copy.path == RESPONSES else copy.path
        self._put(Exchange(sample, copy.body, path), sample.arm)

    def offer_pair(self, pair: TastedPair) -> None:
        """Take one compared pair."""
        if self.judge is not None:
            self._put(pair, pair.live.arm)

    def _put(self, item: Exchange | TastedPair, arm: str) -> None:
        if not self._waiting.put(item):
            self.dropped[arm] += 1

    def start(self) -> None:
        """Begin to ask."""
        if self._thread is None and (self.graders or self.judge is not None):
            self._thread = threading.Thread(
                target=self._work, daemon=True, name="asker"
            )
            self._thread.start()

    def stop(self) -> None:
        """Forget what waits and end when the question under way is answered."""
        if self._thread is None:
            return
        self._waiting.forget()
        self._waiting.end()
        self._thread.join(timeout=5.0)
        self._thread = None

    def finish(self) -> None:
        """Ask about everything that waits, then end."""
        if self._thread is not None:
            self._waiting.end()
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        is_over = False
        while not is_over:
            batch, is_over = self._waiting.batch(BATCH)
            try:
                self._ask(batch)
                self.last_error = None
            except Exception as error:  # the border of this thread
                self.last_error = f"{type(error).__name__} while asking"

    def _ask(self, batch: list[Exchange | TastedPair]) -> None:
        singles = [each for each in batch if isinstance(each, Exchange)]
        found: list[dict[str, bool | None]] = [{} for _ in singles]
        for name, grader in self.graders.items():
            opinions = self._opinions(name, grader, singles)
            for at, opinion in enumerate(opinions):
                found[at][name] = opinion.bad
        for exchange, said in zip(singles, found, strict=True):
            self.taster.note_opinion(exchange.sample, said)
        for each in batch:
            if isinstance(each, TastedPair):
                self._ask_of_pair(each)

    def _opinions(
        self, name: str, grader: Grader, exchanges: list[Exchange]
    ) -> list[Opinion]:
        """Who is asked may break in any way: no opinion then, and it counts."""
        if not exchanges:
            return []
        try:
            found = grader(exchanges)
        except Exception as error:
            problem = f"{type(error).__name__} while asking"
            found = [Opinion(problem=problem)] * len(exchanges)
        for exchange, opinion in zip(exchanges, found, strict=True):
            arm = exchange.sample.arm
            self.asked[name, arm] += 1
            if opinion.bad is not None or opinion.problem is not None:
                self.taster.ledger.note(name, arm, opinion.problem)
        return found

    def _ask_of_pair(self, pair: TastedPair) -> None:
        """Is either side off-topic, and which is better, in both orders."""
        found: dict[str, float] = {}
        topic = self.graders.get("off_topic")
        if topic is not None:
            sides = [Exchange(one, pair.body) for one in (pair.control, pair.canary)]
            bad = [o.bad for o in self._opinions(SHADOW_OFF_TOPIC, topic, sides)]
            if bad[0] is not None and bad[1] is not None:
                found[SHADOW_OFF_TOPIC] = float(bad[0]) - float(bad[1])
        value = self._preference(pair)
        if value is not None:
            found[PREFERENCE] = 2 * value - 1
        self.taster.note_pair(found, pair.live.request_id, preference=value)

    def _preference(self, pair: TastedPair) -> float | None:
        if self.judge is None:
            return None
        case = Case(
            id=pair.live.request_id,
            class_="live",
            prompt=self.taster.cleaner.text(Exchange(pair.live, pair.body).question),
            parameters=pair.live.request,
            scorers=("preference",),
        )
        answers = AnswerPair(case, _answer(pair.control), _answer(pair.canary))
        (judged,) = judge_pairs([answers], self.judge, seed=len(self.asked))
        is_silent = judged.how == "no verdict"
        problem = "the judge gave no verdict that can be read" if is_silent else None
        self.asked[PREFERENCE, pair.live.arm] += 1
        self.taster.ledger.note(PREFERENCE, pair.live.arm, problem)
        return judged.value


def _answer(sample: Sample) -> ScoredAnswer:
    return Tasting(sample, "", {}).answer()
