"""Judges and people as evidence: asked once, kept, held against each other."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from builders import Behaviour, Plan, a_case, a_proof, a_run

from routeproof.errors import ConfigError, FormatError, StoredRunError
from routeproof.gates.result import Status
from routeproof.jobs.gathering.agreed import check_questions
from routeproof.jobs.gathering.judges import ask_judges, with_judged
from routeproof.jobs.judge import judge
from routeproof.jobs.reviewing.session import Review
from routeproof.proof.policy import JudgeSpec, QualityGateSpec
from routeproof.records.store import RunFolder
from routeproof.workloads.cases import read_cases

pytestmark = pytest.mark.slow

N = 150


class _Judge(BaseHTTPRequestHandler):
    """Prefers the answer that holds ``server.likes``; says ``server.prose`` if set."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += 1
        words = self.server.prose or self._verdict(body["messages"][1]["content"])
        reply = json.dumps({"choices": [{"message": {"content": words}}]}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def _verdict(self, text):
        first = text.split("<<<first answer")[1].split("first answer")[0]
        likes = self.server.likes
        if likes == "first":
            verdict = "first"
        elif text.count(likes) != 1:
            verdict = "tie"
        else:
            verdict = "first" if likes in first else "second"
        return json.dumps({"reason": "because", "verdict": verdict})

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Judge)
    made.asked, made.prose, made.status, made.likes = 0, "", 200, "wonderful"
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def proof_of(server, metric="preference", tolerance=0.1, **more):
    spec = JudgeSpec(
        endpoint=f"http://127.0.0.1:{server.server_port}/v1", model="judge-1"
    )
    gates = (
        QualityGateSpec(metric="contains", tolerance=0.03),
        QualityGateSpec(metric=metric, tolerance=tolerance, judge=spec, **more),
    )
    return a_proof(quality=gates)


def differing(word="wonderful", every=3):
    """The candidate says it otherwise in a part of the cases, and no less right."""

    def text(number):
        own = f"{word} " if number % every == 0 else ""
        return f"The {own}answer to this question is the number {number}."

    return Behaviour(text=text)


def a_judged_run(path, proof, candidate):
    plan = Plan(
        cases=tuple(a_case(i) for i in range(N)), stages=(("quality", "c1", 1),)
    )
    a_run(path, proof=proof, candidate=candidate, plan=plan)
    folder = RunFolder.open(path)
    said = []
    ask_judges(folder, proof, read_cases(folder.cases_path), {}, said.append)
    return folder, said


def check_of(path, name):
    checks = judge(path).gate("correctness").checks
    return next(check for check in checks if check.name == name)


def labelled(path, likes, most=60):
    review = Review(path, most=most, reviewer="p")
    for item in review.shown():
        left = likes in item["left"]
        review.take(item["id"], "left" if left else "right")
    return review


def test_a_judge_is_asked_once_in_both_orders_and_never_again(server, tmp_path):
    proof = proof_of(server)
    folder, said = a_judged_run(tmp_path / "r", proof, differing())
    asked = server.asked
    assert asked == 2 * N / 3, "equal texts are a tie without a call"
    assert said[-1] == "judge-1 gave a preference for 100% of 150"
    first = judge(folder.path)
    again = judge(folder.path)
    ask_judges(folder, proof, read_cases(folder.cases_path), {}, said.append)
    assert server.asked == asked
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    row = first.evidence.quality.judges[0]
    assert (row.who, row.n, row.completeness_share) == ("judge-1", N, 1.0)
    assert row.mean == pytest.approx(0.5 + 0.5 / 3)
    assert row.inconsistency_share == 0.0 and row.placebo_mean == 0.5


def test_a_judge_nobody_held_against_people_decides_nothing(server, tmp_path):
    folder, _ = a_judged_run(tmp_path / "r", proof_of(server), differing())
    check = check_of(folder.path, "preference")
    assert check.status is Status.INCONCLUSIVE
    assert "not held against people: 0 of 30 labels" in check.reason


def test_a_judge_that_people_bear_out_decides(server, tmp_path):
    folder, _ = a_judged_run(tmp_path / "r", proof_of(server), differing())
    labelled(folder.path, "wonderful")
    # All labels alike: chance alone would agree, and kappa cannot be told.
    assert "kappa unknown" in check_of(folder.path, "preference").reason
    mixed = Review(folder.path, most=60, reviewer="p")
    for at, item in enumerate(mixed.shown()):
        if at % 2:
            mixed.take(item["id"], "tie")
    assert "agrees too little with people" in check_of(folder.path, "preference").reason


def test_a_judge_that_agrees_with_people_passes_and_fails(server, tmp_path):
    def text(number):
        word = {0: "wonderful ", 1: "dull "}.get(number % 3, "")
        return f"The {word}answer to this question is the number {number}."

    folder, _ = a_judged_run(tmp_path / "r", proof_of(server), Behaviour(text=text))
    review = Review(folder.path, most=80, reviewer="p")
    for item in review.shown():
        both = item["left"] + item["right"]
        if "dull" in both:
            review.take(item["id"], "tie")
        else:
            review.take(item["id"], "left" if "wonderful" in item["left"] else "right")
    found = judge(folder.path)
    row = next(r for r in found.evidence.quality.judges if r.who == "judge-1")
    assert row.kappa == 1.0 and not row.problems
    assert check_of(folder.path, "preference").status is Status.PASSED


def test_an_answer_the_judge_likes_less_fails_once_people_agree(server, tmp_path):
    server.likes = "The answer"

    def text(number):
        start = {0: "An answer", 1: "THE ANSWER The answer"}.get(number % 3)
        return f"{start or 'The answer'} to this question is the number {number}."

    folder, _ = a_judged_run(tmp_path / "r", proof_of(server), Behaviour(text=text))
    review = Review(folder.path, most=90, reviewer="p")
    for item in review.shown():
        if "THE ANSWER" in item["left"] + item["right"]:
            review.take(item["id"], "tie")
        else:
            review.take(item["id"], "left" if "The" in item["left"] else "right")
    check = check_of(folder.path, "preference")
    assert check.status is Status.FAILED
    assert check.estimate < -0.1


def test_a_judge_that_takes_whatever_is_first_decides_nothing(server, tmp_path):
    server.likes = "first"
    folder, _ = a_judged_run(tmp_path / "r", proof_of(server), differing())
    check = check_of(folder.path, "preference")
    assert check.status is Status.INCONCLUSIVE
    assert "the order of the answers changed 100.0% of verdicts" in check.reason


@pytest.mark.parametrize("status, prose", [(500, ""), (200, "The first one, I think")])
def test_a_dead_judge_and_one_that_answers_prose_leave_the_question_open(
    server, tmp_path, status, prose
):
    server.status, server.prose = status, prose
    folder, said = a_judged_run(tmp_path / "r", proof_of(server), differing(every=1))
    assert "0%" in said[-1]
    check = check_of(folder.path, "preference")
    assert check.status is Status.INCONCLUSIVE
    row = judge(folder.path).evidence.quality.judges[0]
    assert row.problems[0] == "only 0.0% of the pairs could be judged"


def test_what_a_dead_judge_left_open_is_asked_again(server, tmp_path):
    proof = proof_of(server)
    server.status = 500
    folder, said = a_judged_run(tmp_path / "r", proof, differing())
    server.status = 200
    ask_judges(folder, proof, read_cases(folder.cases_path), {}, said.append)
    assert judge(folder.path).evidence.quality.judges[0].completeness_share == 1.0


def test_a_reply_cut_off_by_a_crash_is_asked_again_and_others_are_kept(
    server, tmp_path
):
    proof = proof_of(server)
    folder, said = a_judged_run(tmp_path / "r", proof, differing())
    path = folder.path / "judge" / "replies.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    before = server.asked
    ask_judges(folder, proof, read_cases(folder.cases_path), {}, said.append)
    assert server.asked == before + 1
    assert judge(folder.path).evidence.quality.judges[0].completeness_share == 1.0
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(StoredRunError, match="line 1"):
        judge(folder.path)


def test_a_judge_of_the_routes_own_family_is_said_to_be(server, tmp_path):
    proof = proof_of(server)
    gates = tuple(
        msgspec.structs.replace(
            gate,
            judge=gate.judge
            and JudgeSpec(endpoint=gate.judge.endpoint, model="x/Tiny-9"),
        )
        for gate in proof.quality
    )
    own = msgspec.structs.replace(proof, quality=gates)
    folder, _ = a_judged_run(tmp_path / "r", own, differing())
    row = judge(folder.path).evidence.quality.judges[0]
    assert "the judge is of the same family as the baseline (tiny)" in row.notes


def test_claims_are_judged_too(server, tmp_path):
    server.prose = json.dumps(
        {
            "claims": [
                {"claim": "c", "reason": "r", "verdict": "supported"},
                {"claim": "d", "reason": "r", "verdict": "unsupported"},
            ]
        }
    )
    proof = proof_of(server, metric="groundedness")
    folder, _ = a_judged_run(tmp_path / "r", proof, differing())
    row = judge(folder.path).evidence.quality.judges[0]
    assert (row.scorer, row.mean, row.completeness_share) == ("groundedness", 0.5, 1.0)


def test_labels_of_people_are_a_question_of_their_own(server, tmp_path):
    proof = a_proof(quality=(QualityGateSpec(metric="contains", tolerance=0.03),))
    folder, _ = a_judged_run(tmp_path / "r", proof, differing(word="odd", every=1))
    assert server.asked == 0
    labelled(folder.path, "The answer")
    check = check_of(folder.path, "people_preference")
    assert check.status is Status.FAILED
    assert "harmed, also after correction" in check.reason
    row = judge(folder.path).evidence.quality.judges[0]
    assert (row.who, row.n, row.mean) == ("people", 60, 0.0)


def test_people_can_be_asked_for_by_the_proof(server, tmp_path):
    gates = (
        QualityGateSpec(metric="contains", tolerance=0.03),
        QualityGateSpec(metric="people_preference", tolerance=0.1),
    )
    proof = a_proof(quality=gates)
    folder, _ = a_judged_run(tmp_path / "r", proof, differing(every=1))
    open_ = check_of(folder.path, "people_preference")
    assert open_.status is Status.INCONCLUSIVE and open_.required
    labelled(folder.path, "wonderful")
    assert check_of(folder.path, "people_preference").status is Status.PASSED


def test_single_answers_called_wrong_are_seen(server, tmp_path):
    proof = a_proof(quality=(QualityGateSpec(metric="contains", tolerance=0.03),))
    folder, _ = a_judged_run(tmp_path / "r", proof, differing(word="odd", every=1))
    review = Review(folder.path, question="correct", most=300)
    for item in review.shown():
        review.take(item["id"], "wrong" if "odd" in item["left"] else "right")
    check = check_of(folder.path, "people_correct")
    assert check.status is Status.FAILED and check.estimate == -1.0


def test_a_damaged_file_of_labels_is_named_with_its_line(server, tmp_path):
    proof = a_proof()
    folder, _ = a_judged_run(tmp_path / "r", proof, differing())
    (folder.path / "review").mkdir()
    (folder.path / "review" / "labels.jsonl").write_text("{}\n")
    with pytest.raises(FormatError, match="line 1"):
        judge(folder.path)


def test_questions_a_judge_must_answer_need_one(server):
    cases = [a_case(0)]
    ask = QualityGateSpec(metric="preference", tolerance=0.1)
    with pytest.raises(ConfigError, match="no judge is named"):
        check_questions(a_proof(quality=(ask,)), cases)
    with pytest.raises(ConfigError, match="no judge is named"):
        check_questions(a_proof(), [a_case(0, scorers=("contains", "factuality"))])
    check_questions(proof_of(server), cases)
    names = with_judged(proof_of(server), cases)[0].scorers
    assert names == ("contains", "preference")


def test_code_and_pass_rates_can_be_asked_for():
    cases = [a_case(0, scorers=("code",))]
    ask = QualityGateSpec(metric="pass_at_k", tolerance=0.1, k=2)
    check_questions(a_proof(quality=(ask,)), cases)
    with pytest.raises(ConfigError, match="no case is scored by `pass_at_k`"):
        check_questions(a_proof(quality=(ask,)), [a_case(0)])


def test_likelihood_alone_is_refused_by_whatever_way_it_comes():
    cases = [a_case(0, scorers=("reference_likelihood", "contains"))]
    for quality in ((), (QualityGateSpec(metric="headline", tolerance=0.1),)):
        with pytest.raises(ConfigError, match="alone cannot show"):
            check_questions(a_proof(quality=quality), cases)
    both = QualityGateSpec(metric="contains", tolerance=0.1)
    check_questions(a_proof(quality=(both,)), cases)
