"""Published answers, to their published digits."""

import csv
import json
from pathlib import Path

import pytest

from routeproof.stats import paired_table, proportion
from routeproof.stats.paired_binary import non_inferiority
from routeproof.stats.tango import tango_interval

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
EXAMPLES = DATA / "stats_worked_examples" / "examples.jsonl"


def rows(path):
    if not path.exists():
        return [
            pytest.param(
                None, marks=pytest.mark.skip(f"{path.parent.name} is not there")
            )
        ]
    read = [json.loads(line) for line in path.read_text().splitlines()]
    return [pytest.param(row, id=row.get("id")) for row in read]


def of_kind(*kinds, method=None):
    return [
        param
        for param in rows(EXAMPLES)
        if param.values[0] is None
        or (
            param.values[0]["kind"] in kinds
            and (method is None or param.values[0]["expected"].get("method") in method)
        )
    ]


@pytest.mark.parametrize(
    "row", of_kind("mcnemar_exact_two_sided", "mcnemar_midp_two_sided")
)
def test_mcnemar_exact(row):
    of = {
        "mcnemar_exact_two_sided": paired_table.mcnemar_exact,
        "mcnemar_midp_two_sided": paired_table.mcnemar_mid_p,
    }[row["kind"]]
    p = of(row["data"]["b"], row["data"]["c"])
    assert p == pytest.approx(row["expected"]["p_value"], abs=row["tol"])


@pytest.mark.parametrize(
    "row",
    of_kind(
        "mcnemar_chi2", "mcnemar_chi2_continuity", "mcnemar_z", "mcnemar_z_continuity"
    ),
)
def test_mcnemar_chi_square(row):
    statistic, p = paired_table.mcnemar_chi_square(
        row["data"]["b"],
        row["data"]["c"],
        continuity=row["kind"].endswith("continuity"),
    )
    expected = row["expected"]
    close = {"abs": row["tol"], "rel": row["tol"] if "note" in row else None}
    assert p == pytest.approx(expected["p_value"], **close)
    if "z" in expected:
        assert statistic**0.5 == pytest.approx(abs(expected["z"]), abs=row["tol"])
    else:
        assert statistic == pytest.approx(expected["statistic"], rel=1e-6)


@pytest.mark.parametrize(
    "row",
    of_kind(
        "paired_difference_ci_90", "paired_difference_ci_95", method=["Tango score"]
    ),
)
def test_tango(row):
    data = row["data"]
    interval = tango_interval(
        losses=data["c"],
        gains=data["b"],
        n=sum(data.values()),
        level=int(row["kind"][-2:]) / 100,
    )
    expected = row["expected"]
    # Some sources print b - c as first less second, some the reverse.
    assert interval.low == pytest.approx(expected["lower"], abs=row["tol"])
    assert interval.high == pytest.approx(expected["upper"], abs=row["tol"])


@pytest.mark.parametrize("row", of_kind("proportion_ci_95"))
def test_intervals_of_a_share(row):
    of = {
        "Clopper-Pearson": proportion.clopper_pearson,
        "exact mid-p": proportion.mid_p,
    }[row["expected"]["method"]]
    interval = of(row["data"]["x"], row["data"]["n"])
    assert interval.low == pytest.approx(row["expected"]["lower"], abs=row["tol"])
    assert interval.high == pytest.approx(row["expected"]["upper"], abs=row["tol"])


@pytest.mark.parametrize("row", of_kind("independent_difference_ci_95"))
def test_intervals_of_two_independent_shares(row):
    method = {
        "Miettinen-Nurminen": "miettinen_nurminen",
        "Mee": "mee",
        "Newcombe Wilson square-and-add": "newcombe",
    }[row["expected"]["method"]]
    data = row["data"]
    interval = proportion.independent_difference(
        (data["x1"], data["n1"]), (data["x2"], data["n2"]), method=method
    )
    assert interval.low == pytest.approx(row["expected"]["lower"], abs=row["tol"])
    assert interval.high == pytest.approx(row["expected"]["upper"], abs=row["tol"])


@pytest.mark.parametrize("row", of_kind("paired_ratio_ci_95", method=["Tang score"]))
def test_ratio_of_paired_shares(row):
    data = row["data"]
    interval = paired_table.ratio_interval(
        both=data["a"],
        losses=data["b"],
        gains=data["c"],
        n=sum(data.values()),
        level=0.95,
    )
    assert interval.low == pytest.approx(row["expected"]["lower"], abs=row["tol"])
    assert interval.high == pytest.approx(row["expected"]["upper"], abs=row["tol"])


@pytest.mark.parametrize(
    "row",
    of_kind("paired_conditional_odds_ratio_ci_95", method=["transformed Wilson"]),
)
def test_conditional_odds_ratio(row):
    interval = paired_table.odds_ratio_interval(
        losses=row["data"]["b"], gains=row["data"]["c"], level=0.95
    )
    assert interval.low == pytest.approx(row["expected"]["lower"], abs=row["tol"])
    assert interval.high == pytest.approx(row["expected"]["upper"], abs=row["tol"])


@pytest.mark.parametrize("row", of_kind("cochran_q", "bowker_symmetry"))
def test_more_than_two_routes_or_grades(row):
    of = {"cochran_q": paired_table.cochran_q, "bowker_symmetry": paired_table.bowker}
    statistic, df, p = of[row["kind"]](row["data"]["table"])
    expected = row["expected"]
    assert statistic == pytest.approx(expected["statistic"], abs=row["tol"])
    assert df == expected["df"]
    if "p_value" in expected:
        assert p == pytest.approx(expected["p_value"], abs=row["tol"])


def test_two_routes_are_the_special_case_of_cochran():
    table = [[1, 0]] * 9 + [[0, 1]] * 4 + [[1, 1]] * 30
    q, _, p = paired_table.cochran_q(table)
    assert (q, p) == pytest.approx(paired_table.mcnemar_chi_square(9, 4))


def gsm8k(first, second):
    path = DATA / "paired_gsm8k_four_models" / "correct.csv"
    with path.open() as file:
        verdicts = [(int(r[first]), int(r[second])) for r in csv.DictReader(file)]
    losses = sum(a > b for a, b in verdicts)
    return losses, sum(b > a for a, b in verdicts), len(verdicts)


@pytest.mark.parametrize(
    "row", rows(DATA / "paired_gsm8k_four_models" / "expected_pairwise.jsonl")
)
def test_four_real_models_on_one_set(row):
    losses, gains, n = gsm8k(row["first"], row["second"])
    assert (losses, gains, n) == (row["only_first"], row["only_second"], row["n"])
    p = paired_table.mcnemar_exact(losses, gains)
    assert p == pytest.approx(row["mcnemar_exact_p"], rel=1e-9)
    for level in (0.95, 0.90):
        interval = tango_interval(losses=losses, gains=gains, n=n, level=level)
        # Theirs is first - second, ours candidate - baseline = second - first.
        low, high = row[f"tango_{level * 100:.0f}"]
        assert (-interval.high, -interval.low) == pytest.approx((low, high), abs=5e-6)


@pytest.mark.parametrize(
    ("first", "second", "decision"),
    [
        ("6b_finetuning", "175b_verification", "certified"),
        ("175b_verification", "6b_finetuning", "harmed"),
        ("6b_verification", "175b_finetuning", "harmed"),
    ],
)
def test_real_models_are_told_apart(first, second, decision):
    if not DATA.exists():
        pytest.skip("the shared data is not there")
    losses, gains, n = gsm8k(first, second)
    answer = non_inferiority(
        losses=losses, gains=gains, n=n, tolerance=0.01, alpha=0.05
    )
    assert answer.decision == decision


@pytest.mark.parametrize(
    "row", rows(DATA / "paired_xstest_refusals" / "expected.jsonl")
)
def test_refusals_before_and_after_a_template_change(row):
    with (DATA / "paired_xstest_refusals" / "labels.csv").open() as file:
        wanted = "1" if row["slice"] == "safe" else "0"
        refused = [
            tuple(
                not line[f"{route}_final"].startswith("1")
                for route in (row["baseline"], row["candidate"])
            )
            for line in csv.DictReader(file)
            if line["safe_prompt"] == wanted
        ]
    assert len(refused) == row["n"]
    before = sum(a and not b for a, b in refused)
    after = sum(b and not a for a, b in refused)
    assert before == row["refused_only_baseline"]
    assert after == row["refused_only_candidate"]
    p = paired_table.mcnemar_exact(before, after)
    assert p == pytest.approx(row["mcnemar_exact_p"], rel=1e-9)
    interval = tango_interval(losses=before, gains=after, n=row["n"], level=0.95)
    low, high = row["tango_95_baseline_minus_candidate"]
    assert (-interval.high, -interval.low) == pytest.approx((low, high), abs=5e-5)
