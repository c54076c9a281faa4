import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workloads_data import data_file

from routeproof.errors import ConfigError, FormatError
from routeproof.workloads.trace_readers import read_trace, trace_digest, write_trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:04.5000000,30,8
2023-11-16 18:17:03.2500000,10,4
2023-11-16 18:17:05.2500000,20,0
"""
BURST = """Timestamp,Session ID,Model,Request tokens,Response tokens,Log Type
5,s1,ChatGPT,100,20,Conversation log
7.5,s2,GPT-4,50,0,API log
9,s1,ChatGPT,130,25,Conversation log
"""
MOONCAKE = """{"timestamp":1000,"input_length":700,"output_length":5,"hash_ids":[0,1]}
{"timestamp":1000,"input_length":900,"output_length":6,"hash_ids":[0,2]}
{"timestamp":2500,"input_length":600,"output_length":7,"hash_ids":[0,1]}
"""


def written(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_azure_rows_are_sorted_and_silent_ones_counted(tmp_path):
    trace = read_trace(written(tmp_path, AZURE))
    assert trace.source == "azure"
    assert trace.offsets_s.tolist() == [0.0, 1.25]
    assert trace.input_tokens.tolist() == [10, 30]
    assert trace.left_out == {"nothing was generated": 1}


def test_burstgpt_keeps_classes_and_sessions(tmp_path):
    trace = read_trace(written(tmp_path, BURST))
    assert trace.source == "burstgpt"
    assert trace.offsets_s.tolist() == [0.0, 4.0]
    assert trace.classes == ("conversation_log", "conversation_log")
    assert trace.sessions.tolist() == [0, 0]


def test_mooncake_keeps_who_shares_a_prefix(tmp_path):
    trace = read_trace(written(tmp_path, MOONCAKE, "m.jsonl"))
    assert trace.offsets_s.tolist() == [0.0, 0.0, 1.5]
    assert trace.prefixes == ((0, 1), (0, 2), (0, 1))
    assert trace.shared_share() == pytest.approx(3 / 6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a known kind"),
        ("a,b,c\n1,2,3\n", "not a known kind"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "no request"),
        (AZURE + "yesterday,1,1\n", "line 5: TIMESTAMP"),
        (AZURE + "2023-11-16 18:17:06,x,1\n", "line 5: ContextTokens: not a number"),
        (AZURE + "2023-11-16 18:17:06,-4,1\n", "line 5: ContextTokens: not a count"),
        (AZURE + "2023-11-16 18:17:06,1.5,1\n", "line 5: ContextTokens: not a count"),
        (AZURE + "2023-11-16 18:17:06,1\n", "line 5: expected 3 cells"),
        (BURST.split("\n")[0] + "\nnan,s,m,1,1,l\n", "line 2: Timestamp"),
        (BURST.split("\n")[0] + "\n1,s,m,1,0,l\n", "no request that was answered"),
        (MOONCAKE + '{"timestamp": 1}\n', "line 4"),
        (MOONCAKE + "{]\n", "line 4"),
    ],
)
def test_a_broken_trace_is_named_with_its_line(tmp_path, text, said):
    with pytest.raises(FormatError, match=said):
        read_trace(written(tmp_path, text))


def test_a_trace_that_is_not_there_or_of_no_kind_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the trace"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(ConfigError, match="known kinds: azure"):
        read_trace(written(tmp_path, AZURE), "azur")
    with pytest.raises(FormatError, match="no column"):
        read_trace(written(tmp_path, AZURE), "burstgpt")


def test_a_window_is_contiguous_and_a_rate_stretches_it(tmp_path):
    trace = read_trace(written(tmp_path, MOONCAKE, "m.jsonl"))
    late = trace.window(start_s=1.0)
    assert late.offsets_s.tolist() == [0.0]
    assert trace.window(max_requests=2).input_tokens.tolist() == [700, 900]
    assert trace.window(duration_s=1.5).offsets_s.tolist() == [0.0, 0.0]
    assert trace.at_speed(3.0).offsets_s.tolist() == [0.0, 0.0, 0.5]
    assert trace.at_rate(4.0).rate_per_s == pytest.approx(4.0)
    with pytest.raises(ConfigError, match="no request from 9"):
        trace.window(start_s=9.0)
    with pytest.raises(ConfigError, match="one moment"):
        trace.window(duration_s=1.0).at_rate(1.0)
    with pytest.raises(ConfigError, match="`speed`"):
        trace.at_speed(0.0)


rows = st.lists(
    st.tuples(
        st.floats(0, 1e5),
        st.integers(0, 10**6),
        st.integers(1, 10**5),
        st.lists(st.integers(0, 9), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@pytest.mark.slow
@given(rows=rows)
def test_a_trace_written_reads_back_equal(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    text = "".join(
        f'{{"timestamp": {ms}, "input_length": {a}, "output_length": {b}, '
        f'"hash_ids": {ids}}}\n'
        for ms, a, b, ids in rows
    )
    path.write_text(text)
    trace = read_trace(path)
    again_path = path.with_name("again.jsonl")
    write_trace(trace, again_path)
    again = read_trace(again_path)
    assert np.allclose(again.offsets_s, trace.offsets_s, atol=1e-8)
    assert again.input_tokens.tolist() == trace.input_tokens.tolist()
    assert again.output_tokens.tolist() == trace.output_tokens.tolist()
    assert again.prefixes == trace.prefixes or not any(trace.prefixes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "source", "n", "span_s"),
    [
        ("trace_azure_llm_2023/code.csv", "azure", 8819, 3435.948),
        ("trace_azure_llm_2023/conv.csv", "azure", 19366, 3501.722),
        ("trace_mooncake/conversation_lengths.csv", "mooncake_lengths", 12031, 3537),
        (
            "trace_mooncake/conversation_10min_with_hash_ids.jsonl",
            "mooncake",
            1908,
            600,
        ),
    ],
)
def test_published_traces_are_read_whole(name, source, n, span_s):
    trace = read_trace(data_file(name))
    assert (trace.source, len(trace)) == (source, n)
    assert trace.offsets_s[-1] == pytest.approx(span_s, abs=0.01)
    assert trace.left_out == {}
    assert len(trace_digest(data_file(name))) == 64


def test_many_mooncake_requests_share_one_moment_and_a_prefix():
    name = "trace_mooncake/conversation_10min_with_hash_ids.jsonl"
    trace = read_trace(data_file(name))
    assert np.mean(np.diff(trace.offsets_s) == 0) > 0.5
    assert 0.2 < trace.shared_share() < 0.3
