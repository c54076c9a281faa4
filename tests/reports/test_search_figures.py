"""The figures of a draft-length search."""

import json

from routeproof.reports.charts.search import chosen, search


def a_row(draft_tokens, load, gain, **changes):
    return {
        "draft_tokens": draft_tokens,
        "concurrency": load,
        "gain": gain,
        "gain_low": gain - 0.1,
        "gain_high": gain + 0.1,
        "tokens_per_pass": 1.0 + draft_tokens / 10,
        **changes,
    }


GRID = [
    a_row(k, load, 1.3 - 0.1 * k, chosen=(k, load) == (1, 1.0))
    for k in (1, 2, 3)
    for load in (1.0, 4.0)
]


def test_a_search_is_a_heat_map_and_two_curves():
    keys = [figure.key for figure in search(GRID)]
    assert keys == ["tune", "tune-gain", "tune-yield"]
    assert search([]) == ()


def test_every_interval_lies_inside_the_axis():
    figure = next(f for f in search(GRID) if f.key == "tune-gain")
    told = json.dumps(figure.specification)
    assert '"domain": [0.9, 1.3]' in told.replace("0.8999999999999999", "0.9")


def test_one_draft_length_is_no_curve_and_unknown_yields_are_left_out():
    assert [f.key for f in search(GRID[:2])] == ["tune"]
    unknown = [{**row, "tokens_per_pass": None} for row in GRID]
    assert [f.key for f in search(unknown)] == ["tune", "tune-gain"]
    dark = [{**row, "gain": None, "gain_low": None, "gain_high": None} for row in GRID]
    assert [f.key for f in search(dark)] == ["tune-yield"]


def test_the_pick_of_each_load_is_said():
    points = [{**row, "load": f"{row['concurrency']:g}"} for row in GRID]
    assert chosen(points) == "Chosen (ringed): 1 at 1, none at 4."
