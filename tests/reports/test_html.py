import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from report_cases import HOSTILE, a_judgement, flips

from routeproof.gates.evidence import Agreed, Evidence
from routeproof.reports import html
from routeproof.reports.divergence import side_by_side
from routeproof.reports.judgement import Judgement, Provenance
from routeproof.verdict import Decision, Verdict

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.open = []
        self.texts = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.texts.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text():
    return html.render(a_judgement(), files=("proof.yaml", "records"))


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def bare_judgement():
    return Judgement(
        headline="h",
        verdict=Verdict(decision=Decision.NONE, reasons=()),
        gates=(),
        evidence=Evidence(agreed=Agreed()),
        provenance=Provenance(run_id="r", routeproof_version="0"),
    )


def test_every_tag_is_closed_and_every_id_is_unique(page):
    assert page.open == []
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_every_inner_link_has_a_target(page):
    ids = {a["id"] for _, a in page.elements if "id" in a}
    inner = [a["href"][1:] for a in page.of("a") if a["href"].startswith("#")]
    assert inner and set(inner) <= ids


def test_nothing_is_fetched_from_anywhere(page, text):
    for tag, attributes in page.elements:
        for name in ("src", "srcset", "action", "poster"):
            assert name not in attributes, tag
        if tag == "link":
            assert attributes["href"] == "data:,"
    assert "url(" not in text[: text.index("</style>")]
    assert "@import" not in text[: text.index("</style>")]


def test_the_policy_allows_only_scripts_and_styles_by_their_hash(page):
    [policy] = [
        a["content"]
        for a in page.of("meta")
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert policy.count("'sha256-") >= 2
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert "style" not in attributes


def test_a_hostile_answer_stays_text(page, text):
    assert not page.of("img")
    assert HOSTILE not in text
    assert any("window.hostile = 1" in words for words in page.texts)


@pytest.mark.slow
def test_chart_data_cannot_end_its_element(text):
    judgement = a_judgement()
    tables = {"by_class": ({"class": HOSTILE, "acceptance_rate": 0.5},)}
    acceptance = msgspec.structs.replace(judgement.evidence.acceptance, tables=tables)
    evidence = msgspec.structs.replace(judgement.evidence, acceptance=acceptance)
    made = html.render(msgspec.structs.replace(judgement, evidence=evidence))
    assert HOSTILE not in made
    block = re.search(r'id="chart-data">(.*?)</script>', made, re.S)
    charts = json.loads(block[1])
    assert HOSTILE in json.dumps(charts["acceptance-by-class"])


@pytest.mark.slow
def test_the_same_judgement_gives_the_same_page(text):
    again = html.render(a_judgement(), files=("proof.yaml", "records"))
    assert again == text


def test_verdict_and_strip_come_before_everything_else(page):
    ids = [a.get("id") or a.get("class") for t, a in page.elements if t != "meta"]
    order = [i for i in ids if i in {"verdict", "strip", "routes", "quality"}]
    assert order == ["verdict", "strip", "routes", "quality"]


def test_every_chart_has_words_and_a_table(page):
    charts = [a for a in page.of("div") if "data-chart" in a]
    assert len(charts) >= 15
    assert all(len(a["aria-label"]) > 40 for a in charts)
    figures = len(page.of("figure"))
    assert figures == len(charts)
    assert len(page.of("table")) >= figures


def test_a_judgement_without_anything_still_makes_a_page():
    page = Page(html.render(bare_judgement()))
    assert page.open == []
    assert "NO VERDICT" in page.texts


@pytest.mark.slow
def test_without_charts_the_page_has_every_number_as_a_table(text):
    made = html.render(a_judgement(), with_charts=False)
    page = Page(made)
    assert not [a for a in page.of("div") if "data-chart" in a]
    assert len(page.of("figure")) >= 15
    assert len(made) < len(text) / 5
    assert page.of("table") == Page(text).of("table")


@pytest.mark.slow
def test_flips_beyond_the_budget_are_left_out_and_counted():
    long = "word " * 800
    many = tuple(
        msgspec.structs.replace(
            flip,
            case_id=f"c{i}",
            prompt=long,
            baseline_text=long,
            candidate_text=long,
            first_divergence=None,
        )
        for i, flip in enumerate(flips(1) * 600)
    )
    judgement = a_judgement()
    quality = msgspec.structs.replace(
        judgement.evidence.quality, flips=many, flips_total=5000
    )
    evidence = msgspec.structs.replace(judgement.evidence, quality=quality)
    made = html.render(msgspec.structs.replace(judgement, evidence=evidence))
    assert len(made.encode()) < 5_000_000
    assert "of 5,000" in made


@pytest.mark.parametrize(
    ("baseline", "candidate", "at", "same", "words"),
    [
        ("the cat sat", "the dog sat", 4, "the ", ("cat", "dog")),
        ("it is 141", "it is 142", 8, "it is ", ("141", "142")),
        ("yes", "yes and no", 3, "", ("yes", "yes")),
        ("", "anything", 0, "", ("", "anything")),
    ],
)
def test_the_first_word_that_differs_is_marked(baseline, candidate, at, same, words):
    flip = msgspec.structs.replace(
        flips(1)[0],
        baseline_text=baseline,
        candidate_text=candidate,
        first_divergence=at,
    )
    split = side_by_side(flip)
    assert split.baseline.same == split.candidate.same == same
    assert (split.baseline.first, split.candidate.first) == words
