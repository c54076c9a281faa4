"""Equal texts, sampled answers and judges as tables."""

from routeproof.gates.evidence import Quality
from routeproof.gates.facts import Divergence, EqualityRow, JudgeRow
from routeproof.reports.quality_tables import compared_texts


def test_nothing_compared_shows_nothing():
    assert compared_texts(Quality()) == []


def test_every_level_judge_and_power_is_shown():
    found = compared_texts(
        Quality(
            equality=(EqualityRow(pair="candidate", pairs=9, equal=8),),
            equality_under_load=(
                EqualityRow(
                    pair="control", pairs=9, equal=9, phase="sweep", level="c8"
                ),
            ),
            sampled=(
                {
                    "test": "first_token",
                    "p_value": 0.25,
                    "control_p_value": None,
                    "prompts": 4,
                    "answers": 40,
                    "power": "sees much",
                },
            ),
            judges=(
                JudgeRow(scorer="preference", who="j", n=7, problems=("is drunk",)),
                JudgeRow(scorer="people_correct", who="people", n=3, mean=0.5),
            ),
        )
    )
    shown = {titled.title: titled.table.rows for titled in found}
    equal = shown["Same text for the same greedy request"]
    assert [row[1] for row in equal] == ["judged phase", "sweep c8"]
    assert shown["Sampled answers, one distribution?"][0][-1] == "sees much"
    judges = shown["Judges and people"]
    assert [row[-1] for row in judges] == ["no: is drunk", "yes"]


def test_where_texts_part_is_shown_with_the_baselines_own_margin():
    parted = (
        Divergence(
            case_id="a", kind="real", before="It is ", baseline=" Paris",
            other=" Lyon", nats=3.25, is_exact=True,
        ),
        Divergence(
            case_id="b", kind="near_tie", before="", baseline="The", other="L",
            nats=0.0625, is_exact=True,
        ),
        Divergence(
            case_id="c", kind="real", before="x", baseline="y", other="z", nats=2.0,
        ),
        Divergence(case_id="d", kind="unknown", before="x", baseline="y", other="z"),
    )  # fmt: skip
    row = EqualityRow(pair="candidate", pairs=9, equal=5, divergences=parted)
    control = EqualityRow(pair="control", pairs=9, equal=8, divergences=parted[:1])
    *_, told = compared_texts(Quality(equality=(row, control)))
    assert told.title == "Where greedy texts part, by the baseline's own numbers"
    assert [each[-2:] for each in told.table.rows] == [
        ("3.250", "real"),
        ("0.062", "near tie"),
        ("over 2.000", "real"),
        ("unknown", "cannot be told"),
    ]
    assert told.table.rows[0][1:4] == ("...It is ", "' Paris'", "' Lyon'")
    assert told.table.rows[1][1] == "the beginning"
