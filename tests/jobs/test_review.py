"""Blind review with a real server on loopback."""

import importlib.util
import json
import shutil
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from record_cases import a_record

from routeproof.cli.review import command
from routeproof.errors import ConfigError, StoredRunError
from routeproof.jobs.reviewing.server import serving
from routeproof.jobs.reviewing.session import Review
from routeproof.jobs.reviewing.summary import summarise
from routeproof.records.store import RunFolder
from routeproof.scorers.judge.pairwise import score_preferences
from routeproof.scorers.label_files import Label, read_labels
from routeproof.scorers.scored import write_scores
from routeproof.workloads.case import Case
from routeproof.workloads.cases import read_cases, write_cases

CHROMIUM = shutil.which("chromium")
LACKS_BROWSER = CHROMIUM is None or importlib.util.find_spec("playwright") is None


@pytest.fixture
def run(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    cases = [
        Case(
            id=f"secret-case-{i}",
            class_="a" if i < 20 else "b",
            prompt=f"Say {i}.",
            reference="x",
            scorers=("preference",),
        )
        for i in range(24)
    ]
    write_cases(cases, folder.cases_path)
    records = []
    for i, case in enumerate(cases):
        for arm in ("baseline", "candidate"):
            text = (
                f"<b>same {i}</b>"
                if i < 2
                else f"<b>{'old' if arm[0] == 'b' else 'new'} {i}</b>"
            )
            records.append(
                a_record(
                    request_id=f"{arm}-{i}",
                    arm=arm,
                    case_id=case.id,
                    text=text,
                    finish_reason="stop",
                )
            )
    folder.append(records)
    folder.flush()
    return folder.path


def get(url, path="", headers=None):
    asked = urllib.request.Request(url + path, headers=headers or {})
    with urllib.request.urlopen(asked, timeout=10) as reply:
        return reply.status, dict(reply.headers), reply.read().decode()


def post(url, path, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(url + path, data=data, method="POST")
    with urllib.request.urlopen(asked, timeout=10) as reply:
        return json.loads(reply.read())


def refused(call, *arguments, **named):
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(*arguments, **named)
    with caught.value as error:
        return error.code, error.read().decode()


def better(item, wanted="new"):
    return "left" if wanted in item["left"] else "right"


def test_pairs_are_blind_shuffled_and_only_those_that_differ(run):
    review = Review(run)
    shown = review.shown()
    assert len(shown) == 22
    told = json.dumps(shown)
    for secret in ("baseline", "candidate", "secret-case"):
        assert secret not in told
    sides = ["new" in item["left"] for item in shown]
    assert 4 < sum(sides) < 18
    prompts = [item["prompt"] for item in shown]
    assert prompts != sorted(prompts)
    assert Review(run).shown() == shown
    assert Review(run, seed=5).shown() != shown


def test_classes_are_sampled_alike(run):
    prompts = [item["prompt"] for item in Review(run, most=8).shown()]
    assert len(prompts) == 8
    assert sum(int(p.split()[1][:-1]) >= 20 for p in prompts) == 4


def test_labels_are_stored_by_arm_and_found_again(run):
    review = Review(run, reviewer="p")
    for item in review.shown():
        review.take(item["id"], better(item))
    again = Review(run, reviewer="p")
    assert again.done() == 22
    assert [i["answer"] for i in again.shown()] == [better(i) for i in again.shown()]
    assert {one.label for one in read_labels(review.path)} == {"candidate"}
    assert Review(run, reviewer="q").done() == 0
    assert summarise(again).preference == 1.0


def test_a_later_answer_replaces_and_a_wrong_one_is_refused(run):
    review = Review(run)
    first = review.items[0].item_id
    review.take(first, "tie")
    review.take(first, "skip", note="cannot read it")
    assert [(one.label, one.note) for one in review.labels] == [
        ("skip", "cannot read it")
    ]
    assert summarise(review).labelled == 0
    with pytest.raises(ConfigError, match="no answer"):
        review.take(first, "baseline")
    with pytest.raises(ConfigError, match="no item"):
        review.take("nobody", "tie")


@pytest.mark.slow
def test_single_answers_are_judged_right_or_wrong(run):
    review = Review(run, question="correct", most=100)
    assert len(review.items) == 48
    for item in review.items:
        review.take(item.item_id, "wrong" if "new" in item.left else "right")
    assert summarise(review).right_share == pytest.approx(
        {"baseline": 1.0, "candidate": 2 / 24}
    )


def test_the_server_serves_one_who_knows_the_address(run):
    review = Review(run)
    with serving(review) as url:
        assert url.startswith("http://127.0.0.1:")
        status, headers, page = get(url)
        assert status == 200 and "http" not in page.split("<body>")[1]
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["Cache-Control"] == "no-store"
        items = json.loads(get(url, "api/items")[2])["items"]
        assert [item["id"] for item in items] == [i.item_id for i in review.items]
        said = post(
            url, "api/labels", {"id": items[0]["id"], "answer": better(items[0])}
        )
        assert said == {"done": 1}
        assert json.loads(get(url, "api/export")[2])["label"] == "candidate"
        wrong = url.rsplit("/", 2)[0] + "/0123456789/"
        assert refused(get, wrong)[0] == 404
        assert refused(get, url, "", {"Host": "evil.example"})[0] == 404
        assert refused(get, url, "../../etc/passwd")[0] == 404
        assert refused(post, url, "api/labels", b"{")[0] == 400
        assert refused(post, url, "api/labels", {"id": "x", "answer": "tie"})[0] == 400
        assert refused(post, url, "api/labels", {"id": "x"})[0] == 400
        assert (
            refused(post, wrong, "api/labels", {"id": "x", "answer": "tie"})[0] == 404
        )
    with pytest.raises(urllib.error.URLError):
        get(url)


def test_labels_move_between_machines(run, tmp_path):
    review = Review(run, reviewer="p")
    for item in review.shown():
        review.take(item["id"], better(item))
    exported = b"".join(
        json.dumps(
            {
                "item_id": one.item_id,
                "question": one.question,
                "label": "tie",
                "reviewer": "q",
            }
        ).encode()
        + b"\n"
        for one in review.labels
    )
    with serving(review) as url:
        assert post(url, "api/import", exported) == {"new": 22}
        assert post(url, "api/import", exported) == {"new": 0}
        foreign = b'{"item_id": "zz", "question": "preference", "label": "tie"}'
        assert "not in this review" in refused(post, url, "api/import", foreign)[1]
    found = summarise(review)
    assert found.reviewers[0].name == "p and q"
    assert found.reviewers[0].agreed_share == 0
    assert found.labelled == 0, "one against one is a draw"


def test_the_judge_is_held_against_the_people(run):
    def ask(questions):
        said = []
        for question in questions:
            text = question.messages[1]["content"]
            first = text.index("new") < text.index("old")
            said.append(
                json.dumps({"reason": "", "verdict": "first" if first else "second"})
            )
        return said

    folder = RunFolder.open(run)
    scores, _ = score_preferences(
        read_cases(folder.cases_path), folder.parts(), ask, seed=1
    )
    review = Review(run)
    for at, item in enumerate(review.shown()):
        review.take(item["id"], better(item, "new" if at % 4 else "old"))
    judge = summarise(review, scores).judge
    assert judge.judged == 22
    assert judge.agreed_share == pytest.approx(16 / 22)


def test_a_run_without_pairs_says_what_it_lacks(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    with pytest.raises(StoredRunError, match="no cases.jsonl"):
        Review(folder.path)
    write_cases([Case(id="c", class_="a", prompt="?")], folder.cases_path)
    with pytest.raises(StoredRunError, match="no answers to review"):
        Review(folder.path)


def test_the_command_exports_imports_and_sums_up(run, tmp_path):
    review = Review(run)
    for item in review.shown()[:3]:
        review.take(item["id"], better(item))
    out = tmp_path / "labels.jsonl"
    ran = CliRunner().invoke(command, [str(run), "--export", str(out)])
    assert "3 labels" in ran.output and ran.exit_code == 0
    review.path.unlink()
    ran = CliRunner().invoke(command, [str(run), "--import", str(out), "--summary"])
    assert (
        "3 new labels" in ran.output
        and "preference for the candidate 1.000" in ran.output
    )
    write_scores(run / "scores.parquet", score_preferences([], [], None, seed=1)[0])
    assert CliRunner().invoke(command, [str(run), "--summary"]).exit_code == 0


def test_a_label_file_of_another_kind_is_refused(run):
    with pytest.raises(ConfigError, match="not in this review"):
        Review(run).bring_in([Label(item_id="x", question="preference", label="tie")])


def grave_findings(page):
    """What axe calls serious or critical, in light and dark."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        violations = axe.run(page).response["violations"]
        grave = [v for v in violations if v["impact"] in {"serious", "critical"}]
        found += [(scheme, v["id"]) for v in grave]
    return found


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(LACKS_BROWSER, reason="needs a chromium on PATH and playwright")
def test_a_person_can_review_by_keyboard_alone(run):
    from playwright.sync_api import sync_playwright

    review = Review(run)
    with serving(review) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--disable-gpu"], chromium_sandbox=False
        )
        page = browser.new_page()
        complaints = []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        where = page.locator("#where")
        where.filter(has_text="1 of 22, 0 answered").wait_for()
        assert "<b>" in page.inner_text("#left"), "an answer is text, never markup"
        for key, done in (("1", 1), ("ArrowRight", 2), ("2", 3), ("s", 4)):
            page.keyboard.press(key)
            where.filter(has_text=f"{done} answered").wait_for()
        page.keyboard.press("u")
        page.keyboard.press("e")
        page.keyboard.type("hard")
        page.keyboard.press("Enter")
        page.keyboard.press("3")
        where.filter(has_text="5 of 22").wait_for()
        page.get_by_role("button", name="back u").click()
        where.filter(has_text="4 of 22").wait_for()
        found = grave_findings(page)
        browser.close()
    assert found == []
    assert complaints == []
    assert [review.answer_of(item) for item in review.items[:5]] == [
        "left",
        "right",
        "tie",
        "right",
        None,
    ]
    assert [one.note for one in review.labels if one.note] == ["hard"]
