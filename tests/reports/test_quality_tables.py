"""Equal texts, sampled answers and judges as tables."""

from routeproof.gates.evidence import Quality
from routeproof.gates.facts import EqualityRow, JudgeRow
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
