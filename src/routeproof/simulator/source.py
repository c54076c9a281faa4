"""Where the tokens of a sequence come from, pass by pass: a script or a toy model."""

from dataclasses import dataclass, field
from random import Random

import numpy as np

from routeproof.simulator import draws, language
from routeproof.simulator.ask import Ask
from routeproof.simulator.defects import SamplingDefects
from routeproof.simulator.sampling import Filter, NextOf, speculate
from routeproof.simulator.script import Finish, Piece, Script


@dataclass(slots=True)
class Passed:
    """What one pass did: pieces shown, drafts verified, drafts accepted."""

    emitted: int
    drafted: int
    accepted: int


@dataclass(slots=True)
class ScriptSource:
    """Hands out a script; drafts are accepted by chance, as the route says."""

    script: Script
    rng: Random
    pieces: list[Piece] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether the answer is complete."""
        return len(self.pieces) >= len(self.script.pieces)

    @property
    def finish(self) -> Finish:
        """Why it ended."""
        return self.script.finish

    def step(self, draft_tokens: int, acceptance: tuple[float, ...]) -> Passed:
        """One pass with ``draft_tokens`` drafts, position ``i`` kept by chance."""
        accepted = 0
        random = self.rng.random
        while accepted < draft_tokens and random() < acceptance[accepted]:
            accepted += 1
        at = len(self.pieces)
        new = self.script.pieces[at : at + accepted + 1]
        self.pieces.extend(new)
        return Passed(len(new), draft_tokens, accepted)


@dataclass(slots=True)
class ToySource:
    """Samples from the toy model by real speculative sampling."""

    ask: Ask
    defects: SamplingDefects
    model: language.ToyModel
    rng: np.random.Generator
    context: list[int]
    pieces: list[Piece] = field(default_factory=list)
    done: bool = False
    finish: Finish = "stop"

    def step(self, draft_tokens: int, acceptance: tuple[float, ...]) -> Passed:
        """One pass; ``acceptance`` is not used, the two models decide it."""
        first = not self.pieces
        wrong = self.defects
        verified = speculate(
            self.context,
            self._filtered(0),
            self._filtered(1),
            0 if first else draft_tokens,
            self.rng,
            rule=wrong.verify,
            strength=wrong.verify_strength,
        )
        before = len(self.pieces)
        for word in verified.tokens:
            if word == language.END:
                self.done = True
                break
            self.context.append(word)
            self.pieces.append(Piece("text", language.WORDS[word]))
            if len(self.pieces) >= self.ask.max_tokens:
                self.done, self.finish = True, "length"
                break
        return Passed(len(self.pieces) - before, verified.drafted, verified.accepted)

    def ranked(self, at: int) -> list[tuple[str, float]]:
        """Every token and its log probability before the token ``at`` was drawn.

        The model's own, before temperature and filters, as engines tell it.
        """
        p = self.model.target(self.context[: language.START + at])
        names = (*language.WORDS, language.END_TOKEN)
        order = np.argsort(-p, kind="stable").tolist()
        return [(names[i], float(np.log(p[i]))) for i in order if p[i] > 0.0]

    def _filtered(self, which: int) -> NextOf:
        ask, wrong = self.ask, self.defects
        keep = Filter(
            0.0 if "temperature" in wrong.ignored else _shifted(ask, wrong),
            0 if "top_k" in wrong.ignored else ask.top_k,
            1.0 if "top_p" in wrong.ignored else ask.top_p,
            0.0 if "min_p" in wrong.ignored else ask.min_p,
        )
        return lambda context: self.model.filtered(which, keep, context)


def _shifted(ask: Ask, wrong: SamplingDefects) -> float:
    if ask.temperature <= 0.0:
        return 0.0
    return max(ask.temperature + wrong.temperature_shift, 0.05)


def toy_source(
    ask: Ask, choice: int, serial: int, wrong: SamplingDefects, draft_noise: float
) -> ToySource:
    """A toy source for a request; equal seeds give equal texts without speculation."""
    seeded = ask.seed is not None and "seed" not in wrong.ignored
    name = f"{ask.seed}.{choice}" if seeded else f"u{serial}.{choice}"
    seed = int(draws.unit("toy", ask.key, name) * 2**53)
    return ToySource(
        ask,
        wrong,
        language.model(11, draft_noise),
        np.random.default_rng(seed),
        language.start_of(ask.key),
    )
