"""Error rates of every statistical procedure, by simulation with known truth.

    python benchmarks/error_rates.py                  prints the table
    python benchmarks/error_rates.py --write PAGE     puts it between PAGE's markers

The rates that other tools' rules have in the same simulations stand beside ours. Seeds
are fixed; the whole takes a few minutes on two cores.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, ndtr

from routeproof.stats.changepoint import change_point
from routeproof.stats.clusters import Differences, clustered
from routeproof.stats.mean_bounds import student_t
from routeproof.stats.multiplicity import holm, holm_of_flips
from routeproof.stats.paired_binary import harm_p_value, non_inferiority
from routeproof.stats.paired_graded import graded_non_inferiority
from routeproof.stats.percentile import percentile
from routeproof.stats.planner import pairs_needed, power
from routeproof.stats.ratio import paired_ratio
from routeproof.stats.sampled_tokens import sampled_tokens_test
from routeproof.stats.screening import SlicePairs, screen
from routeproof.stats.sequential import betting_path
from routeproof.stats.siblings import siblings_test
from routeproof.stats.tango import score
from routeproof.stats.trend import trend
from routeproof.stats.two_sample import categorical_test, energy_test, mmd_test
from routeproof.stats.until_decided import StoppingRule, simulate

ALPHA = 0.05
START, END = "<!-- error rates: start -->", "<!-- error rates: end -->"


class Row(NamedTuple):
    """One line: what was simulated, what was promised, what came out."""

    procedure: str
    setting: str
    promise: str
    measured: float
    runs: int
    error: float | None = None


def share(hits: NDArray[np.bool_] | list[bool]) -> float:
    return float(np.mean(hits))


def paired_binary(runs: int = 4000) -> Iterator[Row]:
    rng = np.random.default_rng(1)
    for n in (50, 200, 1000):
        for gains in (0.0, 0.02):
            loss = 0.02
            shares = [loss + gains, gains, 1 - loss - 2 * gains]
            tables = rng.multinomial(n, shares, size=runs)
            seen, times = np.unique(tables, axis=0, return_counts=True)
            b, c = seen[:, 0], seen[:, 1]
            setting = f"loses exactly 2 %, n {n}, gains {gains:.0%}"
            rules: dict[str, NDArray[np.bool_]] = {
                "exact paired": np.array(
                    [
                        non_inferiority(
                            losses=int(x),
                            gains=int(y),
                            n=n,
                            tolerance=loss,
                            alpha=ALPHA,
                        ).decision
                        == "certified"
                        for x, y in zip(b, c, strict=True)
                    ]
                ),
                "*Tango's score alone*": ndtr(score(b, c, n, loss)) <= ALPHA,
                "*Wald interval*": _wald(b, c, n, loss),
                '*"no significant drop"*': np.minimum(1, 2 * bdtr(c, b + c, 0.5))
                > ALPHA,
            }
            for rule, certified in rules.items():
                rate = float((certified * times).sum() / runs)
                yield Row(rule, setting, "certifies <= 5 %", rate, runs)


def _wald(
    b: NDArray[np.int64], c: NDArray[np.int64], n: int, loss: float
) -> NDArray[np.bool_]:
    d = (b - c) / n
    se = np.sqrt(np.maximum((b + c) / n - d * d, 0) / n)
    return d + 1.6449 * se < loss


def planned_power(runs: int = 4000) -> Iterator[Row]:
    rng = np.random.default_rng(2)
    for tolerance, flips in ((0.05, 0.05), (0.03, 0.02), (0.02, 0.01)):
        n = pairs_needed(flips=flips, tolerance=tolerance, alpha=ALPHA)
        promised = power(n=n, flips=flips, tolerance=tolerance, alpha=ALPHA)
        tables = rng.multinomial(n, [flips / 2, flips / 2, 1 - flips], size=runs)
        seen, times = np.unique(tables, axis=0, return_counts=True)
        good = [
            non_inferiority(
                losses=int(b), gains=int(c), n=n, tolerance=tolerance, alpha=ALPHA
            ).decision
            == "certified"
            for b, c, _ in seen
        ]
        yield Row(
            "plan",
            f"equal routes, tolerance {tolerance:.0%}, flips {flips:.0%}, n {n}",
            f"certifies {promised:.1%}",
            float((np.array(good) * times).sum() / runs),
            runs,
        )


Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
GRADED: dict[str, Draw] = {
    "symmetric noise": lambda rng, n: rng.normal(-0.02, 0.15, n).clip(-1, 1),
    "2 % collapse, rest equal": lambda rng, n: -1.0 * (rng.random(n) < 0.02),
    "4 % drop by half, in noise": lambda rng, n: (
        rng.normal(0, 0.05, n) - 0.5 * (rng.random(n) < 0.04)
    ).clip(-1, 1),
    "mixture, 10 % worse": lambda rng, n: np.where(
        rng.random(n) < 0.1, -0.8 * rng.random(n), rng.normal(0.02 / 0.9, 0.05, n)
    ),
}


def paired_graded(runs: int = 400) -> Iterator[Row]:
    for name, draw in GRADED.items():
        for n in (50, 200):
            rng = np.random.default_rng(3)
            ours, naive = [], []
            for seed in range(runs):
                values = draw(rng, n)
                answer = graded_non_inferiority(
                    Differences.of(values),
                    tolerance=0.02,
                    alpha=ALPHA,
                    resamples=500,
                    seed=seed,
                )
                ours.append(answer.mean.decision == "certified")
                t = student_t(clustered(values, np.arange(n)))
                naive.append((t.interval(ALPHA).low or 0) > -0.02)
            setting = f"loses exactly 2 %: {name}, n {n}"
            yield Row("graded, three bounds", setting, "<= 5 %", share(ours), runs)
            yield Row("*paired t alone*", setting, "<= 5 %", share(naive), runs)


def clusters(runs: int = 300) -> Iterator[Row]:
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(200), 3)
    for name, groups in (("graded, clustered", cluster), ("*cases pooled*", None)):
        hits = []
        for seed in range(runs):
            shared = rng.normal(0, 0.15, 200)[cluster]
            values = (shared + rng.normal(-0.02, 0.05, 600)).clip(-1, 1)
            answer = graded_non_inferiority(
                Differences.of(values, groups),
                tolerance=0.02,
                alpha=ALPHA,
                resamples=500,
                seed=seed,
            )
            hits.append(answer.mean.decision == "certified")
        yield Row(
            name,
            "loses exactly 2 %, 200 groups of 3 cases",
            "<= 5 %",
            share(hits),
            runs,
        )


def intervals(runs: int = 1000) -> Iterator[Row]:
    rng = np.random.default_rng(5)
    for q, n in ((0.5, 30), (0.95, 100), (0.99, 500)):
        hits = []
        for _ in range(runs):
            found = percentile(rng.random(n), q).interval
            assert found is not None
            hits.append((found.low or 0) <= q <= (found.high or 1))
        yield Row(
            "percentile", f"p{100 * q:g} of {n}", "covers >= 95 %", share(hits), runs
        )
    for groups in (6, 20):
        block = np.repeat(np.arange(groups), 16)
        for statistic in ("geometric_mean", "p50", "p90"):
            hits = []
            for seed in range(runs // 4):
                case = rng.normal(0, 0.5, block.size)
                own = rng.normal(0, 0.08, groups)[block]
                first = np.exp(case + rng.normal(0, 0.1, block.size))
                second = 0.8 * np.exp(case + own + rng.normal(0, 0.1, block.size))
                answer = paired_ratio(
                    first,
                    second,
                    blocks=block,
                    statistic=statistic,  # type: ignore[arg-type]
                    resamples=200,
                    seed=seed,
                ).interval
                assert answer is not None
                hits.append((answer.low or 0) <= 0.8 <= (answer.high or 9))
            yield Row(
                "latency ratio",
                f"{statistic}, {groups} drifting blocks of 16",
                "covers 95 %",
                share(hits),
                runs // 4,
            )


def sequential(runs: int = 1500, steps: int = 1500) -> Iterator[Row]:
    rng = np.random.default_rng(6)
    for gains in (0.0, 0.01, 0.05):
        u = rng.random((runs, steps))
        x = np.where(u < 0.02 + gains, -1.0, np.where(u < 0.02 + 2 * gains, 1.0, 0.0))
        path = betting_path(x, "safe", tolerance=0.02)
        setting = f"loses exactly 2 %, gains {gains:.0%}, looked at {steps} times"
        ever = share(path.max(axis=1) >= -np.log(ALPHA))
        yield Row("e-process, safe", setting, "ever <= 5 %", ever, runs)
        n = np.arange(1, steps + 1)
        mean = np.cumsum(x, axis=1) / n
        sd = np.sqrt(np.maximum(np.cumsum(x * x, axis=1) / n - mean**2, 1e-9))
        z = (mean + 0.02) / (sd / np.sqrt(n))
        ever = share((z[:, 49::20] > 1.6449).any(axis=1))
        yield Row("*z-test every 20 pairs*", setting, "ever <= 5 %", ever, runs)


def until_decided(runs: int = 1000) -> Iterator[Row]:
    rule = StoppingRule(tolerance=0.02, alpha=ALPHA, floor=50, ceiling=1060)
    for name, losses, gains, promise in (
        ("loses exactly 2 %", 0.02, 0.0, "certifies <= 5 %"),
        ("loses exactly 2 %, noisy", 0.04, 0.02, "certifies <= 5 %"),
    ):
        seen = simulate(rule, losses=losses, gains=gains, paths=runs, seed=7)
        rate = share(seen.certified)
        yield Row("until decided", name, promise, rate, runs)
    for name, losses, gains in (
        ("same route, no flips", 0.0, 0.0),
        ("same route, 1 % flips", 0.005, 0.005),
        ("a loss of 5 points", 0.06, 0.01),
    ):
        seen = simulate(rule, losses=losses, gains=gains, paths=runs, seed=8)
        used = seen.used / 837
        error = float(used.std() / runs**0.5)
        promise = "uses <= 50 % of the fixed 837"
        yield Row("until decided", name, promise, float(used.mean()), runs, error)


def distributions(runs: int = 200) -> Iterator[Row]:
    rng = np.random.default_rng(9)
    for temperature in (1.0, 1.3, 1.6):
        hits = []
        for seed in range(runs):
            p = rng.dirichlet(np.full(12, 0.3), size=(15, 12))
            arms = []
            for heat in (1.0, temperature):
                q = p ** (1 / heat)
                q /= q.sum(axis=2, keepdims=True)
                u = rng.random((15, 8, 12, 1))
                arms.append((u > q.cumsum(axis=2)[:, None]).sum(axis=3).tolist())
            hits.append(
                (mmd_test(*arms, permutations=199, seed=seed).p_value or 1) <= ALPHA
            )
        promise = "rejects 5 %" if temperature == 1 else "power"
        setting = f"15 prompts x 8 + 8 answers, temperature x {temperature:g}"
        yield Row("MMD", setting, promise, share(hits), runs)
    for factor in (1.0, 1.3, 1.5):
        hits = []
        for seed in range(runs):
            mean = rng.uniform(20, 2000, 30)
            arms = [[rng.gamma(4, k * m / 4, 8) for m in mean] for k in (1.0, factor)]
            hits.append(
                (energy_test(*arms, permutations=199, seed=seed).p_value or 1) <= ALPHA
            )
        promise = "rejects 5 %" if factor == 1 else "power"
        setting = f"30 prompts x 8 + 8 lengths, x {factor:g}"
        yield Row("energy distance", setting, promise, share(hits), runs)
    for shift in (0.0, 0.5):
        hits = []
        for seed in range(runs):
            p = rng.dirichlet([0.5] * 4, size=25)
            q = (1 - shift) * p + shift * p[:, ::-1]
            arms = [[list(rng.choice(4, 5, p=row)) for row in arm] for arm in (p, q)]
            hits.append(
                (categorical_test(*arms, permutations=199, seed=seed).p_value or 1)
                <= ALPHA
            )
        promise = "rejects 5 %" if shift == 0 else "power"
        yield Row(
            "chi-square",
            f"25 prompts x 5 + 5, shift {shift:g}",
            promise,
            share(hits),
            runs,
        )


def sampled_tokens(runs: int = 200, tokens: int = 6000) -> Iterator[Row]:
    rng = np.random.default_rng(10)
    for name, heat, swap in (
        ("no fault", 1.0, 0.0),
        ("temperature + 5 %", 1.05, 0.0),
        ("temperature + 10 %", 1.1, 0.0),
        ("1 % of tokens swapped", 1.0, 0.01),
        ("3 % of tokens swapped", 1.0, 0.03),
    ):
        hits = []
        for seed in range(runs):
            p = -np.sort(-rng.dirichlet(np.full(40, 0.2), size=tokens // 50), axis=1)
            p = p.repeat(50, axis=0)
            q = p ** (1 / heat)
            q /= q.sum(axis=1, keepdims=True)
            token = (rng.random((tokens, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, 39)
            swapped = rng.random(tokens) < swap
            token = np.where(swapped, rng.integers(0, 40, tokens), token)
            row = np.arange(tokens)
            drawn = p[row, token]
            ahead = p.cumsum(axis=1)[row, token] - drawn
            found = sampled_tokens_test(
                ahead.clip(0), np.maximum(drawn, 1e-300), seed=seed
            )
            hits.append((found.p_value if found.p_value is not None else 1) <= ALPHA)
        promise = "rejects <= 5 %" if name == "no fault" else "power"
        yield Row(
            "sampled tokens", f"{tokens} tokens, {name}", promise, share(hits), runs
        )


def series(runs: int = 300) -> Iterator[Row]:
    rng = np.random.default_rng(11)
    t = np.arange(300.0)
    for rho in (0.0, 0.5, 0.9):
        hits = []
        for _ in range(runs):
            noise, y = rng.normal(size=300), np.empty(300)
            y[0] = noise[0] / (1 - rho**2) ** 0.5
            for i in range(1, 300):
                y[i] = rho * y[i - 1] + noise[i]
            found = trend(t, y).interval
            assert found is not None
            hits.append((found.low or 0) <= 0 <= (found.high or 0))
        yield Row(
            "trend",
            f"300 samples, neighbours alike {rho:g}",
            "covers 95 %",
            share(hits),
            runs,
        )
    hits = [
        (change_point(rng.normal(size=50), permutations=199, seed=s).p_value or 1)
        <= ALPHA
        for s in range(runs)
    ]
    yield Row(
        "change point", "steady series of 50", "finds one in 5 %", share(hits), runs
    )


def screening(runs: int = 500) -> Iterator[Row]:
    rng = np.random.default_rng(12)
    hits = []
    for _ in range(runs):
        tables = rng.multinomial(200, [0.05, 0.05, 0.9], size=20)
        slices = {
            str(i): SlicePairs(losses=int(b), gains=int(c), n=200)
            for i, (b, c, _) in enumerate(tables)
        }
        hits.append(any(s.status == "harmed" for s in screen(slices, alpha=ALPHA)))
    yield Row(
        "screening", "20 equal slices of 200", "any alarm <= 5 %", share(hits), runs
    )


def screening_of_few_flips(runs: int = 2000) -> Iterator[Row]:
    rng = np.random.default_rng(13)
    for name, adjust in (
        ("screening, discrete Holm", holm_of_flips),
        ("*Holm*", lambda p, _: holm(p)),
    ):
        for harmed in (0, 9):
            hits = []
            for _ in range(runs):
                flips = rng.binomial(60, 0.04, 30)
                losses = rng.binomial(flips, 0.5)
                if harmed:
                    flips[0], losses[0] = harmed, harmed
                p = [
                    harm_p_value(losses=int(b), gains=int(n - b))
                    for b, n in zip(losses, flips, strict=True)
                ]
                adjusted = adjust(p, flips.tolist())
                found = adjusted[0] if harmed else adjusted.min()
                hits.append(found <= ALPHA)
            setting = "30 slices of 60, 4 % flips" + (
                ", one loses 9 and wins none" if harmed else ", all equal"
            )
            promise = "power" if harmed else "any alarm <= 5 %"
            yield Row(name, setting, promise, share(hits), runs)


def gain_at_what_was_asked(runs: int = 2000) -> Iterator[Row]:
    rng = np.random.default_rng(14)
    for groups in (6, 12, 40):
        hits = []
        for seed in range(runs):
            drift = rng.normal(0, 0.1, groups)[:, None]
            first, second = (
                np.exp(drift + rng.normal(0, 0.15, (groups, 8))).sum(axis=1)
                for _ in range(2)
            )
            found = paired_ratio(
                first,
                second / 1.2,
                statistic="mean",
                level=1 - 2 * ALPHA,
                resamples=400,
                seed=seed,
            ).interval
            assert found is not None
            hits.append((found.high or 9) <= 1 / 1.2)
        setting = f"throughput gain of exactly what was asked, {groups} blocks"
        yield Row("gain", setting, "proven in <= 5 %", share(hits), runs)


def siblings(runs: int = 400) -> Iterator[Row]:
    rng = np.random.default_rng(15)
    letters = np.array(list("abcdefgh"))
    for name, repeated in (("independent", 0.0), ("one in three repeats", 1 / 3)):
        hits = []
        for seed in range(runs):
            prompts = []
            for _ in range(4):
                p = rng.dirichlet(np.full(8, 0.5), size=16)
                requests = []
                for _ in range(2):
                    texts = [
                        "".join(letters[rng.choice(8, p=row)] for row in p)
                        for _ in range(4)
                    ]
                    requests.append(
                        [texts[0]]
                        + [
                            texts[0] if rng.random() < repeated else t
                            for t in texts[1:]
                        ]
                    )
                prompts.append(requests)
            found = siblings_test(prompts, permutations=199, seed=seed)
            hits.append((found.p_value or 1) <= ALPHA)
        promise = "power" if repeated else "rejects <= 5 %"
        setting = f"4 prompts x 2 requests x 4 choices, {name}"
        yield Row("siblings", setting, promise, share(hits), runs)


PARTS = (
    paired_binary,
    planned_power,
    paired_graded,
    clusters,
    intervals,
    sequential,
    until_decided,
    distributions,
    sampled_tokens,
    series,
    screening,
    screening_of_few_flips,
    gain_at_what_was_asked,
    siblings,
)


def table(only: str | None = None) -> str:
    """The table, or one part of it, as Markdown; rules of other tools in italics."""
    lines = [
        "| procedure | truth simulated | promise | measured | runs |",
        "|---|---|---|---:|---:|",
    ]
    for part in (p for p in PARTS if only in (None, p.__name__)):
        for row in part():
            error = row.error
            if error is None:
                error = (row.measured * (1 - row.measured) / row.runs) ** 0.5
            lines.append(
                f"| {row.procedure} | {row.setting} | {row.promise} | "
                f"{row.measured:.1%} ± {error:.1%} | {row.runs} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS])
    given = parser.parse_args()
    page: Path | None = None if given.only else given.write
    made = table(given.only)
    if page is None:
        print(made)
        return
    text = page.read_text()
    before, after = text.split(START)[0], text.split(END)[1]
    page.write_text(f"{before}{START}\n{made}\n{END}{after}")


if __name__ == "__main__":
    main()
