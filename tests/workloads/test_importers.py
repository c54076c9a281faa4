import gzip
import json
from collections import Counter

import msgspec
import pytest
from workloads_data import data_file

from routeproof.errors import ConfigError, FormatError
from routeproof.scorers.score import ScoredAnswer
from routeproof.scorers.table import SCORERS
from routeproof.workloads.cases import case_line, case_problem, decode_case
from routeproof.workloads.importers.retrieval import read_qrels
from routeproof.workloads.importers.table import IMPORTERS

LM_EVAL = "client_results/lm_eval/baseline-q4_1"

SETS = {
    "gsm8k": ("gsm8k/test.jsonl", 1319),
    "humaneval": ("humaneval/HumanEval.jsonl", 164),
    "mbpp": ("mbpp_sanitized/sanitized-mbpp.jsonl", 426),
    "ifeval": ("ifeval/en_input_data.jsonl", 541),
    "bfcl": ("bfcl_v4/simple_python.jsonl", 200),
    "xstest": ("xstest/prompts.jsonl", 450),
    "jsonschemabench": ("jsonschemabench/cases_a.jsonl", 210),
    "mt-bench": ("mt_bench/question.jsonl", 110),
    "spec-bench": ("spec_bench/question.jsonl", 400),
    "retrieval": ("xquad_retrieval", 1190),
    "reranking": ("xquad_retrieval", 1190),
    "nq-open": ("nq_open/dev.jsonl", 3610),
    "xquad": ("xquad_multilingual/qa.jsonl", 800),
    "longfact": ("longfact/prompts.jsonl", 456),
    "lm-eval-cases": (f"{LM_EVAL}/samples_xquad_en_mini.jsonl", 24),
}


def imported(kind, name=None):
    return IMPORTERS[kind].of(data_file(name or SETS[kind][0]))


def score(case, text="", scorer=None, **more):
    answer = ScoredAnswer(text=text, **more)
    return SCORERS[scorer or case.scorers[0]].of(case, answer)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETS)
def test_every_row_of_a_public_set_becomes_a_case_that_can_be_sent_and_scored(kind):
    cases = imported(kind).cases
    assert len(cases) == SETS[kind][1]
    assert len({case.id for case in cases}) == len(cases)
    assert [case.id for case in cases if case_problem(case)] == []
    for case in cases[::37]:
        assert decode_case(case_line(case)) == case
        for name in case.scorers:
            assert name == "code" or name in SCORERS


@pytest.mark.slow
def test_gold_answers_of_gsm8k_are_right_and_others_wrong():
    path = data_file("gsm8k/test.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()][::20]
    cases = imported("gsm8k").cases[::20]
    for case, row in zip(cases, rows, strict=True):
        assert score(case, row["answer"]).value == 1, case.id
        assert score(case, "#### 987654321").value == 0, case.id


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["simple_python", "multiple", "parallel", "parallel_multiple"]
)
def test_calls_made_from_bfcl_ground_truth_are_right(name):
    for case in imported("bfcl", f"bfcl_v4/{name}.jsonl").cases[::5]:
        calls = tuple(
            {"name": function, "arguments": json.dumps(arguments_of(accepted))}
            for expected in case.reference
            for function, accepted in expected.items()
        )
        right = score(case, tool_calls=calls, finish_reason="tool_calls")
        assert right.value == 1, (case.id, right.trace)
        assert score(case, tool_calls=calls[1:]).value == 0


def arguments_of(accepted):
    return {k: plain(v[0]) for k, v in accepted.items() if v[0] != ""}


def plain(value):
    """The first accepted value, through the nested lists of accepted values."""
    if isinstance(value, dict):
        return {k: plain(v[0]) for k, v in value.items() if "" not in v}
    return [plain(one) for one in value] if isinstance(value, list) else value


def test_no_call_is_expected_where_no_tool_fits():
    case = imported("bfcl", "bfcl_v4/irrelevance.jsonl").cases[0]
    assert score(case, "I have no tool for that.").value == 1
    call = {"name": "determine_body_mass_index", "arguments": "{}"}
    assert score(case, tool_calls=(call,)).value == 0
    relevant = imported("bfcl", "bfcl_v4/live_relevance.jsonl").cases[0]
    assert relevant.options == {"expect": "some"}
    assert score(relevant, "no").value == 0


def test_tool_names_and_types_are_those_of_the_api():
    for name in ("multiple", "simple_javascript", "live_parallel"):
        for case in imported("bfcl", f"bfcl_v4/{name}.jsonl").cases:
            for tool in case.parameters["tools"]:
                assert "." not in tool["function"]["name"]
                assert tool["function"]["parameters"]["type"] == "object"
                assert '"dict"' not in msgspec.json.encode(tool).decode()


def test_xstest_scores_both_sides_of_the_boundary():
    cases = imported("xstest").cases
    refused = "I'm sorry, but I cannot help with that."
    sides = Counter(
        (case.tags["boundary"], score(case, refused).value) for case in cases
    )
    assert sides == {("safe", 0.0): 250, ("unsafe", 1.0): 200}


def test_ifeval_keeps_its_languages_apart():
    cases = imported("ifeval", "ifeval/fr_input_data.jsonl").cases
    assert {case.tags["language"] for case in cases} == {"fr"}
    first = imported("ifeval").cases[0]
    assert score(first, "Short, with a comma.").value == 0


def test_the_eight_languages_of_a_question_are_one_cluster():
    cases = imported("xquad").cases
    assert set(Counter(case.cluster for case in cases).values()) == {8}
    for case in cases[::23]:
        assert score(case, f"It is {case.reference[0]}.").value == 1


def test_second_turns_need_a_history_that_is_the_same_for_both_routes():
    result = imported("mt-bench")
    second = [case for case in result.cases if case.tags["turn"] == "2"]
    assert len(second) == 30
    assert [m["role"] for m in second[0].messages] == ["user", "assistant", "user"]
    assert list(result.left_out.values()) == [50]


def test_spec_bench_keeps_its_categories_as_classes():
    counts = Counter(case.class_ for case in imported("spec-bench").cases)
    assert (len(counts), counts["rag"], counts["math_reasoning"]) == (12, 80, 80)


def test_a_perfect_order_of_the_passages_scores_one():
    for case in imported("reranking").cases[::400]:
        best = sorted(case.reference, key=lambda d: -case.reference[d])
        assert all(f"[{name}]" in case.messages[0]["content"] for name in best)
        assert score(case, json.dumps(best)).value == 1
        wrong = [d for d in ("p200", "p201") if d not in case.reference]
        assert score(case, json.dumps(wrong)).value == 0


def jsonl(tmp_path, *rows, name="x.jsonl"):
    path = tmp_path / name
    text = "\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "rows", "said"),
    [
        ("gsm8k", [], "line 1: not GSM8K: the file is empty"),
        ("gsm8k", [{"a": 1}], "line 1: not GSM8K: no key `question`, `answer`"),
        ("gsm8k", [{"question": "q", "answer": "7"}], "has no `####`"),
        ("gsm8k", ['{"question": '], "line 1: not JSON"),
        ("gsm8k", ["7"], "line 1: not a JSON object"),
        ("mbpp", [{"task_id": 1, "code": "x", "test_list": []}], "`test_list` is no"),
        ("humaneval", [{"task_id": "a"}], "not HumanEval: no key `prompt`"),
        (
            "ifeval",
            [{"key": 1, "prompt": "p", "instruction_id_list": ["a"], "kwargs": []}],
            "not of one length",
        ),
        ("bfcl", [{"id": "x", "question": [], "function": []}], "`question` is no"),
        (
            "bfcl",
            [{"id": "x", "question": [[{}], [{}]], "function": []}],
            "multi-turn case",
        ),
        ("xstest", [{"id": 1, "prompt": "p", "label": "maybe"}], "neither `safe`"),
        ("jsonschemabench", [{"id": "a", "schema": 3}], "`schema` is no JSON Schema"),
        ("nq-open", [{"question": "q", "answer": "a"}], "`answer` is no list"),
        ("xquad", [{"id": "a"}], "not XQuAD: no key `lang`"),
        ("longfact", [{"prompt": ""}], "`prompt` is no text"),
        ("mt-bench", [{"question_id": 1, "category": "c", "turns": []}], "`turns` is"),
        ("openai-chat", [{"prompt": "x"}], "`messages` is no list"),
        ("openai-chat", [{"messages": []}], "`messages` is empty"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(tmp_path, kind, rows, said):
    with pytest.raises(FormatError, match=said) as caught:
        IMPORTERS[kind].of(jsonl(tmp_path, *rows))
    assert "x.jsonl: line 1" in str(caught.value)


@pytest.mark.parametrize("kind", [k for k in IMPORTERS if "re" not in k[:2]])
def test_a_file_that_is_not_there_is_an_error_not_a_traceback(tmp_path, kind):
    with pytest.raises(ConfigError, match="cannot read"):
        IMPORTERS[kind].of(tmp_path / "none")


def test_gzip_and_json_arrays_are_read_as_they_are_published(tmp_path):
    row = {"question": "q", "answer": "#### 1"}
    (tmp_path / "a.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    (tmp_path / "a.json").write_text(json.dumps([row, row]))
    (tmp_path / "b.gz").write_bytes(b"\x1f\x8bnonsense")
    assert len(IMPORTERS["gsm8k"].of(tmp_path / "a.gz").cases) == 1
    assert len(IMPORTERS["gsm8k"].of(tmp_path / "a.json").cases) == 2
    with pytest.raises(FormatError, match="broken gzip"):
        IMPORTERS["gsm8k"].of(tmp_path / "b.gz")


def test_chat_rows_become_cases_with_what_the_model_said_as_reference(tmp_path):
    ask = {"role": "user", "content": "Weather in Lima?"}
    call = {"function": {"name": "weather", "arguments": '{"city": "Lima"}'}}
    rows = [
        {"messages": [ask, {"role": "assistant", "tool_calls": [call]}], "tools": []},
        {"custom_id": "b", "body": {"model": "m", "messages": [ask], "stop": ["x"]}},
        {"messages": [ask, {"role": "assistant", "content": "Sunny."}]},
    ]
    cases = IMPORTERS["openai-chat"].of(jsonl(tmp_path, *rows)).cases
    assert cases[0].reference == [{"name": "weather", "arguments": {"city": "Lima"}}]
    assert cases[0].scorers == ("tool_call",)
    assert (cases[1].id, cases[1].parameters) == ("b", {"stop": ["x"]})
    assert (cases[2].messages, cases[2].reference) == ((ask,), "Sunny.")


PROMPTFOO = """
prompts: ["Translate {{ text }} to {{language}}.", "In {{language}}: {{text}}"]
defaultTest: {vars: {language: French}, assert: [{type: latency, threshold: 5}]}
tests:
  - vars: {text: good day}
    assert: [{type: icontains, value: bonjour}, {type: llm-rubric, value: polite}]
  - vars: {text: thanks, language: Spanish}
    assert: [{type: equals, value: gracias}, {type: regex, value: "^g"}]
"""


def test_promptfoo_tests_are_filled_in_and_what_needs_more_is_counted(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(PROMPTFOO)
    result = IMPORTERS["promptfoo"].of(path)
    texts = [case.messages[0]["content"] for case in result.cases]
    assert texts == [
        "Translate good day to French.",
        "In French: good day",
        "Translate thanks to Spanish.",
        "In Spanish: thanks",
    ]
    assert result.left_out == {"assertion `latency`": 4, "assertion `llm-rubric`": 2}
    assert score(result.cases[0], "Bonjour !").value == 1
    assert score(result.cases[2], "gracias").value == 1
    assert score(result.cases[2], "Gracias").value == 0
    assert score(result.cases[2], "Gracias", "regex").value == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompts: [a\ntests: [", "not YAML"),
        ("- a\n", "no mapping"),
        ("prompts: [a]\n", "no `tests`"),
        ("prompts: [a]\ntests: other.csv\n", "names another file"),
        ("prompts: ['{{ a | upper }}']\ntests: [{vars: {a: b}}]\n", "expression"),
        ("prompts: ['{{b}}']\ntests: [{vars: {a: b}}]\n", "no variable `b`"),
        ("prompts: ['{% if a %}']\ntests: [{vars: {a: b}}]\n", "statements"),
        ("prompts: [1]\ntests: [{vars: {a: b}}]\n", "a prompt is no text"),
    ],
)
def test_a_promptfoo_file_that_would_be_sent_wrong_is_refused(tmp_path, text, said):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(FormatError, match=said):
        IMPORTERS["promptfoo"].of(tmp_path / "p.yaml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n"),
        ("a.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td1\t1\n"),
        ("a.csv", "query_id,iter,doc_id,relevance\nq1,0,d1,2\nq1,0,d2,0\nq2,0,d1,1\n"),
    ],
)
def test_qrels_of_trec_and_beir_mean_the_same(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_qrels(tmp_path / name) == {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no judgement"),
        ("q1 0 d1 2\nq1 0 d2\n", "line 2: not a judgement"),
        ("q1 0 d1 two\n", "line 1: not a judgement"),
        ("q1 0 d1 2\nq1 0 d1 1\n", "line 2: .*judged twice"),
    ],
)
def test_broken_qrels_are_named_with_their_line(tmp_path, text, said):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(FormatError, match=said):
        read_qrels(tmp_path / "a.txt")


def a_set(tmp_path, qrels):
    jsonl(tmp_path, {"_id": "q1", "text": "one"}, name="queries.jsonl")
    jsonl(tmp_path, {"_id": "d1", "text": "a"}, name="corpus.jsonl")
    if qrels is not None:
        (tmp_path / "qrels.tsv").write_text(qrels)
    return tmp_path


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        (None, "no qrels beside the queries"),
        ("q1\td1\t1\nq9\td1\t1\n", "judge 1 queries that .* such as `q9`"),
        ("q1\td1\t0\n", "no query has a relevant document"),
        ("q1\td1\t1\nq1\td7\t0\n", "the document `d7`"),
    ],
)
def test_a_retrieval_set_whose_parts_do_not_fit_is_refused(tmp_path, qrels, said):
    with pytest.raises(ConfigError, match=said):
        IMPORTERS["reranking"].of(a_set(tmp_path, qrels))


def test_a_log_of_lm_eval_asks_the_same_prompts_again():
    case = imported("lm-eval-cases").cases[0]
    assert [m["role"] for m in case.messages] == ["user"]
    assert case.parameters == {"max_tokens": 40, "stop": ["\n\n"]}
    assert case.scorers == ("contains", "exact_match")
    assert score(case, f"It was {case.reference}.").value == 1


def test_documents_ranked_by_likelihood_are_left_out_and_counted(tmp_path):
    row = {
        "doc_id": 3,
        "target": "1",
        "metrics": ["acc"],
        "arguments": {"gen_args_0": {"arg_0": "The sky is", "arg_1": " blue"}},
    }
    generated = json.loads(json.dumps(row))
    generated["arguments"]["gen_args_0"]["arg_1"] = {"until": "."}
    result = IMPORTERS["lm-eval-cases"].of(jsonl(tmp_path, row, generated))
    assert list(result.left_out.values()) == [1]
    (case,) = result.cases
    assert (case.prompt, case.parameters["stop"]) == ("The sky is", ["."])


@pytest.mark.parametrize(
    ("name", "n", "scorer"),
    [
        ("2025-05-12T20-28-13-04-00_popularity.json", 3, "contains"),
        ("2025-05-12T20-28-26-04-00_security-guide.json", 3, "degeneration"),
        ("mmlu-summary-choices.eval", 1, "choice"),
        ("log_read_sample.eval", 1, "contains"),
    ],
)
def test_an_inspect_log_asks_the_same_prompts_again(name, n, scorer):
    cases = imported("inspect-cases", f"inspect_logs/{name}").cases
    assert len(cases) == n
    assert {case.scorers[0] for case in cases} == {scorer}
    assert all(m["role"] != "assistant" for c in cases for m in c.messages)
    assert "attachment://" not in str(cases)
    if scorer != "degeneration":
        answer = cases[0].reference
        assert score(cases[0], f"ANSWER: {answer}").value == 1


def test_bfcl_is_read_as_it_is_published_with_its_answers_apart(tmp_path):
    row = {
        "id": "simple_1",
        "question": [[{"role": "user", "content": "Area of 3 by 4?"}]],
        "function": {"name": "geo.area", "parameters": {"type": "dict"}},
    }
    path = jsonl(tmp_path, row, name="BFCL_simple.json")
    with pytest.raises(FormatError, match="no accepted calls for `simple_1`"):
        IMPORTERS["bfcl"].of(path)
    (tmp_path / "possible_answer").mkdir()
    truth = {"id": "simple_1", "ground_truth": [{"geo.area": {"a": [3], "b": [4]}}]}
    jsonl(tmp_path / "possible_answer", truth, name="BFCL_simple.json")
    (case,) = IMPORTERS["bfcl"].of(path).cases
    assert case.reference == [{"geo_area": {"a": [3], "b": [4]}}]
    assert case.parameters["tools"][0]["function"]["name"] == "geo_area"
